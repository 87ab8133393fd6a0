//! Xtensa (numbers as GNU tools use them).

use super::supplement::Processor;

names! {
    /// `d_tag` of Xtensa: where the GOT's parts are described.
    pub DT_XTENSA: u64 {
        DT_XTENSA_GOT_LOC_OFF = 0x7000_0000,
        DT_XTENSA_GOT_LOC_SZ  = 0x7000_0001,
    }
}

flags! {
    /// `e_flags` of Xtensa.
    pub EF_XTENSA: u32 {
        EF_XTENSA_XT_INSN = 0x100,
        EF_XTENSA_XT_LIT  = 0x200,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_XTENSA, dynamic_tags: DT_XTENSA, ..Processor::PLAIN };
