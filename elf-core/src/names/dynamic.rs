//! The dynamic section: tags and flag words.

use super::processor::of;

names! {
    /// `d_tag` of every machine (gABI ch. 5, "Dynamic Section"; GNU, LLVM, Android, Solaris).
    ///
    /// Where systems gave a number two meanings, GNU's or Android's is here. Tags are the same in both classes.
    pub DT: u64 {
        DT_NULL            = 0,
        DT_NEEDED          = 1,
        DT_PLTRELSZ        = 2,
        DT_PLTGOT          = 3,
        DT_HASH            = 4,
        DT_STRTAB          = 5,
        DT_SYMTAB          = 6,
        DT_RELA            = 7,
        DT_RELASZ          = 8,
        DT_RELAENT         = 9,
        DT_STRSZ           = 10,
        DT_SYMENT          = 11,
        DT_INIT            = 12,
        DT_FINI            = 13,
        DT_SONAME          = 14,
        DT_RPATH           = 15,
        DT_SYMBOLIC        = 16,
        DT_REL             = 17,
        DT_RELSZ           = 18,
        DT_RELENT          = 19,
        DT_PLTREL          = 20,
        DT_DEBUG           = 21,
        DT_TEXTREL         = 22,
        DT_JMPREL          = 23,
        DT_BIND_NOW        = 24,
        DT_INIT_ARRAY      = 25,
        DT_FINI_ARRAY      = 26,
        DT_INIT_ARRAYSZ    = 27,
        DT_FINI_ARRAYSZ    = 28,
        DT_RUNPATH         = 29,
        DT_FLAGS           = 30,
        DT_PREINIT_ARRAY   = 32,
        DT_PREINIT_ARRAYSZ = 33,
        DT_SYMTAB_SHNDX    = 34,
        DT_RELRSZ          = 35,
        DT_RELR            = 36,
        DT_RELRENT         = 37,
        DT_CREL            = 0x4000_0026,
        DT_SUNW_AUXILIARY  = 0x6000_000d,
        DT_SUNW_RTLDINF    = 0x6000_000e,
        DT_ANDROID_REL     = 0x6000_000f,
        DT_ANDROID_RELSZ   = 0x6000_0010,
        DT_ANDROID_RELA    = 0x6000_0011,
        DT_ANDROID_RELASZ  = 0x6000_0012,
        DT_ANDROID_RELR    = 0x6fff_e000,
        DT_ANDROID_RELRSZ  = 0x6fff_e001,
        DT_ANDROID_RELRENT = 0x6fff_e003,
        DT_GNU_FLAGS_1     = 0x6fff_fdf4,
        DT_GNU_PRELINKED   = 0x6fff_fdf5,
        DT_GNU_CONFLICTSZ  = 0x6fff_fdf6,
        DT_GNU_LIBLISTSZ   = 0x6fff_fdf7,
        DT_CHECKSUM        = 0x6fff_fdf8,
        DT_PLTPADSZ        = 0x6fff_fdf9,
        DT_MOVEENT         = 0x6fff_fdfa,
        DT_MOVESZ          = 0x6fff_fdfb,
        DT_FEATURE_1       = 0x6fff_fdfc,
        DT_POSFLAG_1       = 0x6fff_fdfd,
        DT_SYMINSZ         = 0x6fff_fdfe,
        DT_SYMINENT        = 0x6fff_fdff,
        DT_GNU_HASH        = 0x6fff_fef5,
        DT_TLSDESC_PLT     = 0x6fff_fef6,
        DT_TLSDESC_GOT     = 0x6fff_fef7,
        DT_GNU_CONFLICT    = 0x6fff_fef8,
        DT_GNU_LIBLIST     = 0x6fff_fef9,
        DT_CONFIG          = 0x6fff_fefa,
        DT_DEPAUDIT        = 0x6fff_fefb,
        DT_AUDIT           = 0x6fff_fefc,
        DT_PLTPAD          = 0x6fff_fefd,
        DT_MOVETAB         = 0x6fff_fefe,
        DT_SYMINFO         = 0x6fff_feff,
        DT_VERSYM          = 0x6fff_fff0,
        DT_RELACOUNT       = 0x6fff_fff9,
        DT_RELCOUNT        = 0x6fff_fffa,
        DT_FLAGS_1         = 0x6fff_fffb,
        DT_VERDEF          = 0x6fff_fffc,
        DT_VERDEFNUM       = 0x6fff_fffd,
        DT_VERNEED         = 0x6fff_fffe,
        DT_VERNEEDNUM      = 0x6fff_ffff,
        DT_AUXILIARY       = 0x7fff_fffd,
        DT_USED            = 0x7fff_fffe,
        DT_FILTER          = 0x7fff_ffff,
    }
}

