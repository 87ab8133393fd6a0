//! LLVM's headers as types, with the specification's names. All integers are little-endian.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What an OffloadBinary starts with: bytes `10 ff 10 ad`.
pub const OFFLOAD_MAGIC: u32 = 0xad10_ff10;
/// What a bundle starts with.
pub const BUNDLE_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The section of linked files that has SYCL's images, by Intel's compilers since 2025.3 (measured); before, it was named for the target,
/// behind [`BUNDLE_MAGIC`].
pub const SYCL_SECTION: &[u8] = b"OFFLOAD_DEVICE_CODE";
/// The section of linked files that says where each of SYCL's images is: rows of [`TargetImage`].
pub const TARGET_IMAGES_SECTION: &[u8] = b".tgtimg";
/// What a compressed bundle starts with: bytes `CCOB`.
pub const COMPRESSED_BUNDLE_MAGIC: u32 = 0x424f_4343;

/// Where an image is in memory (clang-offload-wrapper of intel/llvm; measured).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TargetImage {
    /// Pointer to its first byte.
    pub address: U64,
    /// Bytes of the image.
    pub size: U64,
}
const _: () = assert!(size_of::<TargetImage>() == 16 && align_of::<TargetImage>() == 1);

/// The header of an OffloadBinary: `OffloadBinary::Header` (llvm/Object/OffloadBinary.h) of versions 1 and 2, without
/// `InflatedSize`, which version 3 puts after it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// [`OFFLOAD_MAGIC`].
    pub magic: U32,
    /// 1 to 3.
    pub version: U32,
    /// Bytes of the whole, this header included.
    pub size: U64,
    /// Offset of the entries.
    pub entries_offset: U64,
    /// Number of entries; in version 1 the size of the one entry.
    pub entries_count: U64,
}
const _: () = assert!(size_of::<Header>() == 32 && align_of::<Header>() == 1);

/// The header of version 3.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header3 {
    /// What the versions share.
    pub header: Header,
    /// 0, or the size of the whole when what follows the header is inflated.
    pub inflated_size: U64,
}
const _: () = assert!(size_of::<Header3>() == 40 && align_of::<Header3>() == 1);

/// An image in an OffloadBinary: `OffloadBinary::Entry`. All offsets are from the start of the OffloadBinary.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// [`ImageKind`](crate::ImageKind).
    pub image_kind: U16,
    /// [`Producer`](crate::Producer).
    pub offload_kind: U16,
    /// Bit 0: metadata only.
    pub flags: U32,
    /// Offset of the strings' table.
    pub string_offset: U64,
    /// Number of pairs of strings.
    pub num_strings: U64,
    /// Offset of the image.
    pub image_offset: U64,
    /// Bytes of the image.
    pub image_size: U64,
}
const _: () = assert!(size_of::<Entry>() == 40 && align_of::<Entry>() == 1);

/// A key and a value, both NUL-terminated: `OffloadBinary::StringEntry` of version 1.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct StringEntry {
    /// Offset of the key.
    pub key_offset: U64,
    /// Offset of the value.
    pub value_offset: U64,
}
const _: () = assert!(size_of::<StringEntry>() == 16 && align_of::<StringEntry>() == 1);

/// A key and a value of known size: `OffloadBinary::StringEntry` of versions 2 and 3.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct StringEntry2 {
    /// Offset of the key, and of the value.
    pub entry: StringEntry,
    /// Bytes of the value.
    pub value_size: U64,
}
const _: () = assert!(size_of::<StringEntry2>() == 24 && align_of::<StringEntry2>() == 1);

/// What a bundle starts with (ClangOffloadBundler, "Bundled Code Object Layout").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Bundle {
    /// [`BUNDLE_MAGIC`].
    pub magic: [u8; 24],
    /// Number of entries.
    pub count: U64,
}
const _: () = assert!(size_of::<Bundle>() == 32 && align_of::<Bundle>() == 1);

/// An entry of a bundle; the bytes of its id follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BundleEntry {
    /// Offset of the image from the start of the bundle.
    pub offset: U64,
    /// Bytes of the image.
    pub size: U64,
    /// Bytes of the id.
    pub id_size: U64,
}
const _: () = assert!(size_of::<BundleEntry>() == 24 && align_of::<BundleEntry>() == 1);

/// What the versions of a compressed bundle share (ClangOffloadBundler, "Compressed Offload Bundle").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CompressedBundle {
    /// [`COMPRESSED_BUNDLE_MAGIC`].
    pub magic: U32,
    /// 1 to 3.
    pub version: U16,
    /// 0 zlib, 1 Zstandard.
    pub method: U16,
}
const _: () = assert!(size_of::<CompressedBundle>() == 8 && align_of::<CompressedBundle>() == 1);

/// A kernel or variable of the host program, up to LLVM 19: `__tgt_offload_entry`, in `omp_offloading_entries`,
/// `cuda_offloading_entries` and `hip_offloading_entries` (llvm/Frontend/Offloading/Utility.cpp).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct OldOffloadEntry {
    /// Pointer to the kernel's id, or to the variable.
    pub addr: U64,
    /// Pointer to the name.
    pub name: U64,
    /// Bytes of the variable; 0 for a kernel.
    pub size: U64,
    /// Flags.
    pub flags: U32,
    /// What the flags say.
    pub data: U32,
}
const _: () = assert!(size_of::<OldOffloadEntry>() == 32 && align_of::<OldOffloadEntry>() == 1);

/// A kernel or variable of the host program, from LLVM 20 on: `__tgt_offload_entry`, in `llvm_offload_entries`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct OffloadEntry {
    /// 0.
    pub reserved: U64,
    /// 1.
    pub version: U16,
    /// [`Producer`](crate::Producer).
    pub kind: U16,
    /// Flags.
    pub flags: U32,
    /// Pointer to the kernel's id, or to the variable.
    pub address: U64,
    /// Pointer to the name.
    pub symbol_name: U64,
    /// Bytes of the variable; 0 for a kernel.
    pub size: U64,
    /// What the flags say.
    pub data: U64,
    /// Pointer to what the flags say.
    pub aux_addr: U64,
}
const _: () = assert!(size_of::<OffloadEntry>() == 56 && align_of::<OffloadEntry>() == 1);

/// What a linked host program says of one image: `__tgt_device_image` (llvm/Frontend/Offloading/OffloadWrapper.cpp).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DeviceImage {
    /// Pointer to the image itself, inside its OffloadBinary.
    pub image_start: U64,
    /// Pointer to its end.
    pub image_end: U64,
    /// Pointer to the first host entry.
    pub entries_begin: U64,
    /// Pointer to the end of the host entries.
    pub entries_end: U64,
}
const _: () = assert!(size_of::<DeviceImage>() == 32 && align_of::<DeviceImage>() == 1);

/// What a linked host program registers: `__tgt_bin_desc`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BinDesc {
    /// Number of images.
    pub num_device_images: U32,
    /// Nothing.
    pub padding: U32,
    /// Pointer to the [`DeviceImage`]s.
    pub device_images: U64,
    /// Pointer to the first host entry.
    pub host_entries_begin: U64,
    /// Pointer to the end of the host entries.
    pub host_entries_end: U64,
}
const _: () = assert!(size_of::<BinDesc>() == 32 && align_of::<BinDesc>() == 1);
