//! Symbols and their tables.

use crate::class::Class;
use crate::error::{Error, ErrorKind};
use crate::name::{Name, StringTable};
use crate::names::{SHN_ABS, SHN_COMMON, SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX};
use crate::table::{Entry, Table};
use crate::word::Word;
use crate::{raw32, raw64};
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
    /// `st_shndx` as it stands; [`SymbolTable::section_of`] tells what it means.
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

impl Entry for Symbol {
    type View = Self;
    type Raw<C: Class> = C::Sym;
    const WHAT: &'static str = "symbols";
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

/// A symbol table with its names and, if there are many sections, its extended indices.
#[derive(Clone, Copy)]
pub struct SymbolTable<'a> {
    pub(crate) section: u32,
    pub(crate) at: u64,
    pub(crate) symbols: Table<'a, Symbol>,
    pub(crate) names: StringTable<'a>,
    pub(crate) extended: Option<Table<'a, Word>>,
    pub(crate) first_global: u32,
}

impl<'a> SymbolTable<'a> {
    /// All symbols, the first of which is the null symbol.
    #[must_use]
    pub const fn symbols(&self) -> Table<'a, Symbol> {
        self.symbols
    }

    /// Number of symbols, the null symbol included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether not even the null symbol is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Index of the section that holds the table: what relocation sections link to.
    #[must_use]
    pub const fn section(&self) -> u32 {
        self.section
    }

    /// The names.
    #[must_use]
    pub const fn names(&self) -> StringTable<'a> {
        self.names
    }

    /// Index of the first symbol that is not local (`sh_info`); at most [`len`](Self::len).
    #[must_use]
    pub fn first_global(&self) -> usize {
        usize::try_from(self.first_global).unwrap_or(usize::MAX).min(self.len())
    }

    /// Symbol `index`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSymbol`] if the table is shorter.
    #[inline]
    pub fn get(&self, index: u32) -> Result<Symbol, Error> {
        let count = self.symbols.len() as u64;
        usize::try_from(index)
            .ok()
            .and_then(|index| self.symbols.get(index))
            .ok_or(Error { at: self.at, kind: ErrorKind::NoSymbol { index, count } })
    }

    /// The name of a symbol of this table.
    ///
    /// # Errors
    /// [`ErrorKind::NoString`] if the string table does not hold it.
    #[inline]
    pub fn name_of(&self, symbol: &Symbol) -> Result<Name<'a>, Error> {
        self.names.get(symbol.name)
    }

    /// Whether all names have at most `limit` bytes together. Names may share bytes, so that a small table can have many long ones:
    /// who copies names, or compares each with others, asks this first.
    ///
    /// # Errors
    /// [`ErrorKind::NamesTooLong`] if they have more. Names that cannot be read do not count.
    pub fn check_names(&self, limit: u64) -> Result<(), Error> {
        let mut left = limit;
        if (self.len() as u64).saturating_mul(self.names.as_bytes().len() as u64) <= limit {
            return Ok(());
        }
        for symbol in self.symbols.iter() {
            let size = self.name_of(&symbol).map_or(0, |name| name.as_bytes().len() as u64);
            left = left
                .checked_sub(size)
                .ok_or(Error { at: self.at, kind: ErrorKind::NamesTooLong { limit } })?;
        }
        Ok(())
    }

    /// Where symbol `index`, which is `symbol`, is defined. Extended indices (`SHN_XINDEX`) are looked up.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the index is an extended one and there is no table of them, or a shorter one.
    #[inline]
    pub fn section_of(&self, index: u32, symbol: &Symbol) -> Result<Definition, Error> {
        Ok(match symbol.shndx {
            SHN_UNDEF => Definition::Undefined,
            shndx if shndx < SHN_LORESERVE => Definition::Section(shndx.into()),
            SHN_ABS => Definition::Absolute,
            SHN_COMMON => Definition::Common,
            SHN_XINDEX => {
                let extended = self.extended.zip(usize::try_from(index).ok());
                let section = extended.and_then(|(table, index)| table.get(index));
                Definition::Section(section.ok_or(Error {
                    at: self.at,
                    kind: ErrorKind::Invalid { what: "st_shndx", value: SHN_XINDEX.into() },
                })?)
            }
            shndx => Definition::Reserved(shndx),
        })
    }

    /// The first symbol of this name that the file defines: found by looking at one after the other.
    #[must_use]
    pub fn find(&self, name: Name<'_>) -> Option<(u32, Symbol)> {
        (0..u32::MAX).zip(self.symbols.iter()).find(|(_, symbol)| {
            !symbol.is_undefined() && self.name_of(symbol).is_ok_and(|found| found == name)
        })
    }
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