flags! {
    /// `DT_FLAGS` (gABI ch. 5, "Dynamic Section").
    pub DF: u64 {
        DF_ORIGIN     = 0x1,
        DF_SYMBOLIC   = 0x2,
        DF_TEXTREL    = 0x4,
        DF_BIND_NOW   = 0x8,
        DF_STATIC_TLS = 0x10,
    }

    /// `DT_FLAGS_1` (Solaris Linker and Libraries Guide, "Dynamic Section"; `DF_1_PIE` and later bits).
    pub DF_1: u64 {
        DF_1_NOW        = 0x1,
        DF_1_GLOBAL     = 0x2,
        DF_1_GROUP      = 0x4,
        DF_1_NODELETE   = 0x8,
        DF_1_LOADFLTR   = 0x10,
        DF_1_INITFIRST  = 0x20,
        DF_1_NOOPEN     = 0x40,
        DF_1_ORIGIN     = 0x80,
        DF_1_DIRECT     = 0x100,
        DF_1_TRANS      = 0x200,
        DF_1_INTERPOSE  = 0x400,
        DF_1_NODEFLIB   = 0x800,
        DF_1_NODUMP     = 0x1000,
        DF_1_CONFALT    = 0x2000,
        DF_1_ENDFILTEE  = 0x4000,
        DF_1_DISPRELDNE = 0x8000,
        DF_1_DISPRELPND = 0x1_0000,
        DF_1_NODIRECT   = 0x2_0000,
        DF_1_IGNMULDEF  = 0x4_0000,
        DF_1_NOKSYMS    = 0x8_0000,
        DF_1_NOHDR      = 0x10_0000,
        DF_1_EDITED     = 0x20_0000,
        DF_1_NORELOC    = 0x40_0000,
        DF_1_SYMINTPOSE = 0x80_0000,
        DF_1_GLOBAUDIT  = 0x100_0000,
        DF_1_SINGLETON  = 0x200_0000,
        DF_1_STUB       = 0x400_0000,
        DF_1_PIE        = 0x800_0000,
        DF_1_KMOD       = 0x1000_0000,
        DF_1_WEAKFILTER = 0x2000_0000,
        DF_1_NOCOMMON   = 0x4000_0000,
    }

    /// `DT_POSFLAG_1`: about the next entry only (Solaris Linker and Libraries Guide, "Dynamic Section").
    pub DF_P1: u64 {
        DF_P1_LAZYLOAD  = 0x1,
        DF_P1_GROUPPERM = 0x2,
    }

    /// `DT_GNU_FLAGS_1`.
    pub DF_GNU_1: u64 {
        DF_GNU_1_UNIQUE = 0x1,
    }
}

/// First `d_tag` of the operating systems' range (gABI ch. 5, "Dynamic Section").
pub const DT_LOOS: u64 = 0x6000_000d;
/// Last `d_tag` of the operating systems' range.
pub const DT_HIOS: u64 = 0x6fff_f000;
/// First `d_tag` of the processors' range.
pub const DT_LOPROC: u64 = 0x7000_0000;
/// Last `d_tag` of the processors' range.
pub const DT_HIPROC: u64 = 0x7fff_ffff;

/// The name of `d_tag`.
#[must_use]
pub const fn dynamic_tag(machine: u16, d_tag: u64) -> Option<&'static str> {
    of(machine).dynamic_tags.or(DT, d_tag)
}
