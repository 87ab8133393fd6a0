//! Arm, 32 bits (AAELF32).

use super::supplement::Processor;

names! {
    /// `e_ident[EI_OSABI]` of Arm (AAELF32, "ELF Identification"; Arm FDPIC ABI).
    pub ELFOSABI_OF_ARM: u8 {
        ELFOSABI_ARM_AEABI = 64,
        ELFOSABI_ARM_FDPIC = 65,
    }

    /// `sh_type` of Arm (AAELF32, "Section Types").
    pub SHT_ARM: u32 {
        SHT_ARM_EXIDX          = 0x7000_0001,
        SHT_ARM_PREEMPTMAP     = 0x7000_0002,
        SHT_ARM_ATTRIBUTES     = 0x7000_0003,
        SHT_ARM_DEBUGOVERLAY   = 0x7000_0004,
        SHT_ARM_OVERLAYSECTION = 0x7000_0005,
    }

    /// `p_type` of Arm (AAELF32, "Program Header").
    pub PT_ARM: u32 {
        PT_ARM_ARCHEXT = 0x7000_0000,
        PT_ARM_EXIDX   = 0x7000_0001,
    }

    /// Symbol types of Arm, from before the EABI.
    pub STT_ARM: u8 {
        STT_ARM_TFUNC = 13,
        STT_ARM_16BIT = 15,
    }
}

flags! {
    /// `e_flags` of Arm (AAELF32, "ELF Header"): the version of the EABI, and what version 5 defines.
    pub EF_ARM: u32 {
        EF_ARM_EABI_UNKNOWN   = 0x0 in 0xff00_0000,
        EF_ARM_EABI_VER1      = 0x100_0000 in 0xff00_0000,
        EF_ARM_EABI_VER2      = 0x200_0000 in 0xff00_0000,
        EF_ARM_EABI_VER3      = 0x300_0000 in 0xff00_0000,
        EF_ARM_EABI_VER4      = 0x400_0000 in 0xff00_0000,
        EF_ARM_EABI_VER5      = 0x500_0000 in 0xff00_0000,
        EF_ARM_ABI_FLOAT_SOFT = 0x200,
        EF_ARM_ABI_FLOAT_HARD = 0x400,
        EF_ARM_LE8            = 0x40_0000,
        EF_ARM_BE8            = 0x80_0000,
    }

    /// `sh_flags` of Arm (AAELF32, "Section Attribute Flags").
    pub SHF_ARM: u64 {
        SHF_ARM_PURECODE = 0x2000_0000,
    }

    /// `p_flags` of Arm, from before the EABI.
    pub PF_ARM: u32 {
        PF_ARM_SB  = 0x1000_0000,
        PF_ARM_PI  = 0x2000_0000,
        PF_ARM_ABS = 0x4000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    os_abis: ELFOSABI_OF_ARM,
    header_flags: EF_ARM,
    section_types: SHT_ARM,
    section_flags: SHF_ARM,
    segment_types: PT_ARM,
    segment_flags: PF_ARM,
    symbol_types: STT_ARM,
    ..Processor::PLAIN
};
