//! C-SKY (C-SKY V2 ABI).

use super::supplement::Processor;

names! {
    /// `sh_type` of C-SKY.
    pub SHT_CSKY: u32 {
        SHT_CSKY_ATTRIBUTES = 0x7000_0001,
    }
}

flags! {
    /// `e_flags` of C-SKY: the processor, its extensions, the ABI.
    pub EF_CSKY: u32 {
        EF_CSKY_807   = 0x6 in 0x1f,
        EF_CSKY_810   = 0x8 in 0x1f,
        EF_CSKY_803   = 0x9 in 0x1f,
        EF_CSKY_801   = 0xa in 0x1f,
        EF_CSKY_860   = 0xb in 0x1f,
        EF_CSKY_802   = 0x10 in 0x1f,
        EF_CSKY_805   = 0x11 in 0x1f,
        EF_CSKY_800   = 0x1f in 0x1f,
        EF_CSKY_FLOAT = 0x2000,
        EF_CSKY_DSP   = 0x4000,
        EF_CSKY_EFV1  = 0x100_0000 in 0xf00_0000,
        EF_CSKY_EFV2  = 0x200_0000 in 0xf00_0000,
        EF_CSKY_EFV3  = 0x300_0000 in 0xf00_0000,
        EF_CSKY_ABIV1 = 0x1000_0000 in 0xf000_0000,
        EF_CSKY_ABIV2 = 0x2000_0000 in 0xf000_0000,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_CSKY, section_types: SHT_CSKY, ..Processor::PLAIN };
