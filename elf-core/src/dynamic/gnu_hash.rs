//! Symbols by name: the table of `DT_GNU_HASH` (GNU gABI, "DT_GNU_HASH").

use crate::content::name::Name;
use crate::content::symbols::SymbolTable;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::SHT_GNU_HASH;
use crate::table::rows::Table;
use crate::table::word::{Address, Word};
use crate::views::encoding::Encoding;
use crate::views::section::SectionHeader;
use crate::views::symbol::Symbol;

/// A hash table over the defined symbols at the end of a symbol table, with a filter before it.
#[derive(Clone, Copy)]
pub struct GnuHashTable<'a> {
    at: u64,
    /// Index of the first symbol that is in the table.
    first: u32,
    shift: u32,
    /// Bits in a word of the filter.
    bits: u32,
    filter: Table<'a, Address>,
    buckets: Table<'a, Word>,
    /// One word a symbol, from `first` on; the lowest bit ends a chain. What is behind the table may follow.
    chains: Table<'a, Word>,
}

impl<'a> GnuHashTable<'a> {
    /// Reads the table that `bytes`, at file offset `at`, begin with.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if filter or buckets are longer than `bytes`.
    pub fn parse(bytes: &'a [u8], encoding: Encoding, at: u64) -> Result<Self, Error> {
        let moved = |error: Error| Error { at: at.saturating_add(error.at), ..error };
        let head = Table::<Word>::parse(bytes, encoding, 0, 4).map_err(moved)?;
        let head = |index| head.get(index).unwrap_or(0);
        let (buckets, filter) = (u64::from(head(0)), u64::from(head(2)));
        let bits: u32 = if encoding.is_64() { 64 } else { 32 };
        // Sums of 32-bit numbers, times 8 at most.
        let buckets_at = filter.saturating_mul(u64::from(bits) / 8).saturating_add(16);
        let chains_at = buckets.saturating_mul(4).saturating_add(buckets_at);
        let filter = Table::parse(bytes, encoding, 16, filter).map_err(moved)?;
        let buckets = Table::parse(bytes, encoding, buckets_at, buckets).map_err(moved)?;
        let rest = (bytes.len() as u64).saturating_sub(chains_at) / 4;
        let chains = Table::parse(bytes, encoding, chains_at, rest).map_err(moved)?;
        Ok(Self { at, first: head(1), shift: head(3), bits, filter, buckets, chains })
    }

    /// Index of the first symbol that is in the table: those before it are not found by name.
    #[must_use]
    pub const fn first_symbol(&self) -> u32 {
        self.first
    }

    /// The hash of the name of the symbol of this index, all but its lowest bit, which is 0; `None` if it is not in the table.
    #[must_use]
    pub fn hash_of(&self, symbol: u32) -> Option<u32> {
        let index = usize::try_from(symbol.checked_sub(self.first)?).ok()?;
        Some(self.chains.get(index)? & !1)
    }

    /// Number of buckets.
    #[must_use]
    pub const fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Number of symbols in the symbol table: up to the end of the last chain. Without any chain, those before
    /// [`first_symbol`](Self::first_symbol).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the chain has no end.
    pub fn symbol_count(&self) -> Result<u32, Error> {
        let last = self.buckets.iter().max().unwrap_or(0);
        if last < self.first {
            return Ok(self.first);
        }
        let mut index = last;
        for word in self.from(last) {
            index = index.saturating_add(1);
            if word & 1 != 0 {
                return Ok(index);
            }
        }
        Err(self.endless(last))
    }

    /// The first symbol of this name in the chain, with its index. All symbols in the table are defined ones.
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
        let hash = gnu_hash(name);
        if !self.may_hold(hash) {
            return Ok(None);
        }
        let bucket =
            usize::try_from(hash).ok().and_then(|hash| hash.checked_rem(self.buckets.len()));
        let first = bucket.and_then(|bucket| self.buckets.get(bucket)).unwrap_or(0);
        if first < self.first {
            return Ok(None);
        }
        let mut next = first;
        for word in self.from(first) {
            let index = next;
            next = next.saturating_add(1);
            if (word ^ hash) >> 1 == 0 {
                let symbol = symbols.get(index)?;
                if symbols.name_of(&symbol)? == name && accept(index, &symbol) {
                    return Ok(Some((index, symbol)));
                }
            }
            if word & 1 != 0 {
                return Ok(None);
            }
        }
        Err(self.endless(first))
    }

    /// Whether the filter lets this hash pass: if not, no symbol of the table has it.
    fn may_hold(&self, hash: u32) -> bool {
        let number = hash.checked_div(self.bits).and_then(|word| usize::try_from(word).ok());
        let word = number.and_then(|word| word.checked_rem(self.filter.len()));
        let Some(word) = word.and_then(|word| self.filter.get(word)) else { return true };
        let bit = |hash: u32| word.unbounded_shr(hash & self.bits.saturating_sub(1)) & 1 != 0;
        bit(hash) && bit(hash.unbounded_shr(self.shift))
    }

    /// The words of the symbols from `index` on.
    fn from(&self, index: u32) -> impl Iterator<Item = u32> + use<'a> {
        let start = usize::try_from(index.saturating_sub(self.first)).ok();
        let words = start.and_then(|start| self.chains.slice(start, self.chains.len()));
        words.unwrap_or_else(Table::empty).iter()
    }

    fn endless(&self, first: u32) -> Error {
        let kind =
            ErrorKind::Invalid { what: "chain of a hash table without end", value: first.into() };
        Error { at: self.at, kind }
    }
}

/// The hash of a name in `DT_GNU_HASH`.
#[must_use]
pub fn gnu_hash(name: Name<'_>) -> u32 {
    name.as_bytes()
        .iter()
        .fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

impl<'a> File<'a> {
    /// The hash table in a section of type `SHT_GNU_HASH`; `None` for other types. `sh_link` is its symbol table.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the section leaves the file or the table the section.
    pub fn gnu_hash_table(
        &self,
        section: &SectionHeader,
    ) -> Result<Option<GnuHashTable<'a>>, Error> {
        if section.r#type != SHT_GNU_HASH {
            return Ok(None);
        }
        GnuHashTable::parse(self.section_data(section)?, self.encoding(), section.offset).map(Some)
    }
}
