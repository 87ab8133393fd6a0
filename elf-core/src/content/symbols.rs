//! Symbol tables: symbols with their names and sections.

use crate::content::name::{Name, StringTable};
use crate::error::{Error, ErrorKind};
use crate::names::{SHN_ABS, SHN_COMMON, SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX};
use crate::table::rows::Table;
use crate::table::word::Word;
use crate::views::symbol::{Definition, Symbol};

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
        // no name has `2 * window` bytes if each `window` of the table has an end of one
        let most = limit.checked_div((self.len() as u64).saturating_mul(2)).unwrap_or(limit);
        let window = usize::try_from(most).unwrap_or(usize::MAX);
        if window > 0 && self.names.as_bytes().chunks(window).all(|part| part.contains(&0)) {
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
