//! AMDGPU (AMDGPU usage guide, "ELF Code Object").

use super::supplement::Processor;
use crate::names::table::Flags;

names! {
    /// `e_ident[EI_OSABI]` of AMDGPU (AMDGPU usage guide, "Header").
    pub ELFOSABI_AMDGPU: u8 {
        ELFOSABI_AMDGPU_HSA    = 64,
        ELFOSABI_AMDGPU_PAL    = 65,
        ELFOSABI_AMDGPU_MESA3D = 66,
    }

    /// Symbol types of AMDGPU: a kernel, in code objects of version 2.
    pub STT_AMDGPU: u8 {
        STT_AMDGPU_HSA_KERNEL = 10,
    }

    /// Reserved section indices of AMDGPU: a variable in local data share (AMDGPU usage guide, "Symbols").
    pub SHN_AMDGPU: u16 {
        SHN_AMDGPU_LDS = 0xff00,
    }
}

flags! {
    /// Low byte of `e_flags` of AMDGPU: the processor (AMDGPU usage guide, "Header").
    pub EF_AMDGPU_MACH: u32 {
        EF_AMDGPU_MACH_R600_R600              = 0x01 in 0xff,
        EF_AMDGPU_MACH_R600_R630              = 0x02 in 0xff,
        EF_AMDGPU_MACH_R600_RS880             = 0x03 in 0xff,
        EF_AMDGPU_MACH_R600_RV670             = 0x04 in 0xff,
        EF_AMDGPU_MACH_R600_RV710             = 0x05 in 0xff,
        EF_AMDGPU_MACH_R600_RV730             = 0x06 in 0xff,
        EF_AMDGPU_MACH_R600_RV770             = 0x07 in 0xff,
        EF_AMDGPU_MACH_R600_CEDAR             = 0x08 in 0xff,
        EF_AMDGPU_MACH_R600_CYPRESS           = 0x09 in 0xff,
        EF_AMDGPU_MACH_R600_JUNIPER           = 0x0a in 0xff,
        EF_AMDGPU_MACH_R600_REDWOOD           = 0x0b in 0xff,
        EF_AMDGPU_MACH_R600_SUMO              = 0x0c in 0xff,
        EF_AMDGPU_MACH_R600_BARTS             = 0x0d in 0xff,
        EF_AMDGPU_MACH_R600_CAICOS            = 0x0e in 0xff,
        EF_AMDGPU_MACH_R600_CAYMAN            = 0x0f in 0xff,
        EF_AMDGPU_MACH_R600_TURKS             = 0x10 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX600          = 0x20 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX601          = 0x21 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX700          = 0x22 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX701          = 0x23 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX702          = 0x24 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX703          = 0x25 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX704          = 0x26 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX801          = 0x28 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX802          = 0x29 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX803          = 0x2a in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX810          = 0x2b in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX900          = 0x2c in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX902          = 0x2d in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX904          = 0x2e in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX906          = 0x2f in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX908          = 0x30 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX909          = 0x31 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX90C          = 0x32 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1010         = 0x33 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1011         = 0x34 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1012         = 0x35 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1030         = 0x36 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1031         = 0x37 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1032         = 0x38 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1033         = 0x39 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX602          = 0x3a in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX705          = 0x3b in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX805          = 0x3c in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1035         = 0x3d in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1034         = 0x3e in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX90A          = 0x3f in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX940          = 0x40 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1100         = 0x41 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1013         = 0x42 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1150         = 0x43 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1103         = 0x44 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1036         = 0x45 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1101         = 0x46 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1102         = 0x47 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1200         = 0x48 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1250         = 0x49 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1151         = 0x4a in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX941          = 0x4b in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX942          = 0x4c in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1201         = 0x4e in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX950          = 0x4f in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1310         = 0x50 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX9_GENERIC    = 0x51 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX10_1_GENERIC = 0x52 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX10_3_GENERIC = 0x53 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC   = 0x54 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1152         = 0x55 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1154         = 0x57 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1153         = 0x58 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX12_GENERIC   = 0x59 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1251         = 0x5a in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX12_5_GENERIC = 0x5b in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1172         = 0x5c in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1170         = 0x5d in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX1171         = 0x5e in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC  = 0x5f in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX11_7_GENERIC = 0x62 in 0xff,
        EF_AMDGPU_MACH_AMDGCN_GFX13_GENERIC   = 0x63 in 0xff,
    }

    /// Features in `e_flags` of AMDGPU, code objects of version 3: HSA, ABI versions 0 and 1.
    pub EF_AMDGPU_FEATURE_V3: u32 {
        EF_AMDGPU_FEATURE_XNACK_V3   = 0x100,
        EF_AMDGPU_FEATURE_SRAMECC_V3 = 0x200,
    }

    /// Features in `e_flags` of AMDGPU, code objects from version 4 on. The top byte is then a version of its own.
    pub EF_AMDGPU_FEATURE_V4: u32 {
        EF_AMDGPU_FEATURE_XNACK_ANY_V4   = 0x100 in 0x300,
        EF_AMDGPU_FEATURE_XNACK_OFF_V4   = 0x200 in 0x300,
        EF_AMDGPU_FEATURE_XNACK_ON_V4    = 0x300 in 0x300,
        EF_AMDGPU_FEATURE_SRAMECC_ANY_V4 = 0x400 in 0xc00,
        EF_AMDGPU_FEATURE_SRAMECC_OFF_V4 = 0x800 in 0xc00,
        EF_AMDGPU_FEATURE_SRAMECC_ON_V4  = 0xc00 in 0xc00,
    }
}

/// `e_flags` of HSA code objects with ABI version 0 or 1.
pub(in crate::names) const EF_AMDGPU_V3: Flags =
    EF_AMDGPU_MACH.and(EF_AMDGPU_FEATURE_V3, Flags::EMPTY);

pub(super) const PROCESSOR: Processor = Processor {
    os_abis: ELFOSABI_AMDGPU,
    header_flags: EF_AMDGPU_MACH.and(EF_AMDGPU_FEATURE_V4, Flags::EMPTY),
    section_indices: SHN_AMDGPU,
    symbol_types: STT_AMDGPU,
    ..Processor::PLAIN
};
