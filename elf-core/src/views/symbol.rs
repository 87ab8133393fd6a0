//! Symbols and their tables.

use crate::names::SHN_UNDEF;
use crate::structs::{raw32, raw64};
use zerocopy::byteorder::ByteOrder;

/// A symbol (gABI ch. 5): value and size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Symbol {
    /// Offset of the name in the linked string table.
    pub name: u32,
    /// `st_info`: binding and type.
    pub info: u8,
    /// `st_other`: visibility and processor-specific bits.
    pub other: u8,
    /// `st_shndx` as it stands; [`SymbolTable::section_of`](crate::SymbolTable::section_of) tells what it means.
    pub shndx: u16,
    /// Offset in the section (`ET_REL`), an address, or the alignment of a common symbol.
    pub value: u64,
    /// Size, or 0 if unknown.
    pub size: u64,
}

impl Symbol {
    /// `STB_*`: who sees the symbol.
    #[must_use]
    pub const fn binding(&self) -> u8 {
        self.info >> 4
    }

    /// `STT_*`: what the symbol names.
    #[must_use]
    pub const fn r#type(&self) -> u8 {
        self.info & 0xf
    }

    /// `STV_*`: whether other components see it.
    #[must_use]
    pub const fn visibility(&self) -> u8 {
        self.other & 0x3
    }

    /// Whether the symbol is defined elsewhere (`SHN_UNDEF`).
    #[must_use]
    pub const fn is_undefined(&self) -> bool {
        self.shndx == SHN_UNDEF
    }
}

/// Where a symbol is defined: the meaning of `st_shndx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// Nowhere in this file (`SHN_UNDEF`).
    Undefined,
    /// Nowhere: the value is what it is (`SHN_ABS`).
    Absolute,
    /// In memory still to be found; the value is the alignment (`SHN_COMMON`).
    Common,
    /// In the section of this index.
    Section(u32),
    /// Another reserved index, by processor or system.
    Reserved(u16),
}

macro_rules! from_raw {
    ($raw:ident) => {
        impl<O: ByteOrder> From<$raw::Sym<O>> for Symbol {
            #[inline]
            fn from(raw: $raw::Sym<O>) -> Self {
                Self {
                    name: raw.st_name.get(),
                    info: raw.st_info,
                    other: raw.st_other,
                    shndx: raw.st_shndx.get(),
                    value: raw.st_value.get().into(),
                    size: raw.st_size.get().into(),
                }
            }
        }
    };
}
from_raw!(raw32);
from_raw!(raw64);
