//! What is shown, row by row: read when it is asked for, and the same for people and for programs.
//!
//! Numbers are as they stand in the file. A `.._name` is the specification's name of the number before it, or nothing if the
//! number has none; the `.._names` of a word of flags are those of its bits that have one.

use std::borrow::Cow;

use serde::Serialize;

use super::versions::Version;
use crate::printable::Printable;

/// The file header.
#[derive(Debug, Serialize)]
pub struct Header {
    /// 32 or 64.
    pub bits: u32,
    /// `little` or `big`.
    pub byte_order: &'static str,
    /// `e_ident[EI_OSABI]`.
    pub os_abi: u8,
    /// `ELFOSABI_..`.
    pub os_abi_name: Option<&'static str>,
    /// `e_ident[EI_ABIVERSION]`.
    pub abi_version: u8,
    /// `e_type`.
    pub r#type: u16,
    /// `ET_..`.
    pub type_name: Option<&'static str>,
    /// `e_machine`.
    pub machine: u16,
    /// `EM_..`.
    pub machine_name: Option<&'static str>,
    /// `e_version`.
    pub version: u32,
    /// `e_entry`.
    pub entry: u64,
    /// `e_flags`.
    pub flags: u32,
    /// `EF_..`.
    pub flag_names: Vec<&'static str>,
    /// `e_ehsize`.
    pub header_size: u16,
    /// `e_phoff`.
    pub program_headers: u64,
    /// `e_phentsize`.
    pub program_header_size: u16,
    /// Number of segments, extended numbering resolved.
    pub segments: usize,
    /// `e_shoff`.
    pub section_headers: u64,
    /// `e_shentsize`.
    pub section_header_size: u16,
    /// Number of sections, extended numbering resolved.
    pub sections: usize,
    /// Section of the section names, extended numbering resolved.
    pub section_names: u32,
}

/// A section header.
#[derive(Debug, Serialize)]
pub struct Section<'a> {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: Printable<'a>,
    /// `sh_type`.
    pub r#type: u32,
    /// `SHT_..`.
    pub type_name: Option<&'static str>,
    /// `sh_flags`.
    pub flags: u64,
    /// `SHF_..`.
    pub flag_names: Vec<&'static str>,
    /// `sh_addr`.
    pub address: u64,
    /// `sh_offset`.
    pub offset: u64,
    /// `sh_size`.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub alignment: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
}

/// A program header.
#[derive(Debug, Serialize)]
pub struct Segment {
    /// Its index.
    pub index: usize,
    /// `p_type`.
    pub r#type: u32,
    /// `PT_..`.
    pub type_name: Option<&'static str>,
    /// `p_flags`.
    pub flags: u32,
    /// `PF_..`.
    pub flag_names: Vec<&'static str>,
    /// `p_offset`.
    pub offset: u64,
    /// `p_vaddr`.
    pub address: u64,
    /// `p_paddr`.
    pub physical_address: u64,
    /// `p_filesz`.
    pub file_size: u64,
    /// `p_memsz`.
    pub memory_size: u64,
    /// `p_align`.
    pub alignment: u64,
}

/// A symbol.
#[derive(Debug, Serialize)]
pub struct SymbolRow<'a> {
    /// Its index.
    pub index: u32,
    /// Its name; that of its section, if it stands for one and has none itself.
    pub name: Printable<'a>,
    /// Its version, if it has one.
    pub version: Option<Version<'a>>,
    /// `st_value`.
    pub value: u64,
    /// `st_size`.
    pub size: u64,
    /// Low half of `st_info`.
    pub r#type: u8,
    /// `STT_..`.
    pub type_name: Option<&'static str>,
    /// High half of `st_info`.
    pub binding: u8,
    /// `STB_..`.
    pub binding_name: Option<&'static str>,
    /// `st_other`.
    pub other: u8,
    /// `STV_..`.
    pub visibility_name: Option<&'static str>,
    /// Names of the other bits of `st_other`.
    pub other_names: Vec<&'static str>,
    /// Index of the defining section, extended indices resolved; or a reserved index.
    pub section: u32,
    /// Name of the section, or `SHN_..`; nothing if there is no such section.
    pub section_name: Option<Printable<'a>>,
    /// Whether it is a mark of the assembler, which says what follows it: [`Mapping`](elf_core::Mapping).
    #[serde(skip)]
    pub is_mapping: bool,
}

/// A relocation.
#[derive(Debug, Serialize)]
pub struct Relocation<'a> {
    /// `r_offset`.
    pub offset: u64,
    /// `r_type`.
    pub r#type: u32,
    /// `R_..`; on MIPS64 the names of up to three types, with `/` between.
    pub type_name: Option<Cow<'static, str>>,
    /// Index of the symbol.
    pub symbol: u32,
    /// Its name, or that of its section; nothing without a symbol table.
    pub symbol_name: Option<Printable<'a>>,
    /// Its version, if it has one.
    pub symbol_version: Option<Version<'a>>,
    /// `r_addend`, or nothing if the place holds it.
    pub addend: Option<i64>,
}
