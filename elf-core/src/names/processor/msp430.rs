//! MSP430 (numbers as GNU tools use them).

use super::supplement::Processor;

names! {
    /// `sh_type` of MSP430.
    pub SHT_MSP430: u32 {
        SHT_MSP430_ATTRIBUTES  = 0x7000_0003,
        SHT_MSP430_SEC_FLAGS   = 0x7f00_0005,
        SHT_MSP430_SYM_ALIASES = 0x7f00_0006,
    }
}

flags! {
    /// `e_flags` of MSP430: the processor.
    pub EF_MSP430: u32 {
        EF_MSP430_MACH_MSP430x11   = 11 in 0xff,
        EF_MSP430_MACH_MSP430x12   = 12 in 0xff,
        EF_MSP430_MACH_MSP430x13   = 13 in 0xff,
        EF_MSP430_MACH_MSP430x14   = 14 in 0xff,
        EF_MSP430_MACH_MSP430x15   = 15 in 0xff,
        EF_MSP430_MACH_MSP430x16   = 16 in 0xff,
        EF_MSP430_MACH_MSP430x20   = 20 in 0xff,
        EF_MSP430_MACH_MSP430x22   = 22 in 0xff,
        EF_MSP430_MACH_MSP430x23   = 23 in 0xff,
        EF_MSP430_MACH_MSP430x24   = 24 in 0xff,
        EF_MSP430_MACH_MSP430x26   = 26 in 0xff,
        EF_MSP430_MACH_MSP430x31   = 31 in 0xff,
        EF_MSP430_MACH_MSP430x32   = 32 in 0xff,
        EF_MSP430_MACH_MSP430x33   = 33 in 0xff,
        EF_MSP430_MACH_MSP430x41   = 41 in 0xff,
        EF_MSP430_MACH_MSP430x42   = 42 in 0xff,
        EF_MSP430_MACH_MSP430x43   = 43 in 0xff,
        EF_MSP430_MACH_MSP430x44   = 44 in 0xff,
        EF_MSP430_MACH_MSP430X     = 45 in 0xff,
        EF_MSP430_MACH_MSP430x46   = 46 in 0xff,
        EF_MSP430_MACH_MSP430x47   = 47 in 0xff,
        EF_MSP430_MACH_MSP430x54   = 54 in 0xff,
        EF_MSP430_MACH_MSP430x11x1 = 110 in 0xff,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_MSP430, section_types: SHT_MSP430, ..Processor::PLAIN };
