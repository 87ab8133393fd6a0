//! NVIDIA GPUs. No specification is public: the numbers were read from cubins, the names from NVIDIA's tools.
//!
//! Cubins come in two forms: OS ABI [`ELFOSABI_CUDA`](crate::names::ELFOSABI_CUDA) with ABI version 7, and [`ELFOSABI_CUDA_V2`] with ABI version 8.

use super::supplement::Processor;

names! {
    /// `e_ident[EI_OSABI]` of newer cubins; older ones have [`ELFOSABI_CUDA`](crate::names::ELFOSABI_CUDA).
    pub ELFOSABI_OF_CUDA: u8 {
        ELFOSABI_CUDA_V2 = 65,
    }

    /// `sh_type` of cubins. Tools name them, save `CAPMERC` and those with `MERCURY`, which are named for the sections
    /// that carry them (`.nv.capmerc.*`, `.nv.merc.*`).
    pub SHT_CUDA: u32 {
        SHT_CUDA_INFO                               = 0x7000_0000,
        SHT_CUDA_CALLGRAPH                          = 0x7000_0001,
        SHT_CUDA_PROTOTYPE                          = 0x7000_0002,
        SHT_CUDA_RESOLVED_RELA                      = 0x7000_0003,
        SHT_CUDA_METADATA                           = 0x7000_0004,
        SHT_CUDA_CONSTANT                           = 0x7000_0006,
        SHT_CUDA_GLOBAL                             = 0x7000_0007,
        SHT_CUDA_GLOBAL_INIT                        = 0x7000_0008,
        SHT_CUDA_LOCAL                              = 0x7000_0009,
        SHT_CUDA_SHARED                             = 0x7000_000a,
        SHT_CUDA_RELOCINFO                          = 0x7000_000b,
        SHT_CUDA_UFT                                = 0x7000_000e,
        SHT_CUDA_UIDX                               = 0x7000_0010,
        SHT_CUDA_UFT_ENTRY                          = 0x7000_0011,
        SHT_CUDA_UDT                                = 0x7000_0012,
        SHT_CUDA_UDT_ENTRY                          = 0x7000_0014,
        SHT_CUDA_RESERVED_SHARED                    = 0x7000_0015,
        SHT_CUDA_CAPMERC                            = 0x7000_0016,
        SHT_CUDA_CONSTANT_B0                        = 0x7000_0064,
        SHT_CUDA_CONSTANT_B1                        = 0x7000_0065,
        SHT_CUDA_CONSTANT_B2                        = 0x7000_0066,
        SHT_CUDA_CONSTANT_B3                        = 0x7000_0067,
        SHT_CUDA_CONSTANT_B4                        = 0x7000_0068,
        SHT_CUDA_CONSTANT_B5                        = 0x7000_0069,
        SHT_CUDA_CONSTANT_B6                        = 0x7000_006a,
        SHT_CUDA_CONSTANT_B7                        = 0x7000_006b,
        SHT_CUDA_CONSTANT_B8                        = 0x7000_006c,
        SHT_CUDA_CONSTANT_B9                        = 0x7000_006d,
        SHT_CUDA_CONSTANT_B10                       = 0x7000_006e,
        SHT_CUDA_CONSTANT_B11                       = 0x7000_006f,
        SHT_CUDA_CONSTANT_B12                       = 0x7000_0070,
        SHT_CUDA_CONSTANT_B13                       = 0x7000_0071,
        SHT_CUDA_CONSTANT_B14                       = 0x7000_0072,
        SHT_CUDA_CONSTANT_B15                       = 0x7000_0073,
        SHT_CUDA_CONSTANT_B16                       = 0x7000_0074,
        SHT_CUDA_CONSTANT_B17                       = 0x7000_0075,
        SHT_CUDA_MERCURY_ENTRY_IMAGE_HEADER_INDICES = 0x7000_0079,
        SHT_CUDA_MERCURY_CONSTANT_USER              = 0x7000_007c,
        SHT_CUDA_MERCURY_CONSTANT_PIC               = 0x7000_007d,
        SHT_CUDA_MERCURY_RELA                       = 0x7000_0082,
        SHT_CUDA_MERCURY_INFO                       = 0x7000_0083,
        SHT_CUDA_MERCURY_CONSTANT_OPT               = 0x7000_0084,
        SHT_CUDA_MERCURY_SYMTAB                     = 0x7000_0085,
        SHT_CUDA_COMPAT_INFO                        = 0x7000_0086,
        SHT_CUDA_MERCURY_RESOLVED_RELA              = 0x7000_0088,
        SHT_CUDA_MERCURY_CALLGRAPH                  = 0x7000_008a,
        SHT_CUDA_MERCURY_PROTOTYPE                  = 0x7000_008b,
    }

    /// Symbol types of cubins.
    pub STT_CUDA: u8 {
        STT_CUDA_TEXTURE = 10,
        STT_CUDA_SAMPLER = 11,
        STT_CUDA_SURFACE = 12,
        STT_CUDA_OBJECT  = 13,
    }
}

