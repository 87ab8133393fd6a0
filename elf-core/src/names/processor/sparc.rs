//! SPARC (SPARC psABI 4 and 5; SPARC Compliance Definition 2.4; Solaris).

use super::supplement::Processor;

names! {
    /// Reserved section indices of SPARC: ordered sections (Solaris).
    pub SHN_SPARC: u16 {
        SHN_BEFORE = 0xff00,
        SHN_AFTER  = 0xff01,
    }

    /// Symbol types of SPARC: the use of a global register (SPARC Compliance Definition 2.4).
    pub STT_SPARC: u8 {
        STT_SPARC_REGISTER = 13,
    }

    /// `d_tag` of SPARC (SPARC Compliance Definition 2.4).
    pub DT_SPARC: u64 {
        DT_SPARC_REGISTER = 0x7000_0001,
    }
}

flags! {
    /// `e_flags` of SPARC (SPARC Compliance Definition 2.4): the memory model, and extensions of the instruction set.
    pub EF_SPARC: u32 {
        EF_SPARCV9_TSO   = 0x0 in 0x3,
        EF_SPARCV9_PSO   = 0x1 in 0x3,
        EF_SPARCV9_RMO   = 0x2 in 0x3,
        EF_SPARC_32PLUS  = 0x100,
        EF_SPARC_SUN_US1 = 0x200,
        EF_SPARC_HAL_R1  = 0x400,
        EF_SPARC_SUN_US3 = 0x800,
        EF_SPARC_LEDATA  = 0x80_0000,
    }

    /// `sh_flags` of SPARC (Solaris).
    pub SHF_SPARC: u64 {
        SHF_ORDERED = 0x4000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_SPARC,
    section_flags: SHF_SPARC,
    section_indices: SHN_SPARC,
    dynamic_tags: DT_SPARC,
    symbol_types: STT_SPARC,
    ..Processor::PLAIN
};
