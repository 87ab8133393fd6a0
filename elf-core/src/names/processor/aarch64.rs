//! AArch64 (AAELF64, PAuthABIELF64, MemtagABIELF64).

use super::supplement::Processor;

names! {
    /// `sh_type` of AArch64 (AAELF64, "Section Types"; PAuthABIELF64; MemtagABIELF64).
    pub SHT_AARCH64: u32 {
        SHT_AARCH64_ATTRIBUTES             = 0x7000_0003,
        SHT_AARCH64_AUTH_RELR              = 0x7000_0004,
        SHT_AARCH64_MEMTAG_GLOBALS_STATIC  = 0x7000_0007,
        SHT_AARCH64_MEMTAG_GLOBALS_DYNAMIC = 0x7000_0008,
    }

    /// `p_type` of AArch64 (AAELF64, "Program Header"; the last is in Linux core files).
    pub PT_AARCH64: u32 {
        PT_AARCH64_ARCHEXT    = 0x7000_0000,
        PT_AARCH64_UNWIND     = 0x7000_0001,
        PT_AARCH64_MEMTAG_MTE = 0x7000_0002,
    }

    /// `d_tag` of AArch64 (AAELF64, "Dynamic Section"; PAuthABIELF64; MemtagABIELF64).
    pub DT_AARCH64: u64 {
        DT_AARCH64_BTI_PLT          = 0x7000_0001,
        DT_AARCH64_PAC_PLT          = 0x7000_0003,
        DT_AARCH64_VARIANT_PCS      = 0x7000_0005,
        DT_AARCH64_MEMTAG_MODE      = 0x7000_0009,
        DT_AARCH64_MEMTAG_HEAP      = 0x7000_000b,
        DT_AARCH64_MEMTAG_STACK     = 0x7000_000c,
        DT_AARCH64_MEMTAG_GLOBALS   = 0x7000_000d,
        DT_AARCH64_MEMTAG_GLOBALSSZ = 0x7000_000f,
        DT_AARCH64_AUTH_RELRSZ      = 0x7000_0011,
        DT_AARCH64_AUTH_RELR        = 0x7000_0012,
        DT_AARCH64_AUTH_RELRENT     = 0x7000_0013,
    }

    /// `pr_type` of AArch64 (AAELF64, "Program Property").
    pub GNU_PROPERTY_AARCH64: u32 {
        GNU_PROPERTY_AARCH64_FEATURE_1_AND = 0xc000_0000,
        GNU_PROPERTY_AARCH64_FEATURE_PAUTH = 0xc000_0001,
    }
}

flags! {
    /// `sh_flags` of AArch64 (AAELF64, "Section Attribute Flags").
    pub SHF_AARCH64: u64 {
        SHF_AARCH64_PURECODE = 0x2000_0000,
    }

    /// `st_other` of AArch64 (AAELF64, "Symbol Table").
    pub STO_AARCH64: u8 {
        STO_AARCH64_VARIANT_PCS = 0x80,
    }

    /// `GNU_PROPERTY_AARCH64_FEATURE_1_AND` (AAELF64, "Program Property").
    pub GNU_PROPERTY_AARCH64_FEATURE_1: u32 {
        GNU_PROPERTY_AARCH64_FEATURE_1_BTI = 0x1,
        GNU_PROPERTY_AARCH64_FEATURE_1_PAC = 0x2,
        GNU_PROPERTY_AARCH64_FEATURE_1_GCS = 0x4,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    section_types: SHT_AARCH64,
    section_flags: SHF_AARCH64,
    segment_types: PT_AARCH64,
    dynamic_tags: DT_AARCH64,
    symbol_other: STO_AARCH64,
    properties: GNU_PROPERTY_AARCH64,
    property_flags: &[(GNU_PROPERTY_AARCH64_FEATURE_1_AND, GNU_PROPERTY_AARCH64_FEATURE_1)],
    ..Processor::PLAIN
};
