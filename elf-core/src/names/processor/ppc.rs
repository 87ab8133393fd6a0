//! 32-bit PowerPC (Power Architecture 32-bit ABI).

use super::supplement::Processor;

names! {
    /// `d_tag` of 32-bit PowerPC (psABI 5, "Dynamic Section").
    pub DT_PPC: u64 {
        DT_PPC_GOT = 0x7000_0000,
        DT_PPC_OPT = 0x7000_0001,
    }
}

flags! {
    /// `e_flags` of 32-bit PowerPC (psABI 4, "ELF Header"; GNU).
    pub EF_PPC: u32 {
        EF_PPC_RELOCATABLE_LIB = 0x8000,
        EF_PPC_RELOCATABLE     = 0x1_0000,
        EF_PPC_EMB             = 0x8000_0000,
    }

    /// `sh_flags` of 32-bit PowerPC: variable-length encoding.
    pub SHF_PPC: u64 {
        SHF_PPC_VLE = 0x1000_0000,
    }

    /// `p_flags` of 32-bit PowerPC: variable-length encoding.
    pub PF_PPC: u32 {
        PF_PPC_VLE = 0x1000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_PPC,
    section_flags: SHF_PPC,
    segment_flags: PF_PPC,
    dynamic_tags: DT_PPC,
    ..Processor::PLAIN
};
