//! AVR (numbers as GNU tools use them).

use super::supplement::Processor;

flags! {
    /// `e_flags` of AVR: the instruction set, and whether the linker may relax.
    pub EF_AVR: u32 {
        EF_AVR_ARCH_AVR1          = 1 in 0x7f,
        EF_AVR_ARCH_AVR2          = 2 in 0x7f,
        EF_AVR_ARCH_AVR3          = 3 in 0x7f,
        EF_AVR_ARCH_AVR4          = 4 in 0x7f,
        EF_AVR_ARCH_AVR5          = 5 in 0x7f,
        EF_AVR_ARCH_AVR6          = 6 in 0x7f,
        EF_AVR_ARCH_AVR25         = 25 in 0x7f,
        EF_AVR_ARCH_AVR31         = 31 in 0x7f,
        EF_AVR_ARCH_AVR35         = 35 in 0x7f,
        EF_AVR_ARCH_AVR51         = 51 in 0x7f,
        EF_AVR_ARCH_AVRTINY       = 100 in 0x7f,
        EF_AVR_ARCH_XMEGA1        = 101 in 0x7f,
        EF_AVR_ARCH_XMEGA2        = 102 in 0x7f,
        EF_AVR_ARCH_XMEGA3        = 103 in 0x7f,
        EF_AVR_ARCH_XMEGA4        = 104 in 0x7f,
        EF_AVR_ARCH_XMEGA5        = 105 in 0x7f,
        EF_AVR_ARCH_XMEGA6        = 106 in 0x7f,
        EF_AVR_ARCH_XMEGA7        = 107 in 0x7f,
        EF_AVR_LINKRELAX_PREPARED = 0x80,
    }
}

pub(super) const PROCESSOR: Processor = Processor { header_flags: EF_AVR, ..Processor::PLAIN };
