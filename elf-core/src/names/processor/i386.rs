//! i386, and the program properties it has in common with x86-64 (x86-64 psABI; Linux Extensions to gABI).

use super::supplement::Processor;

names! {
    /// `pr_type` of x86-64 and i386 (x86-64 psABI, "Program Property"; `COMPAT` ones are of early tools).
    pub GNU_PROPERTY_X86: u32 {
        GNU_PROPERTY_X86_COMPAT_ISA_1_USED     = 0xc000_0000,
        GNU_PROPERTY_X86_COMPAT_ISA_1_NEEDED   = 0xc000_0001,
        GNU_PROPERTY_X86_FEATURE_1_AND         = 0xc000_0002,
        GNU_PROPERTY_X86_COMPAT_2_ISA_1_NEEDED = 0xc000_8000,
        GNU_PROPERTY_X86_FEATURE_2_NEEDED      = 0xc000_8001,
        GNU_PROPERTY_X86_ISA_1_NEEDED          = 0xc000_8002,
        GNU_PROPERTY_X86_COMPAT_2_ISA_1_USED   = 0xc001_0000,
        GNU_PROPERTY_X86_FEATURE_2_USED        = 0xc001_0001,
        GNU_PROPERTY_X86_ISA_1_USED            = 0xc001_0002,
    }
}

flags! {
    /// `GNU_PROPERTY_X86_FEATURE_1_AND` (x86-64 psABI, "Program Property").
    pub GNU_PROPERTY_X86_FEATURE_1: u32 {
        GNU_PROPERTY_X86_FEATURE_1_IBT     = 0x1,
        GNU_PROPERTY_X86_FEATURE_1_SHSTK   = 0x2,
        GNU_PROPERTY_X86_FEATURE_1_LAM_U48 = 0x4,
        GNU_PROPERTY_X86_FEATURE_1_LAM_U57 = 0x8,
    }

    /// `GNU_PROPERTY_X86_FEATURE_2_USED` and `_NEEDED` (x86-64 psABI, "Program Property").
    pub GNU_PROPERTY_X86_FEATURE_2: u32 {
        GNU_PROPERTY_X86_FEATURE_2_X86      = 0x1,
        GNU_PROPERTY_X86_FEATURE_2_X87      = 0x2,
        GNU_PROPERTY_X86_FEATURE_2_MMX      = 0x4,
        GNU_PROPERTY_X86_FEATURE_2_XMM      = 0x8,
        GNU_PROPERTY_X86_FEATURE_2_YMM      = 0x10,
        GNU_PROPERTY_X86_FEATURE_2_ZMM      = 0x20,
        GNU_PROPERTY_X86_FEATURE_2_FXSR     = 0x40,
        GNU_PROPERTY_X86_FEATURE_2_XSAVE    = 0x80,
        GNU_PROPERTY_X86_FEATURE_2_XSAVEOPT = 0x100,
        GNU_PROPERTY_X86_FEATURE_2_XSAVEC   = 0x200,
        GNU_PROPERTY_X86_FEATURE_2_TMM      = 0x400,
        GNU_PROPERTY_X86_FEATURE_2_MASK     = 0x800,
    }

    /// `GNU_PROPERTY_X86_ISA_1_USED` and `_NEEDED` (x86-64 psABI, "Program Property").
    pub GNU_PROPERTY_X86_ISA_1: u32 {
        GNU_PROPERTY_X86_ISA_1_BASELINE = 0x1,
        GNU_PROPERTY_X86_ISA_1_V2       = 0x2,
        GNU_PROPERTY_X86_ISA_1_V3       = 0x4,
        GNU_PROPERTY_X86_ISA_1_V4       = 0x8,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    properties: GNU_PROPERTY_X86,
    property_flags: &[
        (GNU_PROPERTY_X86_FEATURE_1_AND, GNU_PROPERTY_X86_FEATURE_1),
        (GNU_PROPERTY_X86_FEATURE_2_NEEDED, GNU_PROPERTY_X86_FEATURE_2),
        (GNU_PROPERTY_X86_FEATURE_2_USED, GNU_PROPERTY_X86_FEATURE_2),
        (GNU_PROPERTY_X86_ISA_1_NEEDED, GNU_PROPERTY_X86_ISA_1),
        (GNU_PROPERTY_X86_ISA_1_USED, GNU_PROPERTY_X86_ISA_1),
    ],
    ..Processor::PLAIN
};
