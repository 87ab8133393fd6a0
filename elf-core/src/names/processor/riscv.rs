//! RISC-V (RISC-V psABI).

use super::supplement::Processor;

names! {
    /// `sh_type` of RISC-V (psABI, "Section Types").
    pub SHT_RISCV: u32 {
        SHT_RISCV_ATTRIBUTES = 0x7000_0003,
    }

    /// `p_type` of RISC-V (psABI, "Program Header Table").
    pub PT_RISCV: u32 {
        PT_RISCV_ATTRIBUTES = 0x7000_0003,
    }

    /// `d_tag` of RISC-V (psABI, "Dynamic Section").
    pub DT_RISCV: u64 {
        DT_RISCV_VARIANT_CC = 0x7000_0001,
    }

    /// `pr_type` of RISC-V (psABI, "Program Property").
    pub GNU_PROPERTY_RISCV: u32 {
        GNU_PROPERTY_RISCV_FEATURE_1_AND = 0xc000_0000,
    }
}

flags! {
    /// `e_flags` of RISC-V (psABI, "File Header").
    pub EF_RISCV: u32 {
        EF_RISCV_RVC              = 0x1,
        EF_RISCV_FLOAT_ABI_SOFT   = 0x0 in 0x6,
        EF_RISCV_FLOAT_ABI_SINGLE = 0x2 in 0x6,
        EF_RISCV_FLOAT_ABI_DOUBLE = 0x4 in 0x6,
        EF_RISCV_FLOAT_ABI_QUAD   = 0x6 in 0x6,
        EF_RISCV_RVE              = 0x8,
        EF_RISCV_TSO              = 0x10,
        EF_RISCV_RV64ILP32        = 0x20,
        EF_RISCV_RVY              = 0x40,
    }

    /// `st_other` of RISC-V (psABI, "Symbol Table").
    pub STO_RISCV: u8 {
        STO_RISCV_VARIANT_CC = 0x80,
    }

    /// `GNU_PROPERTY_RISCV_FEATURE_1_AND` (psABI, "Program Property").
    pub GNU_PROPERTY_RISCV_FEATURE_1: u32 {
        GNU_PROPERTY_RISCV_FEATURE_1_CFI_LP_UNLABELED = 0x1,
        GNU_PROPERTY_RISCV_FEATURE_1_CFI_SS           = 0x2,
        GNU_PROPERTY_RISCV_FEATURE_1_CFI_LP_FUNC_SIG  = 0x4,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_RISCV,
    section_types: SHT_RISCV,
    segment_types: PT_RISCV,
    dynamic_tags: DT_RISCV,
    symbol_other: STO_RISCV,
    properties: GNU_PROPERTY_RISCV,
    property_flags: &[(GNU_PROPERTY_RISCV_FEATURE_1_AND, GNU_PROPERTY_RISCV_FEATURE_1)],
    ..Processor::PLAIN
};
