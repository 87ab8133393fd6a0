//! Alpha (numbers as GNU tools use them).

use super::supplement::Processor;

names! {
    /// `sh_type` of Alpha.
    pub SHT_ALPHA: u32 {
        SHT_ALPHA_DEBUG   = 0x7000_0001,
        SHT_ALPHA_REGINFO = 0x7000_0002,
    }

    /// `d_tag` of Alpha.
    pub DT_ALPHA: u64 {
        DT_ALPHA_PLTRO = 0x7000_0000,
    }
}

flags! {
    /// `e_flags` of Alpha.
    pub EF_ALPHA: u32 {
        EF_ALPHA_32BIT    = 0x1,
        EF_ALPHA_CANRELAX = 0x2,
    }

    /// `sh_flags` of Alpha.
    pub SHF_ALPHA: u64 {
        SHF_ALPHA_GPREL = 0x1000_0000,
    }

    /// `st_other` of Alpha: whether a function's code begins with the two instructions that load its `gp`.
    pub STO_ALPHA: u8 {
        STO_ALPHA_NOPV       = 0x80 in 0xf8,
        STO_ALPHA_STD_GPLOAD = 0x88 in 0xf8,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_ALPHA,
    section_types: SHT_ALPHA,
    section_flags: SHF_ALPHA,
    dynamic_tags: DT_ALPHA,
    symbol_other: STO_ALPHA,
    ..Processor::PLAIN
};
