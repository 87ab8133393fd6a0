//! The symbols that a file shows to others, by name and version.

use crate::error::Error;
use crate::image::Image;
use elf_core::names::{
    SHN_ABS, STB_GLOBAL, STB_GNU_UNIQUE, STB_WEAK, STT_COMMON, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    STT_OBJECT, STT_TLS, STV_DEFAULT, STV_PROTECTED, VERSYM_HIDDEN, VERSYM_VERSION,
};
use elf_core::version::Versions;
use elf_core::{GnuHashTable, HashTable, Name, Symbol, SymbolTable};

/// What a reference asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolReference<'n> {
    /// The name.
    pub name: Name<'n>,
    /// The version, if it states one.
    pub version: Option<Name<'n>>,
}

/// The symbols of a file that are found by name.
#[derive(Clone, Copy)]
pub struct Exports<'a> {
    symbols: SymbolTable<'a>,
    gnu: Option<GnuHashTable<'a>>,
    hash: Option<HashTable<'a>>,
    versions: Option<Versions<'a>>,
}

impl core::fmt::Debug for Exports<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Exports").field("symbols", &self.symbols.len()).finish_non_exhaustive()
    }
}

impl<'a> Image<'a> {
    /// The dynamic symbols, if there are any, and the tables by which they are found.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn exports(&self) -> Result<Option<Exports<'a>>, Error> {
        let Some(dynamic) = self.dynamic()? else { return Ok(None) };
        let Some(symbols) = dynamic.symbol_table()? else { return Ok(None) };
        Ok(Some(Exports {
            symbols,
            gnu: dynamic.gnu_hash_table()?,
            hash: dynamic.hash_table()?,
            versions: dynamic.versions_of(&symbols)?,
        }))
    }
}

impl<'a> Exports<'a> {
    /// The dynamic symbol table.
    #[must_use]
    pub const fn symbols(&self) -> SymbolTable<'a> {
        self.symbols
    }

    /// What the symbol of this index asks for, when a relocation names it.
    ///
    /// # Errors
    /// If there is no such symbol, or its name or version is damaged.
    pub fn reference(&self, symbol: u32) -> Result<SymbolReference<'a>, Error> {
        let name = self.symbols.name_of(&self.symbols.get(symbol)?)?;
        let version = match &self.versions {
            Some(versions) => versions.of(symbol)?.map(|version| version.name),
            None => None,
        };
        Ok(SymbolReference { name, version })
    }

    /// The versions of the symbols, if the file has any.
    #[must_use]
    pub const fn versions(&self) -> Option<Versions<'a>> {
        self.versions
    }

    /// The number of a symbol's version in this file (`vd_ndx`, `vna_other`): all symbols of a number have one version. `None` if the
    /// file has no versions.
    #[must_use]
    pub fn version_number(&self, symbol: u32) -> Option<u16> {
        let index = usize::try_from(symbol).ok()?;
        self.versions.as_ref()?.indices().get(index).map(|word| word & VERSYM_VERSION)
    }

    /// The hash of a symbol's name as [`gnu_hash`](elf_core::gnu_hash) gives it, all but its lowest bit, which is 0; `None` unless the
    /// file has it in its table.
    #[must_use]
    pub fn hash_of(&self, symbol: u32) -> Option<u32> {
        self.gnu.as_ref()?.hash_of(symbol)
    }

    /// The symbol that a reference means, as ld.so decides: of the version that it states, or without one if the file has none of that
    /// symbol; a reference without version takes the oldest.
    ///
    /// # Errors
    /// If the tables are damaged.
    pub fn find(&self, reference: SymbolReference<'_>) -> Result<Option<(u32, Symbol)>, Error> {
        self.search(reference, 3)
    }

    /// The symbol that a program gets which asks for a name, as of `dlsym`: of the default version.
    ///
    /// # Errors
    /// If the tables are damaged.
    pub fn find_default(&self, name: Name<'_>) -> Result<Option<(u32, Symbol)>, Error> {
        self.search(SymbolReference { name, version: None }, 2)
    }

    /// Versions from number `first` on are none that a reference without version takes at once.
    fn search(
        &self,
        reference: SymbolReference<'_>,
        first: u16,
    ) -> Result<Option<(u32, Symbol)>, Error> {
        let (mut versioned, mut count) = (None, 0u32);
        let mut failed = None;
        let accept = |index: u32, symbol: &Symbol| {
            if !is_exported(symbol) {
                return false;
            }
            let Some(versions) = &self.versions else { return true };
            let word = usize::try_from(index).ok().and_then(|index| versions.indices().get(index));
            let Some(word) = word else { return true };
            let is_hidden = word & VERSYM_HIDDEN != 0;
            match reference.version {
                Some(name) => match versions.of(index) {
                    Ok(Some(version)) => version.name == name,
                    Ok(None) => !is_hidden,
                    Err(error) => {
                        failed = Some(error);
                        true
                    }
                },
                None if word & VERSYM_VERSION < first => true,
                None => {
                    if !is_hidden {
                        versioned = versioned.or(Some((index, *symbol)));
                        count = count.saturating_add(1);
                    }
                    false
                }
            }
        };
        let found = match (&self.gnu, &self.hash) {
            (Some(table), _) => table.find_where(reference.name, &self.symbols, accept)?,
            (None, Some(table)) => table.find_where(reference.name, &self.symbols, accept)?,
            (None, None) => None,
        };
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(found.or(versioned.filter(|_| count == 1))),
        }
    }
}

/// Whether other components see a symbol of the dynamic table.
fn is_exported(symbol: &Symbol) -> bool {
    let has_place = symbol.value != 0 || symbol.shndx == SHN_ABS || symbol.r#type() == STT_TLS;
    !symbol.is_undefined()
        && has_place
        && matches!(symbol.binding(), STB_GLOBAL | STB_WEAK | STB_GNU_UNIQUE)
        && matches!(symbol.visibility(), STV_DEFAULT | STV_PROTECTED)
        && matches!(
            symbol.r#type(),
            STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_COMMON | STT_TLS | STT_GNU_IFUNC
        )
}
