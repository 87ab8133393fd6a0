//! Mapping symbols: marks of assemblers, which say what follows them (AAELF32, AAELF64 and RISC-V psABI, "Mapping symbols").

use super::name::Name;
use crate::names::{EM_AARCH64, EM_ARM, EM_RISCV, STB_LOCAL, STT_NOTYPE};
use crate::views::symbol::Symbol;

/// What a mapping symbol says of the bytes from it to the next one. It is a mark, no symbol for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mapping {
    /// Code (`$x`), on RISC-V perhaps of other extensions than before (`$xrv64gc`).
    Code,
    /// A32 code (`$a`).
    Arm,
    /// Thumb code (`$t`).
    Thumb,
    /// Data (`$d`).
    Data,
}

impl Mapping {
    /// What a symbol of this name says in files for `machine` (`e_machine`); `None` of one that is no mapping symbol.
    #[must_use]
    pub fn of(machine: u16, symbol: &Symbol, name: Name<'_>) -> Option<Self> {
        if symbol.binding() != STB_LOCAL || symbol.r#type() != STT_NOTYPE {
            return None;
        }
        let [b'$', letter, rest @ ..] = name.as_bytes() else { return None };
        let is_whole = matches!(rest, [] | [b'.', ..]);
        match (machine, *letter) {
            (EM_ARM, b'a') if is_whole => Some(Self::Arm),
            (EM_ARM, b't') if is_whole => Some(Self::Thumb),
            (EM_AARCH64 | EM_RISCV, b'x') if is_whole => Some(Self::Code),
            (EM_RISCV, b'x') if rest.starts_with(b"rv") => Some(Self::Code),
            (EM_ARM | EM_AARCH64 | EM_RISCV, b'd') if is_whole => Some(Self::Data),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{EM_X86_64, STB_GLOBAL, STT_FUNC};

    #[test]
    fn marks_and_symbols() {
        let mark = Symbol { info: STB_LOCAL << 4 | STT_NOTYPE, ..Symbol::default() };
        let of = |machine, name: &str| Mapping::of(machine, &mark, Name(name.as_bytes()));
        assert_eq!(of(EM_ARM, "$a"), Some(Mapping::Arm));
        assert_eq!(of(EM_ARM, "$t.7"), Some(Mapping::Thumb));
        assert_eq!(of(EM_ARM, "$d.realdata"), Some(Mapping::Data));
        assert_eq!(of(EM_ARM, "$x"), None);
        assert_eq!(of(EM_AARCH64, "$x.0"), Some(Mapping::Code));
        assert_eq!(of(EM_AARCH64, "$xrv64gc"), None);
        assert_eq!(of(EM_RISCV, "$xrv64i2p1_m2p0"), Some(Mapping::Code));
        assert_eq!(of(EM_RISCV, "$d"), Some(Mapping::Data));
        assert_eq!(of(EM_X86_64, "$d"), None);
        for name in ["", "$", "$dollar", "a$d", "$a1"] {
            assert_eq!(of(EM_ARM, name), None, "{name}");
        }
        for info in [STB_GLOBAL << 4 | STT_NOTYPE, STB_LOCAL << 4 | STT_FUNC] {
            let symbol = Symbol { info, ..Symbol::default() };
            assert_eq!(Mapping::of(EM_ARM, &symbol, Name(b"$a")), None);
        }
    }
}
