//! The 64-bit structures of the gABI, field for field.
//!
//! `O` is the byte order of the file. Every struct has alignment 1: any bytes at any address are a value.

use core::mem::{align_of, size_of};
use zerocopy::byteorder::{ByteOrder, I64, LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The file header: `Elf64_Ehdr` (gABI ch. 2, "ELF Header").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ehdr<O: ByteOrder = LE> {
    /// Magic number, class, byte order, OS ABI and its version.
    pub e_ident: [u8; 16],
    /// What the file is: `ET_REL`, `ET_EXEC`, `ET_DYN`, ...
    pub e_type: U16<O>,
    /// Architecture: `EM_*`.
    pub e_machine: U16<O>,
    /// `EV_CURRENT`; older CUDA tools write their own version here.
    pub e_version: U32<O>,
    /// Address of the entry point.
    pub e_entry: U64<O>,
    /// File offset of the program headers.
    pub e_phoff: U64<O>,
    /// File offset of the section headers.
    pub e_shoff: U64<O>,
    /// Processor-specific flags.
    pub e_flags: U32<O>,
    /// Size of this header in bytes.
    pub e_ehsize: U16<O>,
    /// Size of a program header in bytes.
    pub e_phentsize: U16<O>,
    /// Number of program headers, or `PN_XNUM`.
    pub e_phnum: U16<O>,
    /// Size of a section header in bytes.
    pub e_shentsize: U16<O>,
    /// Number of section headers, or 0 if section 0 tells it.
    pub e_shnum: U16<O>,
    /// Section of the section names, or `SHN_XINDEX`.
    pub e_shstrndx: U16<O>,
}
const _: () = assert!(size_of::<Ehdr>() == 64 && align_of::<Ehdr>() == 1);

/// A program header: `Elf64_Phdr` (gABI ch. 7, "Program Header").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Phdr<O: ByteOrder = LE> {
    /// What the segment is: `PT_*`.
    pub p_type: U32<O>,
    /// Permissions: `PF_*`.
    pub p_flags: U32<O>,
    /// File offset of the first byte.
    pub p_offset: U64<O>,
    /// Address of the first byte.
    pub p_vaddr: U64<O>,
    /// Physical address, where that means something.
    pub p_paddr: U64<O>,
    /// Bytes in the file.
    pub p_filesz: U64<O>,
    /// Bytes in memory; those beyond `p_filesz` are zero.
    pub p_memsz: U64<O>,
    /// Alignment in bytes: 0, 1 or a power of two.
    pub p_align: U64<O>,
}
const _: () = assert!(size_of::<Phdr>() == 56 && align_of::<Phdr>() == 1);

/// A section header: `Elf64_Shdr` (gABI ch. 3, "Section Header").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Shdr<O: ByteOrder = LE> {
    /// Offset of the name in the section name table.
    pub sh_name: U32<O>,
    /// What the section holds: `SHT_*`.
    pub sh_type: U32<O>,
    /// `SHF_*`.
    pub sh_flags: U64<O>,
    /// Address of the first byte, or 0.
    pub sh_addr: U64<O>,
    /// File offset of the first byte.
    pub sh_offset: U64<O>,
    /// Size in bytes; for `SHT_NOBITS` in memory only.
    pub sh_size: U64<O>,
    /// A section that this one depends on, by type.
    pub sh_link: U32<O>,
    /// More of the same, by type.
    pub sh_info: U32<O>,
    /// Alignment in bytes: 0, 1 or a power of two.
    pub sh_addralign: U64<O>,
    /// Size of an entry in bytes, or 0.
    pub sh_entsize: U64<O>,
}
const _: () = assert!(size_of::<Shdr>() == 64 && align_of::<Shdr>() == 1);

/// A symbol: `Elf64_Sym` (gABI ch. 5, "Symbol Table").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Sym<O: ByteOrder = LE> {
    /// Offset of the name in the linked string table.
    pub st_name: U32<O>,
    /// Binding in the high four bits, type in the low four.
    pub st_info: u8,
    /// Visibility in the low two bits, the rest processor-specific.
    pub st_other: u8,
    /// Defining section, or `SHN_*`.
    pub st_shndx: U16<O>,
    /// Offset in the section, address, or alignment of a common symbol.
    pub st_value: U64<O>,
    /// Size in bytes, or 0 if unknown.
    pub st_size: U64<O>,
}
const _: () = assert!(size_of::<Sym>() == 24 && align_of::<Sym>() == 1);

/// A relocation whose addend is at its place: `Elf64_Rel` (gABI ch. 6, "Relocation").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Rel<O: ByteOrder = LE> {
    /// Place: bytes from the start of the section (`ET_REL`), else an address.
    pub r_offset: U64<O>,
    /// Symbol index in the high 32 bits, type in the low 32.
    pub r_info: U64<O>,
}
const _: () = assert!(size_of::<Rel>() == 16 && align_of::<Rel>() == 1);

/// A relocation with addend: `Elf64_Rela` (gABI ch. 6, "Relocation").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Rela<O: ByteOrder = LE> {
    /// Place: bytes from the start of the section (`ET_REL`), else an address.
    pub r_offset: U64<O>,
    /// Symbol index in the high 32 bits, type in the low 32.
    pub r_info: U64<O>,
    /// Constant added to the symbol's value.
    pub r_addend: I64<O>,
}
const _: () = assert!(size_of::<Rela>() == 24 && align_of::<Rela>() == 1);

/// An entry of the dynamic section: `Elf64_Dyn` (gABI ch. 8, "Dynamic Section").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Dyn<O: ByteOrder = LE> {
    /// What the entry says: `DT_*`.
    pub d_tag: I64<O>,
    /// A number or an address, by tag.
    pub d_val: U64<O>,
}
const _: () = assert!(size_of::<Dyn>() == 16 && align_of::<Dyn>() == 1);

/// The header of a compressed section: `Elf64_Chdr` (gABI ch. 3, "Section Compression").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Chdr<O: ByteOrder = LE> {
    /// Algorithm: `ELFCOMPRESS_*`.
    pub ch_type: U32<O>,
    /// 0.
    pub ch_reserved: U32<O>,
    /// Size of the data uncompressed, in bytes.
    pub ch_size: U64<O>,
    /// Alignment of the data uncompressed, in bytes.
    pub ch_addralign: U64<O>,
}
const _: () = assert!(size_of::<Chdr>() == 24 && align_of::<Chdr>() == 1);
