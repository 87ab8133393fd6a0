//! MIPS (MIPS psABI 4 and 5; IRIX; GNU).

use super::supplement::Processor;

names! {
    /// `sh_type` of MIPS (psABI 4, "Sections"; IRIX).
    pub SHT_MIPS: u32 {
        SHT_MIPS_LIBLIST       = 0x7000_0000,
        SHT_MIPS_MSYM          = 0x7000_0001,
        SHT_MIPS_CONFLICT      = 0x7000_0002,
        SHT_MIPS_GPTAB         = 0x7000_0003,
        SHT_MIPS_UCODE         = 0x7000_0004,
        SHT_MIPS_DEBUG         = 0x7000_0005,
        SHT_MIPS_REGINFO       = 0x7000_0006,
        SHT_MIPS_PACKAGE       = 0x7000_0007,
        SHT_MIPS_PACKSYM       = 0x7000_0008,
        SHT_MIPS_RELD          = 0x7000_0009,
        SHT_MIPS_IFACE         = 0x7000_000b,
        SHT_MIPS_CONTENT       = 0x7000_000c,
        SHT_MIPS_OPTIONS       = 0x7000_000d,
        SHT_MIPS_SHDR          = 0x7000_0010,
        SHT_MIPS_FDESC         = 0x7000_0011,
        SHT_MIPS_EXTSYM        = 0x7000_0012,
        SHT_MIPS_DENSE         = 0x7000_0013,
        SHT_MIPS_PDESC         = 0x7000_0014,
        SHT_MIPS_LOCSYM        = 0x7000_0015,
        SHT_MIPS_AUXSYM        = 0x7000_0016,
        SHT_MIPS_OPTSYM        = 0x7000_0017,
        SHT_MIPS_LOCSTR        = 0x7000_0018,
        SHT_MIPS_LINE          = 0x7000_0019,
        SHT_MIPS_RFDESC        = 0x7000_001a,
        SHT_MIPS_DELTASYM      = 0x7000_001b,
        SHT_MIPS_DELTAINST     = 0x7000_001c,
        SHT_MIPS_DELTACLASS    = 0x7000_001d,
        SHT_MIPS_DWARF         = 0x7000_001e,
        SHT_MIPS_DELTADECL     = 0x7000_001f,
        SHT_MIPS_SYMBOL_LIB    = 0x7000_0020,
        SHT_MIPS_EVENTS        = 0x7000_0021,
        SHT_MIPS_TRANSLATE     = 0x7000_0022,
        SHT_MIPS_PIXIE         = 0x7000_0023,
        SHT_MIPS_XLATE         = 0x7000_0024,
        SHT_MIPS_XLATE_DEBUG   = 0x7000_0025,
        SHT_MIPS_WHIRL         = 0x7000_0026,
        SHT_MIPS_EH_REGION     = 0x7000_0027,
        SHT_MIPS_XLATE_OLD     = 0x7000_0028,
        SHT_MIPS_PDR_EXCEPTION = 0x7000_0029,
        SHT_MIPS_ABIFLAGS      = 0x7000_002a,
        SHT_MIPS_XHASH         = 0x7000_002b,
    }

    /// Reserved section indices of MIPS (psABI 4, "Special Sections").
    pub SHN_MIPS: u16 {
        SHN_MIPS_ACOMMON    = 0xff00,
        SHN_MIPS_TEXT       = 0xff01,
        SHN_MIPS_DATA       = 0xff02,
        SHN_MIPS_SCOMMON    = 0xff03,
        SHN_MIPS_SUNDEFINED = 0xff04,
    }

    /// `p_type` of MIPS (psABI 5, "Program Header").
    pub PT_MIPS: u32 {
        PT_MIPS_REGINFO  = 0x7000_0000,
        PT_MIPS_RTPROC   = 0x7000_0001,
        PT_MIPS_OPTIONS  = 0x7000_0002,
        PT_MIPS_ABIFLAGS = 0x7000_0003,
    }

    /// `d_tag` of MIPS (psABI 5, "Dynamic Section"; IRIX; GNU).
    pub DT_MIPS: u64 {
        DT_MIPS_RLD_VERSION           = 0x7000_0001,
        DT_MIPS_TIME_STAMP            = 0x7000_0002,
        DT_MIPS_ICHECKSUM             = 0x7000_0003,
        DT_MIPS_IVERSION              = 0x7000_0004,
        DT_MIPS_FLAGS                 = 0x7000_0005,
        DT_MIPS_BASE_ADDRESS          = 0x7000_0006,
        DT_MIPS_MSYM                  = 0x7000_0007,
        DT_MIPS_CONFLICT              = 0x7000_0008,
        DT_MIPS_LIBLIST               = 0x7000_0009,
        DT_MIPS_LOCAL_GOTNO           = 0x7000_000a,
        DT_MIPS_CONFLICTNO            = 0x7000_000b,
        DT_MIPS_LIBLISTNO             = 0x7000_0010,
        DT_MIPS_SYMTABNO              = 0x7000_0011,
        DT_MIPS_UNREFEXTNO            = 0x7000_0012,
        DT_MIPS_GOTSYM                = 0x7000_0013,
        DT_MIPS_HIPAGENO              = 0x7000_0014,
        DT_MIPS_RLD_MAP               = 0x7000_0016,
        DT_MIPS_DELTA_CLASS           = 0x7000_0017,
        DT_MIPS_DELTA_CLASS_NO        = 0x7000_0018,
        DT_MIPS_DELTA_INSTANCE        = 0x7000_0019,
        DT_MIPS_DELTA_INSTANCE_NO     = 0x7000_001a,
        DT_MIPS_DELTA_RELOC           = 0x7000_001b,
        DT_MIPS_DELTA_RELOC_NO        = 0x7000_001c,
        DT_MIPS_DELTA_SYM             = 0x7000_001d,
        DT_MIPS_DELTA_SYM_NO          = 0x7000_001e,
        DT_MIPS_DELTA_CLASSSYM        = 0x7000_0020,
        DT_MIPS_DELTA_CLASSSYM_NO     = 0x7000_0021,
        DT_MIPS_CXX_FLAGS             = 0x7000_0022,
        DT_MIPS_PIXIE_INIT            = 0x7000_0023,
        DT_MIPS_SYMBOL_LIB            = 0x7000_0024,
        DT_MIPS_LOCALPAGE_GOTIDX      = 0x7000_0025,
        DT_MIPS_LOCAL_GOTIDX          = 0x7000_0026,
        DT_MIPS_HIDDEN_GOTIDX         = 0x7000_0027,
        DT_MIPS_PROTECTED_GOTIDX      = 0x7000_0028,
        DT_MIPS_OPTIONS               = 0x7000_0029,
        DT_MIPS_INTERFACE             = 0x7000_002a,
        DT_MIPS_DYNSTR_ALIGN          = 0x7000_002b,
        DT_MIPS_INTERFACE_SIZE        = 0x7000_002c,
        DT_MIPS_RLD_TEXT_RESOLVE_ADDR = 0x7000_002d,
        DT_MIPS_PERF_SUFFIX           = 0x7000_002e,
        DT_MIPS_COMPACT_SIZE          = 0x7000_002f,
        DT_MIPS_GP_VALUE              = 0x7000_0030,
        DT_MIPS_AUX_DYNAMIC           = 0x7000_0031,
        DT_MIPS_PLTGOT                = 0x7000_0032,
        DT_MIPS_RWPLT                 = 0x7000_0034,
        DT_MIPS_RLD_MAP_REL           = 0x7000_0035,
        DT_MIPS_XHASH                 = 0x7000_0036,
    }

    /// Bindings of MIPS.
    pub STB_MIPS: u8 {
        STB_MIPS_SPLIT_COMMON = 13,
    }
}

