//! Symbols: types, bindings, visibility and the rest of `st_other`.

use super::ident::{ELFOSABI_HPUX, ELFOSABI_OPENVMS, ELFOSABI_SOLARIS};
use super::machine::EM_CUDA;
use super::processor::{STO_CUDA_FUNC, STO_CUDA_OBJECT, STT_CUDA_OBJECT, of};
use super::table::{Flags, Names};

names! {
    /// Low four bits of `st_info` of every system (gABI ch. 4, "Symbol Table"; `STT_RELC` and `STT_SRELC` are of GNU).
    pub STT: u8 {
        STT_NOTYPE  = 0,
        STT_OBJECT  = 1,
        STT_FUNC    = 2,
        STT_SECTION = 3,
        STT_FILE    = 4,
        STT_COMMON  = 5,
        STT_TLS     = 6,
        STT_RELC    = 8,
        STT_SRELC   = 9,
    }

    /// Symbol types in the operating systems' range, as GNU and the BSDs read it.
    pub STT_GNU: u8 {
        STT_GNU_IFUNC = 10,
    }

    /// High four bits of `st_info` of every system (gABI ch. 4, "Symbol Table").
    pub STB: u8 {
        STB_LOCAL  = 0,
        STB_GLOBAL = 1,
        STB_WEAK   = 2,
    }

    /// Bindings in the operating systems' range, as GNU and the BSDs read it.
    pub STB_GNU: u8 {
        STB_GNU_UNIQUE = 10,
    }

    /// Low two bits of `st_other` (gABI ch. 4, "Symbol Table").
    pub STV: u8 {
        STV_DEFAULT   = 0,
        STV_INTERNAL  = 1,
        STV_HIDDEN    = 2,
        STV_PROTECTED = 3,
    }
}

/// First symbol type of the operating systems' range (gABI ch. 4, "Symbol Table").
pub const STT_LOOS: u8 = 10;
/// First symbol type of the processors' range.
pub const STT_LOPROC: u8 = 13;
/// First binding of the operating systems' range (gABI ch. 4, "Symbol Table").
pub const STB_LOOS: u8 = 10;
/// First binding of the processors' range.
pub const STB_LOPROC: u8 = 13;

/// `gnu`, unless `os_abi` belongs to a system that uses these numbers otherwise. Files of GNU systems often say
/// `ELFOSABI_NONE`.
const fn of_system(os_abi: u8, gnu: Names) -> Names {
    match os_abi {
        ELFOSABI_HPUX | ELFOSABI_SOLARIS | ELFOSABI_OPENVMS => Names::EMPTY,
        _ => gnu,
    }
}

/// The name of a symbol's type.
#[must_use]
pub const fn symbol_type(machine: u16, os_abi: u8, st_type: u8) -> Option<&'static str> {
    match of(machine).symbol_types.or(STT, st_type as u64) {
        None => of_system(os_abi, STT_GNU).get(st_type as u64),
        name => name,
    }
}

/// The name of a symbol's binding.
#[must_use]
pub const fn symbol_binding(machine: u16, os_abi: u8, st_bind: u8) -> Option<&'static str> {
    match of(machine).symbol_bindings.or(STB, st_bind as u64) {
        None => of_system(os_abi, STB_GNU).get(st_bind as u64),
        name => name,
    }
}

/// The name of a symbol's visibility: the low two bits of `st_other`, the others being ignored.
#[must_use]
pub const fn symbol_visibility(st_other: u8) -> Option<&'static str> {
    STV.get((st_other & 3) as u64)
}

/// The names of the bits of `st_other` other than visibility, for symbols of every type.
#[must_use]
pub const fn symbol_other(machine: u16) -> Flags {
    of(machine).symbol_other
}

/// The names of the bits of `st_other` that mean one thing in symbols of this type, another in others: CUDA's.
#[must_use]
pub const fn symbol_other_of_type(machine: u16, st_type: u8) -> Flags {
    match (machine, st_type) {
        (EM_CUDA, STT_FUNC) => STO_CUDA_FUNC,
        (EM_CUDA, STT_OBJECT | STT_CUDA_OBJECT) => STO_CUDA_OBJECT,
        _ => Flags::EMPTY,
    }
}
