//! Nios II (Nios II ABI).

use super::supplement::Processor;

names! {
    /// `d_tag` of Nios II.
    pub DT_NIOS2: u64 {
        DT_NIOS2_GP = 0x7000_0002,
    }
}

flags! {
    /// `e_flags` of Nios II: the instruction set.
    pub EF_NIOS2: u32 {
        EF_NIOS2_ARCH_R1 = 0x0 in 0x1,
        EF_NIOS2_ARCH_R2 = 0x1 in 0x1,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_NIOS2, dynamic_tags: DT_NIOS2, ..Processor::PLAIN };
