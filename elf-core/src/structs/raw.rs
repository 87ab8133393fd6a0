//! The structures that are the same in both classes: notes, symbol versions, program properties.
//!
//! `O` is the byte order of the file. Every struct has alignment 1: any bytes at any address are a value.

use core::mem::{align_of, size_of};
use zerocopy::byteorder::{ByteOrder, LE, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The head of a note: `Elf32_Nhdr`, `Elf64_Nhdr` (gABI ch. 7, "Note Sections").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Nhdr<O: ByteOrder = LE> {
    /// Bytes of the owner's name, its NUL included.
    pub n_namesz: U32<O>,
    /// Bytes of the descriptor.
    pub n_descsz: U32<O>,
    /// What the descriptor is, by owner: `NT_*`.
    pub n_type: U32<O>,
}
const _: () = assert!(size_of::<Nhdr>() == 12 && align_of::<Nhdr>() == 1);

/// The head of a program property (Linux Extensions to gABI, "Program Property").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Property<O: ByteOrder = LE> {
    /// What it says: `GNU_PROPERTY_*`.
    pub pr_type: U32<O>,
    /// Bytes of the data behind.
    pub pr_datasz: U32<O>,
}
const _: () = assert!(size_of::<Property>() == 8 && align_of::<Property>() == 1);

/// A version that the file defines: `Elf32_Verdef`, `Elf64_Verdef` (LSB, "Version Definitions").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Verdef<O: ByteOrder = LE> {
    /// `VER_DEF_CURRENT`.
    pub vd_version: U16<O>,
    /// `VER_FLG_*`.
    pub vd_flags: U16<O>,
    /// Its index in `SHT_GNU_versym`.
    pub vd_ndx: U16<O>,
    /// Number of names.
    pub vd_cnt: U16<O>,
    /// Hash of the name, as in `DT_HASH`.
    pub vd_hash: U32<O>,
    /// Bytes from here to the first name.
    pub vd_aux: U32<O>,
    /// Bytes from here to the next definition, or 0.
    pub vd_next: U32<O>,
}
const _: () = assert!(size_of::<Verdef>() == 20 && align_of::<Verdef>() == 1);

/// A name of a version that the file defines: `Elf32_Verdaux`, `Elf64_Verdaux` (LSB, "Version Definitions").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Verdaux<O: ByteOrder = LE> {
    /// Offset of the name in the linked string table.
    pub vda_name: U32<O>,
    /// Bytes from here to the next name, or 0.
    pub vda_next: U32<O>,
}
const _: () = assert!(size_of::<Verdaux>() == 8 && align_of::<Verdaux>() == 1);

/// A file of which versions are needed: `Elf32_Verneed`, `Elf64_Verneed` (LSB, "Version Requirements").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Verneed<O: ByteOrder = LE> {
    /// `VER_NEED_CURRENT`.
    pub vn_version: U16<O>,
    /// Number of versions.
    pub vn_cnt: U16<O>,
    /// Offset of the file's name in the linked string table.
    pub vn_file: U32<O>,
    /// Bytes from here to the first version.
    pub vn_aux: U32<O>,
    /// Bytes from here to the next file, or 0.
    pub vn_next: U32<O>,
}
const _: () = assert!(size_of::<Verneed>() == 16 && align_of::<Verneed>() == 1);

/// A version that is needed: `Elf32_Vernaux`, `Elf64_Vernaux` (LSB, "Version Requirements").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Vernaux<O: ByteOrder = LE> {
    /// Hash of the name, as in `DT_HASH`.
    pub vna_hash: U32<O>,
    /// `VER_FLG_*`.
    pub vna_flags: U16<O>,
    /// Its index in `SHT_GNU_versym`.
    pub vna_other: U16<O>,
    /// Offset of the name in the linked string table.
    pub vna_name: U32<O>,
    /// Bytes from here to the next version, or 0.
    pub vna_next: U32<O>,
}
const _: () = assert!(size_of::<Vernaux>() == 16 && align_of::<Vernaux>() == 1);
