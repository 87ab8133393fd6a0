//! TMS320C6000 (C6000 EABI 13 to 15).

use super::supplement::Processor;

names! {
    /// `e_ident[EI_OSABI]` of C6000 (C6000 EABI 14.1, "ELF Identification").
    pub ELFOSABI_C6000: u8 {
        ELFOSABI_C6000_ELFABI = 64,
        ELFOSABI_C6000_LINUX  = 65,
    }

    /// `sh_type` of C6000 (C6000 EABI 14.3, "Sections").
    pub SHT_C6000: u32 {
        SHT_C6000_UNWIND     = 0x7000_0001,
        SHT_C6000_PREEMPTMAP = 0x7000_0002,
        SHT_C6000_ATTRIBUTES = 0x7000_0003,
        SHT_TI_ICODE         = 0x7f00_0000,
        SHT_TI_XREF          = 0x7f00_0001,
        SHT_TI_HANDLER       = 0x7f00_0002,
        SHT_TI_INITINFO      = 0x7f00_0003,
        SHT_TI_PHATTRS       = 0x7f00_0004,
    }

    /// Reserved section indices of C6000.
    pub SHN_C6000: u16 {
        SHN_TIC6X_SCOMMON = 0xff00,
    }

    /// `p_type` of C6000 (C6000 EABI 15, "Program Header").
    pub PT_C6000: u32 {
        PT_C6000_PHATTR = 0x7000_0000,
    }

    /// `d_tag` of C6000 (C6000 EABI 15, "Dynamic Section").
    pub DT_C6000: u64 {
        DT_C6000_GSYM_OFFSET = 0x6000_000d,
        DT_C6000_GSTR_OFFSET = 0x6000_000f,
        DT_C6000_DSBT_BASE   = 0x7000_0000,
        DT_C6000_DSBT_SIZE   = 0x7000_0001,
        DT_C6000_PREEMPTMAP  = 0x7000_0002,
        DT_C6000_DSBT_INDEX  = 0x7000_0003,
    }
}

flags! {
    /// `e_flags` of C6000 (C6000 EABI 14.1, "ELF Header").
    pub EF_C6000: u32 {
        EF_C6000_REL = 0x1,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    os_abis: ELFOSABI_C6000,
    header_flags: EF_C6000,
    section_types: SHT_C6000,
    section_indices: SHN_C6000,
    segment_types: PT_C6000,
    dynamic_tags: DT_C6000,
    ..Processor::PLAIN
};
