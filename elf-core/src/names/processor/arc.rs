//! ARC (ARC ELF ABI).

use super::supplement::Processor;

names! {
    /// `sh_type` of ARC.
    pub SHT_ARC: u32 {
        SHT_ARC_ATTRIBUTES = 0x7000_0001,
    }
}

flags! {
    /// `e_flags` of ARC: the processor, the version of the Linux system call interface.
    pub EF_ARC: u32 {
        E_ARC_MACH_ARC600  = 0x2 in 0xff,
        E_ARC_MACH_ARC700  = 0x3 in 0xff,
        E_ARC_MACH_ARC601  = 0x4 in 0xff,
        EF_ARC_CPU_ARCV2EM = 0x5 in 0xff,
        EF_ARC_CPU_ARCV2HS = 0x6 in 0xff,
        E_ARC_OSABI_ORIG   = 0x0 in 0xf00,
        E_ARC_OSABI_V2     = 0x200 in 0xf00,
        E_ARC_OSABI_V3     = 0x300 in 0xf00,
        E_ARC_OSABI_V4     = 0x400 in 0xf00,
    }
}

pub(super) const PROCESSOR: Processor =
    Processor { header_flags: EF_ARC, section_types: SHT_ARC, ..Processor::PLAIN };
