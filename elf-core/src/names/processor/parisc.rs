//! PA-RISC (64-bit Runtime Architecture for PA-RISC 2.0; HP-UX).

use super::supplement::Processor;

names! {
    /// `sh_type` of PA-RISC.
    pub SHT_PARISC: u32 {
        SHT_PARISC_EXT     = 0x7000_0000,
        SHT_PARISC_UNWIND  = 0x7000_0001,
        SHT_PARISC_DOC     = 0x7000_0002,
        SHT_PARISC_ANNOT   = 0x7000_0003,
        SHT_PARISC_DLKM    = 0x7000_0004,
        SHT_PARISC_SYMEXTN = 0x7000_0008,
        SHT_PARISC_STUBS   = 0x7000_0009,
    }

    /// Reserved section indices of PA-RISC.
    pub SHN_PARISC: u16 {
        SHN_PARISC_ANSI_COMMON = 0xff00,
        SHN_PARISC_HUGE_COMMON = 0xff01,
    }

    /// `p_type` of PA-RISC and HP-UX.
    pub PT_PARISC: u32 {
        PT_HP_TLS           = 0x6000_0000,
        PT_HP_CORE_NONE     = 0x6000_0001,
        PT_HP_CORE_VERSION  = 0x6000_0002,
        PT_HP_CORE_KERNEL   = 0x6000_0003,
        PT_HP_CORE_COMM     = 0x6000_0004,
        PT_HP_CORE_PROC     = 0x6000_0005,
        PT_HP_CORE_LOADABLE = 0x6000_0006,
        PT_HP_CORE_STACK    = 0x6000_0007,
        PT_HP_CORE_SHM      = 0x6000_0008,
        PT_HP_CORE_MMF      = 0x6000_0009,
        PT_HP_PARALLEL      = 0x6000_0010,
        PT_HP_FASTBIND      = 0x6000_0011,
        PT_HP_OPT_ANNOT     = 0x6000_0012,
        PT_HP_HSL_ANNOT     = 0x6000_0013,
        PT_HP_STACK         = 0x6000_0014,
        PT_HP_CORE_UTSNAME  = 0x6000_0015,
        PT_PARISC_ARCHEXT   = 0x7000_0000,
        PT_PARISC_UNWIND    = 0x7000_0001,
        PT_PARISC_WEAKORDER = 0x7000_0002,
    }

    /// Symbol types of PA-RISC.
    pub STT_PARISC: u8 {
        STT_PARISC_MILLICODE = 13,
    }
}

flags! {
    /// `e_flags` of PA-RISC.
    pub EF_PARISC: u32 {
        EFA_PARISC_1_0     = 0x20b in 0xffff,
        EFA_PARISC_1_1     = 0x210 in 0xffff,
        EFA_PARISC_2_0     = 0x214 in 0xffff,
        EF_PARISC_TRAPNIL  = 0x1_0000,
        EF_PARISC_EXT      = 0x2_0000,
        EF_PARISC_LSB      = 0x4_0000,
        EF_PARISC_WIDE     = 0x8_0000,
        EF_PARISC_NO_KABP  = 0x10_0000,
        EF_PARISC_LAZYSWAP = 0x40_0000,
    }

    /// `sh_flags` of PA-RISC, without the bit GNU tools use otherwise.
    pub SHF_PARISC: u64 {
        SHF_PARISC_WEAKORDER = 0x1000_0000,
        SHF_PARISC_SHORT     = 0x2000_0000,
        SHF_PARISC_HUGE      = 0x4000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_PARISC,
    section_types: SHT_PARISC,
    section_flags: SHF_PARISC,
    section_indices: SHN_PARISC,
    segment_types: PT_PARISC,
    symbol_types: STT_PARISC,
    ..Processor::PLAIN
};
