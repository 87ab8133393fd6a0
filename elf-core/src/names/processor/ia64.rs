//! IA-64 (IA-64 psABI 4; HP-UX).

use super::supplement::Processor;

names! {
    /// `sh_type` of IA-64 (psABI 4, "Sections").
    pub SHT_IA_64: u32 {
        SHT_IA_64_EXT           = 0x7000_0000,
        SHT_IA_64_UNWIND        = 0x7000_0001,
        SHT_IA_64_PRIORITY_INIT = 0x7900_0000,
    }

    /// Reserved section indices of IA-64.
    pub SHN_IA_64: u16 {
        SHN_IA_64_ANSI_COMMON = 0xff00,
    }

    /// `p_type` of IA-64 (psABI 5, "Program Header"; HP-UX).
    pub PT_IA_64: u32 {
        PT_IA_64_HP_OPT_ANOT = 0x6000_0012,
        PT_IA_64_HP_HSL_ANOT = 0x6000_0013,
        PT_IA_64_HP_STACK    = 0x6000_0014,
        PT_IA_64_ARCHEXT     = 0x7000_0000,
        PT_IA_64_UNWIND      = 0x7000_0001,
    }

    /// `d_tag` of IA-64 (psABI 5, "Dynamic Section").
    pub DT_IA_64: u64 {
        DT_IA_64_PLT_RESERVE = 0x7000_0000,
    }
}

flags! {
    /// `e_flags` of IA-64 (psABI 4, "ELF Header").
    pub EF_IA_64: u32 {
        EF_IA_64_TRAPNIL            = 0x1,
        EF_IA_64_EXT                = 0x4,
        EF_IA_64_BE                 = 0x8,
        EF_IA_64_ABI64              = 0x10,
        EF_IA_64_REDUCEDFP          = 0x20,
        EF_IA_64_CONS_GP            = 0x40,
        EF_IA_64_NOFUNCDESC_CONS_GP = 0x80,
        EF_IA_64_ABSOLUTE           = 0x100,
        EF_IA_64_ARCHVER_1          = 0x100_0000 in 0xff00_0000,
    }

    /// `sh_flags` of IA-64 (psABI 4, "Sections").
    pub SHF_IA_64: u64 {
        SHF_IA_64_SHORT   = 0x1000_0000,
        SHF_IA_64_NORECOV = 0x2000_0000,
    }

    /// `p_flags` of IA-64 (psABI 5, "Program Header").
    pub PF_IA_64: u32 {
        PF_IA_64_NORECOV = 0x8000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_IA_64,
    section_types: SHT_IA_64,
    section_flags: SHF_IA_64,
    section_indices: SHN_IA_64,
    segment_types: PT_IA_64,
    segment_flags: PF_IA_64,
    dynamic_tags: DT_IA_64,
    ..Processor::PLAIN
};