flags! {
    /// `e_flags` of MIPS (psABI 4, "ELF Header"; GNU): how code was made, the ABI, the processor, the instruction set.
    pub EF_MIPS: u32 {
        EF_MIPS_NOREORDER          = 0x1,
        EF_MIPS_PIC                = 0x2,
        EF_MIPS_CPIC               = 0x4,
        EF_MIPS_XGOT               = 0x8,
        EF_MIPS_UCODE              = 0x10,
        EF_MIPS_ABI2               = 0x20,
        EF_MIPS_OPTIONS_FIRST      = 0x80,
        EF_MIPS_32BITMODE          = 0x100,
        EF_MIPS_FP64               = 0x200,
        EF_MIPS_NAN2008            = 0x400,
        EF_MIPS_ABI_O32            = 0x1000 in 0xf000,
        EF_MIPS_ABI_O64            = 0x2000 in 0xf000,
        EF_MIPS_ABI_EABI32         = 0x3000 in 0xf000,
        EF_MIPS_ABI_EABI64         = 0x4000 in 0xf000,
        EF_MIPS_MACH_3900          = 0x81_0000 in 0xff_0000,
        EF_MIPS_MACH_4010          = 0x82_0000 in 0xff_0000,
        EF_MIPS_MACH_4100          = 0x83_0000 in 0xff_0000,
        EF_MIPS_MACH_4650          = 0x85_0000 in 0xff_0000,
        EF_MIPS_MACH_4120          = 0x87_0000 in 0xff_0000,
        EF_MIPS_MACH_4111          = 0x88_0000 in 0xff_0000,
        EF_MIPS_MACH_SB1           = 0x8a_0000 in 0xff_0000,
        EF_MIPS_MACH_OCTEON        = 0x8b_0000 in 0xff_0000,
        EF_MIPS_MACH_XLR           = 0x8c_0000 in 0xff_0000,
        EF_MIPS_MACH_OCTEON2       = 0x8d_0000 in 0xff_0000,
        EF_MIPS_MACH_OCTEON3       = 0x8e_0000 in 0xff_0000,
        EF_MIPS_MACH_5400          = 0x91_0000 in 0xff_0000,
        EF_MIPS_MACH_5900          = 0x92_0000 in 0xff_0000,
        EF_MIPS_MACH_IAMR2         = 0x93_0000 in 0xff_0000,
        EF_MIPS_MACH_5500          = 0x98_0000 in 0xff_0000,
        EF_MIPS_MACH_9000          = 0x99_0000 in 0xff_0000,
        EF_MIPS_MACH_LS2E          = 0xa0_0000 in 0xff_0000,
        EF_MIPS_MACH_LS2F          = 0xa1_0000 in 0xff_0000,
        EF_MIPS_MACH_GS464         = 0xa2_0000 in 0xff_0000,
        EF_MIPS_MACH_GS464E        = 0xa3_0000 in 0xff_0000,
        EF_MIPS_MACH_GS264E        = 0xa4_0000 in 0xff_0000,
        EF_MIPS_ARCH_ASE_MICROMIPS = 0x200_0000,
        EF_MIPS_ARCH_ASE_M16       = 0x400_0000,
        EF_MIPS_ARCH_ASE_MDMX      = 0x800_0000,
        EF_MIPS_ARCH_1             = 0x0 in 0xf000_0000,
        EF_MIPS_ARCH_2             = 0x1000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_3             = 0x2000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_4             = 0x3000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_5             = 0x4000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_32            = 0x5000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_64            = 0x6000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_32R2          = 0x7000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_64R2          = 0x8000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_32R6          = 0x9000_0000 in 0xf000_0000,
        EF_MIPS_ARCH_64R6          = 0xa000_0000 in 0xf000_0000,
    }

    /// `sh_flags` of MIPS (psABI 4, "Sections"; IRIX), without the two bits GNU tools use otherwise.
    pub SHF_MIPS: u64 {
        SHF_MIPS_NAMES   = 0x200_0000,
        SHF_MIPS_LOCAL   = 0x400_0000,
        SHF_MIPS_NOSTRIP = 0x800_0000,
        SHF_MIPS_GPREL   = 0x1000_0000,
        SHF_MIPS_MERGE   = 0x2000_0000,
        SHF_MIPS_ADDR    = 0x4000_0000,
    }

    /// `p_flags` of MIPS.
    pub PF_MIPS: u32 {
        PF_MIPS_LOCAL = 0x1000_0000,
    }

    /// `st_other` of MIPS (GNU): what reaches the symbol, and the encoding of its instructions. MIPS16 fills all of the
    /// high four bits, that of `PIC` too.
    pub STO_MIPS: u8 {
        STO_MIPS_OPTIONAL  = 0x4,
        STO_MIPS_PLT       = 0x8,
        STO_MIPS_PIC       = 0x20 in 0x30,
        STO_MIPS_MICROMIPS = 0x80 in 0xc0,
        STO_MIPS_MIPS16    = 0xf0 in 0xf0,
    }
}

pub(super) const PROCESSOR: Processor = Processor {
    header_flags: EF_MIPS,
    section_types: SHT_MIPS,
    section_flags: SHF_MIPS,
    section_indices: SHN_MIPS,
    segment_types: PT_MIPS,
    segment_flags: PF_MIPS,
    dynamic_tags: DT_MIPS,
    symbol_bindings: STB_MIPS,
    symbol_other: STO_MIPS,
    ..Processor::PLAIN
};
