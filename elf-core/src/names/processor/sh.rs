//! SuperH (numbers as GNU tools use them).

use super::supplement::Processor;

flags! {
    /// `e_flags` of SuperH: the processor, and position-independent code.
    pub EF_SH: u32 {
        EF_SH_UNKNOWN      = 0 in 0x1f,
        EF_SH1             = 1 in 0x1f,
        EF_SH2             = 2 in 0x1f,
        EF_SH3             = 3 in 0x1f,
        EF_SH_DSP          = 4 in 0x1f,
        EF_SH3_DSP         = 5 in 0x1f,
        EF_SH4AL_DSP       = 6 in 0x1f,
        EF_SH3E            = 8 in 0x1f,
        EF_SH4             = 9 in 0x1f,
        EF_SH5             = 10 in 0x1f,
        EF_SH2E            = 11 in 0x1f,
        EF_SH4A            = 12 in 0x1f,
        EF_SH2A            = 13 in 0x1f,
        EF_SH4_NOFPU       = 16 in 0x1f,
        EF_SH4A_NOFPU      = 17 in 0x1f,
        EF_SH4_NOMMU_NOFPU = 18 in 0x1f,
        EF_SH2A_NOFPU      = 19 in 0x1f,
        EF_SH3_NOMMU       = 20 in 0x1f,
        EF_SH2A_SH4_NOFPU  = 21 in 0x1f,
        EF_SH2A_SH3_NOFPU  = 22 in 0x1f,
        EF_SH2A_SH4        = 23 in 0x1f,
        EF_SH2A_SH3E       = 24 in 0x1f,
        EF_SH_PIC          = 0x100,
        EF_SH_FDPIC        = 0x8000,
    }
}

pub(super) const PROCESSOR: Processor = Processor { header_flags: EF_SH, ..Processor::PLAIN };
