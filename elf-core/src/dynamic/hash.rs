//! Symbols by name: the table of `DT_HASH` (gABI ch. 8, "Hash Table").

use crate::content::name::Name;
use crate::content::symbols::SymbolTable;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::{EM_ALPHA, EM_FAKE_ALPHA, EM_S390, SHT_HASH};
use crate::table::rows::Table;
use crate::table::word::{Word, Xword};
use crate::views::encoding::Encoding;
use crate::views::section::SectionHeader;
use crate::views::symbol::Symbol;

/// A hash table over all symbols of a symbol table.
#[derive(Clone, Copy)]
pub struct HashTable<'a> {
    at: u64,
    buckets: Words<'a>,
    chains: Words<'a>,
}

/// The table's words: of 64 bits in 64-bit files of Alpha and s390, else of 32.
#[derive(Clone, Copy)]
enum Words<'a> {
    Narrow(Table<'a, Word>),
    Wide(Table<'a, Xword>),
}

impl<'a> Words<'a> {
    /// `count` words at `at` bytes.
    fn parse(
        bytes: &'a [u8],
        encoding: Encoding,
        wide: bool,
        at: u64,
        count: u64,
    ) -> Result<Self, Error> {
        Ok(match wide {
            true => Self::Wide(Table::parse(bytes, encoding, at, count)?),
            false => Self::Narrow(Table::parse(bytes, encoding, at, count)?),
        })
    }

    const fn len(&self) -> usize {
        match self {
            Self::Narrow(table) => table.len(),
            Self::Wide(table) => table.len(),
        }
    }

    fn get(&self, index: u64) -> Option<u64> {
        let index = usize::try_from(index).ok()?;
        match self {
            Self::Narrow(table) => table.get(index).map(u64::from),
            Self::Wide(table) => table.get(index),
        }
    }
}

impl<'a> HashTable<'a> {
    /// Reads the table that `bytes`, at file offset `at`, begin with; `wide` if its words have 64 bits.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if it is longer than `bytes`.
    pub fn parse(bytes: &'a [u8], encoding: Encoding, wide: bool, at: u64) -> Result<Self, Error> {
        let size: u64 = if wide { 8 } else { 4 };
        let moved = |error: Error| Error { at: at.saturating_add(error.at), ..error };
        let words = |from: u64, count| {
            Words::parse(bytes, encoding, wide, from.saturating_mul(size), count).map_err(moved)
        };
        let head = words(0, 2)?;
        let (buckets, chains) = (head.get(0).unwrap_or(0), head.get(1).unwrap_or(0));
        Ok(Self {
            at,
            buckets: words(2, buckets)?,
            chains: words(buckets.saturating_add(2), chains)?,
        })
    }

    /// Number of symbols in the symbol table: that of the chains' words.
    #[must_use]
    pub const fn symbol_count(&self) -> usize {
        self.chains.len()
    }

    /// Number of buckets.
    #[must_use]
    pub const fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// The first symbol of this name in the chain, with its index. It may be undefined.
    ///
    /// # Errors
    /// As [`find_where`](Self::find_where).
    pub fn find(
        &self,
        name: Name<'_>,
        symbols: &SymbolTable<'_>,
    ) -> Result<Option<(u32, Symbol)>, Error> {
        self.find_where(name, symbols, |_, _| true)
    }

    /// The first symbol of this name in the chain that `accept` takes: by its version, say.
    ///
    /// # Errors
    /// [`ErrorKind::NoSymbol`] or [`ErrorKind::NoString`] if the table leads out of `symbols`, [`ErrorKind::Invalid`] if a
    /// chain has no end.
    pub fn find_where(
        &self,
        name: Name<'_>,
        symbols: &SymbolTable<'_>,
        mut accept: impl FnMut(u32, &Symbol) -> bool,
    ) -> Result<Option<(u32, Symbol)>, Error> {
        let bucket = u64::from(sysv_hash(name)).checked_rem(self.buckets.len() as u64);
        let mut next = bucket.and_then(|bucket| self.buckets.get(bucket)).unwrap_or(0);
        // An honest chain has every symbol once at most.
        for _ in 0..=self.chains.len() {
            if next == 0 {
                return Ok(None);
            }
            let index = u32::try_from(next).unwrap_or(u32::MAX);
            let symbol = symbols.get(index)?;
            if symbols.name_of(&symbol)? == name && accept(index, &symbol) {
                return Ok(Some((index, symbol)));
            }
            let count = self.chains.len() as u64;
            next = self
                .chains
                .get(next)
                .ok_or(Error { at: self.at, kind: ErrorKind::NoSymbol { index, count } })?;
        }
        Err(Error {
            at: self.at,
            kind: ErrorKind::Invalid { what: "chain of a hash table without end", value: next },
        })
    }
}

/// The hash of a name in `DT_HASH` and in symbol versions (gABI ch. 8, "Hash Table").
#[must_use]
pub fn sysv_hash(name: Name<'_>) -> u32 {
    name.as_bytes().iter().fold(0_u32, |hash, &byte| {
        let sum = (hash << 4).wrapping_add(byte.into());
        let high = sum & 0xf000_0000;
        (sum ^ (high >> 24)) & !high
    })
}

impl<'a> File<'a> {
    /// The hash table in a section of type `SHT_HASH`; `None` for other types. `sh_link` is its symbol table.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the section leaves the file or the table the section.
    pub fn hash_table(&self, section: &SectionHeader) -> Result<Option<HashTable<'a>>, Error> {
        if section.r#type != SHT_HASH {
            return Ok(None);
        }
        // lld writes 32-bit words for every machine, and says so.
        let wide = match section.entry_size {
            4 => false,
            8 => true,
            _ => self.has_wide_hash(),
        };
        HashTable::parse(self.section_data(section)?, self.encoding(), wide, section.offset)
            .map(Some)
    }

    /// Whether the words of hash tables have 64 bits.
    pub(crate) fn has_wide_hash(&self) -> bool {
        self.encoding().is_64()
            && matches!(self.header().machine, EM_ALPHA | EM_FAKE_ALPHA | EM_S390)
    }
}
