//! Hexagon (Hexagon ABI).

use super::supplement::Processor;

names! {
    /// `sh_type` of Hexagon.
    pub SHT_HEXAGON: u32 {
        SHT_HEX_ORDERED        = 0x7000_0000,
        SHT_HEXAGON_ATTRIBUTES = 0x7000_0003,
    }

    /// Reserved section indices of Hexagon: common symbols by the size of access.
    pub SHN_HEXAGON: u16 {
        SHN_HEXAGON_SCOMMON   = 0xff00,
        SHN_HEXAGON_SCOMMON_1 = 0xff01,
        SHN_HEXAGON_SCOMMON_2 = 0xff02,
        SHN_HEXAGON_SCOMMON_4 = 0xff03,
        SHN_HEXAGON_SCOMMON_8 = 0xff04,
    }

    /// `d_tag` of Hexagon.
    pub DT_HEXAGON: u64 {
        DT_HEXAGON_SYMSZ = 0x7000_0000,
        DT_HEXAGON_VER   = 0x7000_0001,
        DT_HEXAGON_PLT   = 0x7000_0002,
    }
}

flags! {
    /// `e_flags` of Hexagon: the processor.
    pub EF_HEXAGON: u32 {
        EF_HEXAGON_MACH_V2   = 0x1 in 0xffff,
        EF_HEXAGON_MACH_V3   = 0x2 in 0xffff,
        EF_HEXAGON_MACH_V4   = 0x3 in 0xffff,
        EF_HEXAGON_MACH_V5   = 0x4 in 0xffff,
        EF_HEXAGON_MACH_V55  = 0x5 in 0xffff,
        EF_HEXAGON_MACH_V60  = 0x60 in 0xffff,
        EF_HEXAGON_MACH_V62  = 0x62 in 0xffff,
        EF_HEXAGON_MACH_V65  = 0x65 in 0xffff,
        EF_HEXAGON_MACH_V66  = 0x66 in 0xffff,
        EF_HEXAGON_MACH_V67  = 0x67 in 0xffff,
        EF_HEXAGON_MACH_V68  = 0x68 in 0xffff,
        EF_HEXAGON_MACH_V69  = 0x69 in 0xffff,
        EF_HEXAGON_MACH_V71  = 0x71 in 0xffff,
        EF_HEXAGON_MACH_V73  = 0x73 in 0xffff,
        EF_HEXAGON_MACH_V75  = 0x75 in 0xffff,
        EF_HEXAGON_MACH_V79  = 0x79 in 0xffff,
        EF_HEXAGON_MACH_V67T = 0x8067 in 0xffff,
        EF_HEXAGON_MACH_V71T = 0x8071 in 0xffff,
    }

    /// `sh_flags` of Hexagon.
    pub SHF_HEXAGON: u64 {
        SHF_HEX_GPREL = 0x1000_0000,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_HEXAGON,
    section_types: SHT_HEXAGON,
    section_flags: SHF_HEXAGON,
    section_indices: SHN_HEXAGON,
    dynamic_tags: DT_HEXAGON,
    ..Processor::PLAIN
};
