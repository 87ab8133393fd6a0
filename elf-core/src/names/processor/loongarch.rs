//! LoongArch (LoongArch ELF psABI).

use super::supplement::Processor;

flags! {
    /// `e_flags` of LoongArch (psABI, "ABI type identification"): how floats are passed, and
    /// the version of the relocations.
    pub EF_LOONGARCH: u32 {
        EF_LOONGARCH_ABI_SOFT_FLOAT   = 0x1 in 0x7,
        EF_LOONGARCH_ABI_SINGLE_FLOAT = 0x2 in 0x7,
        EF_LOONGARCH_ABI_DOUBLE_FLOAT = 0x3 in 0x7,
        EF_LOONGARCH_OBJABI_V0        = 0x0 in 0xc0,
        EF_LOONGARCH_OBJABI_V1        = 0x40 in 0xc0,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_LOONGARCH, ..Processor::PLAIN };
