//! Sections: types, flags, reserved indices, groups, compression.

use super::machine::EM_CUDA;
use super::processor::of;
use super::table::Flags;

names! {
    /// `sh_type` of every machine: what a section holds (gABI ch. 4, "Sections"; GNU, LLVM, Android, Solaris).
    ///
    /// Where systems gave a number two meanings, GNU's is here.
    pub SHT: u32 {
        SHT_NULL                     = 0,
        SHT_PROGBITS                 = 1,
        SHT_SYMTAB                   = 2,
        SHT_STRTAB                   = 3,
        SHT_RELA                     = 4,
        SHT_HASH                     = 5,
        SHT_DYNAMIC                  = 6,
        SHT_NOTE                     = 7,
        SHT_NOBITS                   = 8,
        SHT_REL                      = 9,
        SHT_SHLIB                    = 10,
        SHT_DYNSYM                   = 11,
        SHT_INIT_ARRAY               = 14,
        SHT_FINI_ARRAY               = 15,
        SHT_PREINIT_ARRAY            = 16,
        SHT_GROUP                    = 17,
        SHT_SYMTAB_SHNDX             = 18,
        SHT_RELR                     = 19,
        SHT_CREL                     = 0x4000_0014,
        SHT_ANDROID_REL              = 0x6000_0001,
        SHT_ANDROID_RELA             = 0x6000_0002,
        SHT_GNU_INCREMENTAL_INPUTS   = 0x6fff_4700,
        SHT_LLVM_ODRTAB              = 0x6fff_4c00,
        SHT_LLVM_LINKER_OPTIONS      = 0x6fff_4c01,
        SHT_LLVM_ADDRSIG             = 0x6fff_4c03,
        SHT_LLVM_DEPENDENT_LIBRARIES = 0x6fff_4c04,
        SHT_LLVM_SYMPART             = 0x6fff_4c05,
        SHT_LLVM_PART_EHDR           = 0x6fff_4c06,
        SHT_LLVM_PART_PHDR           = 0x6fff_4c07,
        SHT_LLVM_BB_ADDR_MAP_V0      = 0x6fff_4c08,
        SHT_LLVM_CALL_GRAPH_PROFILE  = 0x6fff_4c09,
        SHT_LLVM_BB_ADDR_MAP         = 0x6fff_4c0a,
        SHT_LLVM_OFFLOADING          = 0x6fff_4c0b,
        SHT_LLVM_LTO                 = 0x6fff_4c0c,
        SHT_LLVM_JT_SIZES            = 0x6fff_4c0d,
        SHT_LLVM_CFI_JUMP_TABLE      = 0x6fff_4c0e,
        SHT_LLVM_CALL_GRAPH          = 0x6fff_4c0f,
        SHT_ANDROID_RELR             = 0x6fff_ff00,
        SHT_SUNW_symsort             = 0x6fff_fff1,
        SHT_SUNW_tlssort             = 0x6fff_fff2,
        SHT_SUNW_LDYNSYM             = 0x6fff_fff3,
        SHT_GNU_SFRAME               = 0x6fff_fff4,
        SHT_GNU_ATTRIBUTES           = 0x6fff_fff5,
        SHT_GNU_HASH                 = 0x6fff_fff6,
        SHT_GNU_LIBLIST              = 0x6fff_fff7,
        SHT_CHECKSUM                 = 0x6fff_fff8,
        SHT_GNU_OBJECT_ONLY          = 0x6fff_fff9,
        SHT_SUNW_move                = 0x6fff_fffa,
        SHT_SUNW_COMDAT              = 0x6fff_fffb,
        SHT_SUNW_syminfo             = 0x6fff_fffc,
        SHT_GNU_verdef               = 0x6fff_fffd,
        SHT_GNU_verneed              = 0x6fff_fffe,
        SHT_GNU_versym               = 0x6fff_ffff,
    }

    /// Reserved section indices of every machine, in `st_shndx` and `e_shstrndx` (gABI ch. 4, "Sections").
    pub SHN: u16 {
        SHN_UNDEF  = 0,
        SHN_ABS    = 0xfff1,
        SHN_COMMON = 0xfff2,
        SHN_XINDEX = 0xffff,
    }

    /// `ch_type`: how a section is compressed (gABI ch. 4, "Sections").
    pub ELFCOMPRESS: u32 {
        ELFCOMPRESS_ZLIB = 1,
        ELFCOMPRESS_ZSTD = 2,
    }
}

