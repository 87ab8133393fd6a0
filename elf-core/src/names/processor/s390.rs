//! S/390 and z/Architecture (s390x psABI).

use super::supplement::Processor;

names! {
    /// `p_type` of S/390: the program wants page tables with guest state.
    pub PT_S390: u32 {
        PT_S390_PGSTE = 0x7000_0000,
    }
}

flags! {
    /// `e_flags` of S/390.
    pub EF_S390: u32 {
        EF_S390_HIGH_GPRS = 0x1,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_S390, segment_types: PT_S390, ..Processor::PLAIN };
