//! 64-bit PowerPC (ELFv2 ABI).

use super::supplement::Processor;

names! {
    /// `d_tag` of 64-bit PowerPC (ELFv2 ABI 4.2, "Dynamic Section").
    pub DT_PPC64: u64 {
        DT_PPC64_GLINK = 0x7000_0000,
        DT_PPC64_OPD   = 0x7000_0001,
        DT_PPC64_OPDSZ = 0x7000_0002,
        DT_PPC64_OPT   = 0x7000_0003,
    }
}

/// In `e_flags` of 64-bit PowerPC: version 1 or 2 of the ABI, or 0 if it does not matter (ELFv2 ABI 3.1.2).
pub const EF_PPC64_ABI: u32 = 3;
/// In `st_other` of 64-bit PowerPC: how far the local entry lies behind the global one, encoded (ELFv2 ABI 3.4.1).
pub const STO_PPC64_LOCAL_MASK: u8 = 0xe0;

pub(super) const PROCESSOR: Processor = Processor { dynamic_tags: DT_PPC64, ..Processor::PLAIN };
