//! The header: class, byte order, operating system, type of file, flags.

use super::machine::{EM_AMDGPU, EM_CUDA};
use super::processor::{EF_AMDGPU_V3, EF_CUDA_V2, ELFOSABI_AMDGPU_HSA, ELFOSABI_CUDA_V2, of};
use super::table::Flags;

/// Bytes `EI_MAG0` to `EI_MAG3` of every ELF file (gABI ch. 4, "ELF Identification").
pub const ELFMAG: [u8; 4] = *b"\x7fELF";

names! {
    /// `e_ident[EI_CLASS]`: the width of addresses (gABI ch. 4, "ELF Identification").
    pub ELFCLASS: u8 {
        ELFCLASSNONE = 0,
        ELFCLASS32   = 1,
        ELFCLASS64   = 2,
    }

    /// `e_ident[EI_DATA]`: the byte order (gABI ch. 4, "ELF Identification").
    pub ELFDATA: u8 {
        ELFDATANONE = 0,
        ELFDATA2LSB = 1,
        ELFDATA2MSB = 2,
    }

    /// `e_ident[EI_VERSION]` and `e_version` (gABI ch. 4, "ELF Header").
    pub EV: u8 {
        EV_NONE    = 0,
        EV_CURRENT = 1,
    }

    /// `e_ident[EI_OSABI]` as far as it does not depend on the machine (gABI ch. 4, "ELF Identification").
    pub ELFOSABI: u8 {
        ELFOSABI_NONE       = 0,
        ELFOSABI_HPUX       = 1,
        ELFOSABI_NETBSD     = 2,
        ELFOSABI_GNU        = 3,
        ELFOSABI_HURD       = 4,
        ELFOSABI_SOLARIS    = 6,
        ELFOSABI_AIX        = 7,
        ELFOSABI_IRIX       = 8,
        ELFOSABI_FREEBSD    = 9,
        ELFOSABI_TRU64      = 10,
        ELFOSABI_MODESTO    = 11,
        ELFOSABI_OPENBSD    = 12,
        ELFOSABI_OPENVMS    = 13,
        ELFOSABI_NSK        = 14,
        ELFOSABI_AROS       = 15,
        ELFOSABI_FENIXOS    = 16,
        ELFOSABI_CLOUDABI   = 17,
        ELFOSABI_OPENVOS    = 18,
        ELFOSABI_CUDA       = 51,
        ELFOSABI_ARM        = 97,
        ELFOSABI_STANDALONE = 255,
    }

    /// `e_type`: what the file is for (gABI ch. 4, "ELF Header").
    pub ET: u16 {
        ET_NONE = 0,
        ET_REL  = 1,
        ET_EXEC = 2,
        ET_DYN  = 3,
        ET_CORE = 4,
    }
}

/// First `e_type` of the operating systems' range (gABI ch. 4, "ELF Header").
pub const ET_LOOS: u16 = 0xfe00;
/// Last `e_type` of the operating systems' range.
pub const ET_HIOS: u16 = 0xfeff;
/// First `e_type` of the processors' range; it reaches to the end.
pub const ET_LOPROC: u16 = 0xff00;
/// In `e_phnum`: the count is in `sh_info` of section 0 (gABI ch. 4, "ELF Header").
pub const PN_XNUM: u16 = 0xffff;

/// The name of `e_ident[EI_CLASS]`.
#[must_use]
pub const fn class(byte: u8) -> Option<&'static str> {
    ELFCLASS.get(byte as u64)
}

/// The name of `e_ident[EI_DATA]`.
#[must_use]
pub const fn data(byte: u8) -> Option<&'static str> {
    ELFDATA.get(byte as u64)
}

/// The name of `e_ident[EI_OSABI]`: 64 to 254 mean something else on each machine.
#[must_use]
pub const fn os_abi(machine: u16, byte: u8) -> Option<&'static str> {
    of(machine).os_abis.or(ELFOSABI, byte as u64)
}

/// The name of `e_type`.
#[must_use]
pub const fn file_type(e_type: u16) -> Option<&'static str> {
    ET.get(e_type as u64)
}

/// The names of the bits of `e_flags`, which some machines number anew with another OS ABI or ABI version.
#[must_use]
pub const fn header_flags(machine: u16, os_abi: u8, abi_version: u8) -> Flags {
    match (machine, os_abi, abi_version) {
        (EM_AMDGPU, ELFOSABI_AMDGPU_HSA, 0..=1) => EF_AMDGPU_V3,
        (EM_CUDA, ELFOSABI_CUDA_V2, _) => EF_CUDA_V2,
        _ => of(machine).header_flags,
    }
}
