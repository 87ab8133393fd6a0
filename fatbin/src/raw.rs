//! NVIDIA's headers as types. The field names are ours: the format is not published, and every field was read back
//! from files made by the tools of CUDA 11.2 to 13.5 ("measured"). All integers are little-endian.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a region starts with: bytes `50 ed 55 ba`.
pub const REGION_MAGIC: u32 = 0xba55_ed50;
/// What a wrapper in `.nvFatBinSegment` starts with.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// What a wrapper in `.hipFatBinSegment` starts with: bytes `FPIH`.
pub const HIP_WRAPPER_MAGIC: u32 = 0x4849_5046;

/// The header of a region; entries follow back to back (measured).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Region {
    /// [`REGION_MAGIC`].
    pub magic: U32,
    /// 1 in every file seen; NVIDIA's reader takes 2 as well.
    pub version: U16,
    /// Size of this header: 16 in every file seen.
    pub header_size: U16,
    /// Bytes of entries after this header.
    pub size: U64,
}
const _: () = assert!(size_of::<Region>() == 16 && align_of::<Region>() == 1);

/// The header of an entry, up to its optional blocks (measured).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// What the payload is: [`EntryKind`](crate::EntryKind).
    pub kind: U16,
    /// 0x0101 in every file seen.
    pub version: U16,
    /// From the start of the entry to its payload: 0x40 and the optional blocks.
    pub header_size: U32,
    /// Payload as stored, zero padding to a multiple of 8 included.
    pub payload_size: U64,
    /// Exact size of the compressed payload; 0 if it is not compressed, and with zlib of CUDA 11.
    pub compressed_size: U32,
    /// Offset of [`Options`] from the start of the entry; 0 if there are none.
    pub options: U32,
    /// Minor code version: of the PTX ISA, or the ABI version of the ELF.
    pub code_minor: U16,
    /// Major code version: of the PTX ISA; 1 for an ELF.
    pub code_major: U16,
    /// The SM as a plain number: 75, 90, 121.
    pub sm: U32,
    /// Offset of the identifier from the start of the entry; 0 if there is none.
    pub identifier: U32,
    /// Bytes of the identifier, without the NUL after it and without padding.
    pub identifier_size: U32,
    /// [`EntryFlags`](crate::EntryFlags).
    pub flags: U64,
    /// Key of obfuscation; 0 without [`EntryFlags::OBFUSCATED`](crate::EntryFlags::OBFUSCATED).
    pub obfuscation_key: U64,
    /// Exact size of the payload before compression; 0 if it is not compressed.
    pub unpacked_size: U64,
}
const _: () = assert!(size_of::<Entry>() == 0x40 && align_of::<Entry>() == 1);

/// Where the options of an entry lie (measured).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Options {
    /// Offset of the bytes from the start of the entry.
    pub offset: U32,
    /// Their number, without padding and without the NUL: after options of the compiler, before the content of `.nv.compat`.
    pub size: U32,
}
const _: () = assert!(size_of::<Options>() == 8 && align_of::<Options>() == 1);

/// What a concatenated entry has in place of options; [`Part`]s follow (measured, CUDA 13.5).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Parts {
    /// Number of parts.
    pub count: U32,
    /// Bytes of this header and of the parts.
    pub size: U32,
}
const _: () = assert!(size_of::<Parts>() == 8 && align_of::<Parts>() == 1);

/// One of the images in a concatenated entry: shaped like [`Entry`] (measured, CUDA 13.5).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Part {
    /// As in [`Entry`].
    pub kind: U16,
    /// As in [`Entry`].
    pub version: U16,
    /// Offset of the image in the unpacked payload.
    pub offset: U32,
    /// Bytes of the image.
    pub size: U64,
    /// 0 in every file seen.
    pub compressed_size: U32,
    /// As in [`Entry`].
    pub options: U32,
    /// As in [`Entry`].
    pub code_minor: U16,
    /// As in [`Entry`].
    pub code_major: U16,
    /// As in [`Entry`].
    pub sm: U32,
    /// As in [`Entry`].
    pub identifier: U32,
    /// As in [`Entry`].
    pub identifier_size: U32,
    /// As in [`Entry`], without bits of compression.
    pub flags: U64,
    /// As in [`Entry`].
    pub obfuscation_key: U64,
    /// 0 in every file seen.
    pub unpacked_size: U64,
}
const _: () = assert!(size_of::<Part>() == 0x40 && align_of::<Part>() == 1);

/// A wrapper in `.nvFatBinSegment` or `.hipFatBinSegment`: how a host program finds a region (`fatBinaryCtl.h`,
/// `__fatBinC_Wrapper_t`; measured).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Wrapper {
    /// [`WRAPPER_MAGIC`] or [`HIP_WRAPPER_MAGIC`].
    pub magic: U32,
    /// 1, or 2 from the device linker.
    pub version: U32,
    /// Pointer to the region.
    pub data: U64,
    /// Version 1: null. Version 2: pointer to an array of pointers to regions that were linked before.
    pub second: U64,
}
const _: () = assert!(size_of::<Wrapper>() == 24 && align_of::<Wrapper>() == 1);