flags! {
    /// `e_flags` of older cubins. Bits 0 to 7 are the SM, [`EF_CUDA_VIRTUAL_SM`] the PTX target: numbers, not names.
    /// Toolkit 11.8 had another name for `ACCELERATORS`.
    pub EF_CUDA: u32 {
        EF_CUDA_TEXMODE_UNIFIED     = 0x100,
        EF_CUDA_TEXMODE_INDEPENDENT = 0x200,
        EF_CUDA_64BIT_ADDRESS       = 0x400,
        EF_CUDA_ACCELERATORS        = 0x800,
        EF_CUDA_SW_1729687_v2       = 0x1000,
    }

    /// `e_flags` of newer cubins, of which [`EF_CUDA_V2_SM`] is a number. `ACCELERATORS` (our name) is set by toolkits
    /// 12.8 and 12.9 only; what bits 1 and 2 mean is not known.
    pub EF_CUDA_V2: u32 {
        EF_CUDA_V2_ACCELERATORS = 0x8,
    }

    /// `sh_flags` of cubins: what a note's section holds, and that a section belongs to the Mercury form of the code
    /// (the last name is ours). In a section of code, [`SHF_BARRIERS`] is a number.
    pub SHF_CUDA: u64 {
        SHF_NOTE_NV_CUINFO = 0x100_0000 in 0x100_0004,
        SHF_NOTE_NV_TKINFO = 0x200_0000 in 0x200_0004,
        SHF_CUDA_MERCURY   = 0x1000_0000,
    }

    /// `st_other` of all symbols of cubins: the memory that they are in, in relocatable files.
    pub STO_CUDA: u8 {
        STO_CUDA_GLOBAL          = 0x20 in 0xe0,
        STO_CUDA_SHARED          = 0x40 in 0xe0,
        STO_CUDA_LOCAL           = 0x60 in 0xe0,
        STO_CUDA_CONSTANT        = 0x80 in 0xe0,
        STO_CUDA_RESERVED_SHARED = 0xa0 in 0xe0,
        STO_CUDA_OBSCURE         = 0x8,
    }

    /// `st_other` of functions of cubins: `ENTRY` is a kernel.
    pub STO_CUDA_FUNC: u8 {
        STO_CUDA_ENTRY        = 0x10,
        STO_CUDA_UNIFIED_FUNC = 0x4,
    }

    /// `st_other` of objects of cubins.
    pub STO_CUDA_OBJECT: u8 {
        STO_CUDA_UNIFIED_OBJECT = 0x10,
        STO_CUDA_MANAGED        = 0x4,
    }
}

/// In `e_flags` of older cubins: the SM, as 90 for `sm_90`.
pub const EF_CUDA_SM: u32 = 0xff;
/// In `e_flags` of older cubins: the PTX target, as 90 for `compute_90`, 16 bits up.
pub const EF_CUDA_VIRTUAL_SM: u32 = 0xff_0000;
/// In `e_flags` of newer cubins: the SM, 8 bits up.
pub const EF_CUDA_V2_SM: u32 = 0xff_ff00;
/// In `sh_flags` of code: how many barriers it uses, 20 bits up; newer toolkits leave it 0.
pub const SHF_BARRIERS: u64 = 0x7f0_0000;

pub(super) const PROCESSOR: Processor = Processor {
    os_abis: ELFOSABI_OF_CUDA,
    header_flags: EF_CUDA,
    section_types: SHT_CUDA,
    section_flags: SHF_CUDA,
    symbol_types: STT_CUDA,
    symbol_other: STO_CUDA,
    ..Processor::PLAIN
};
