//! What CUDA keeps in `st_other` of symbols.

use elf_core::Symbol;
use elf_core::names::{STO_CUDA_ENTRY, STT_FUNC};

/// The memory that a symbol is in, by bits 5 to 7 of `st_other`. Linked files mostly do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Not said.
    NotRecorded,
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
    /// A constant bank.
    Constant,
    /// Shared memory that the system reserves.
    ReservedShared,
    /// A number without a known meaning: 6 or 7.
    Other(u8),
}

impl Space {
    /// The memory that `symbol` is in.
    #[must_use]
    pub const fn of(symbol: &Symbol) -> Self {
        match symbol.other >> 5 {
            0 => Self::NotRecorded,
            1 => Self::Global,
            2 => Self::Shared,
            3 => Self::Local,
            4 => Self::Constant,
            5 => Self::ReservedShared,
            other => Self::Other(other),
        }
    }
}

/// Whether the symbol is that of a kernel, defined here or not.
#[must_use]
pub const fn is_entry(symbol: &Symbol) -> bool {
    symbol.r#type() == STT_FUNC && symbol.other & STO_CUDA_ENTRY != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use elf_core::names::{
        STO_CUDA_CONSTANT, STO_CUDA_GLOBAL, STO_CUDA_LOCAL, STO_CUDA_RESERVED_SHARED,
        STO_CUDA_SHARED,
    };

    #[test]
    fn spaces_agree_with_the_names() {
        let of = |other| Space::of(&Symbol { other, ..Symbol::default() });
        let named = [
            (STO_CUDA_GLOBAL, Space::Global),
            (STO_CUDA_SHARED, Space::Shared),
            (STO_CUDA_LOCAL, Space::Local),
            (STO_CUDA_CONSTANT, Space::Constant),
            (STO_CUDA_RESERVED_SHARED, Space::ReservedShared),
        ];
        for (other, space) in named {
            assert_eq!(of(other | STO_CUDA_ENTRY | 3), space);
        }
        assert_eq!(
            (of(0x1f), of(0xc0), of(0xe0)),
            (Space::NotRecorded, Space::Other(6), Space::Other(7))
        );
    }
}