flags! {
    /// `sh_flags` of every machine and system (gABI ch. 4, "Sections"; `SHF_EXCLUDE` is of GNU and Solaris).
    pub SHF: u64 {
        SHF_WRITE            = 0x1,
        SHF_ALLOC            = 0x2,
        SHF_EXECINSTR        = 0x4,
        SHF_MERGE            = 0x10,
        SHF_STRINGS          = 0x20,
        SHF_INFO_LINK        = 0x40,
        SHF_LINK_ORDER       = 0x80,
        SHF_OS_NONCONFORMING = 0x100,
        SHF_GROUP            = 0x200,
        SHF_TLS              = 0x400,
        SHF_COMPRESSED       = 0x800,
        SHF_EXCLUDE          = 0x8000_0000,
    }

    /// `sh_flags` in the operating systems' bits: Solaris, GNU.
    pub SHF_GNU: u64 {
        SHF_SUNW_NODISCARD = 0x10_0000,
        SHF_GNU_RETAIN     = 0x20_0000,
        SHF_GNU_MBIND      = 0x100_0000,
    }

    /// The first word of a section group (gABI ch. 4, "Sections").
    pub GRP: u32 {
        GRP_COMDAT = 0x1,
    }
}

/// First `sh_type` of the operating systems' range (gABI ch. 4, "Sections").
pub const SHT_LOOS: u32 = 0x6000_0000;
/// Last `sh_type` of the operating systems' range.
pub const SHT_HIOS: u32 = 0x6fff_ffff;
/// First `sh_type` of the processors' range.
pub const SHT_LOPROC: u32 = 0x7000_0000;
/// Last `sh_type` of the processors' range.
pub const SHT_HIPROC: u32 = 0x7fff_ffff;
/// First `sh_type` of the applications' range; it reaches to the end.
pub const SHT_LOUSER: u32 = 0x8000_0000;
/// The operating systems' bits of `sh_flags` (gABI ch. 4, "Sections").
pub const SHF_MASKOS: u64 = 0x0ff0_0000;
/// The processors' bits of `sh_flags`.
pub const SHF_MASKPROC: u64 = 0xf000_0000;
/// First reserved section index: no section has an index from here to the end (gABI ch. 4, "Sections").
pub const SHN_LORESERVE: u16 = 0xff00;
/// The operating systems' bits of a section group's first word (gABI ch. 4, "Sections").
pub const GRP_MASKOS: u32 = 0x0ff0_0000;
/// The processors' bits of a section group's first word.
pub const GRP_MASKPROC: u32 = 0xf000_0000;

/// The name of `sh_type`.
#[must_use]
pub const fn section_type(machine: u16, sh_type: u32) -> Option<&'static str> {
    of(machine).section_types.or(SHT, sh_type as u64)
}

/// The names of the bits of `sh_flags`.
#[must_use]
pub const fn section_flags(machine: u16) -> Flags {
    let own = of(machine).section_flags;
    match machine {
        EM_CUDA => SHF.and(own, Flags::EMPTY), // counts barriers in the systems' bits
        _ => SHF.and(SHF_GNU, own),
    }
}

/// The name of a reserved section index, [`SHN_UNDEF`] included. Other indices have none.
#[must_use]
pub const fn section_index(machine: u16, shndx: u16) -> Option<&'static str> {
    of(machine).section_indices.or(SHN, shndx as u64)
}

/// The name of `ch_type`.
#[must_use]
pub const fn compression(ch_type: u32) -> Option<&'static str> {
    ELFCOMPRESS.get(ch_type as u64)
}
