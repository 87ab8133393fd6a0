//! Symbol versions (LSB, "Symbol Versioning"): which one a symbol has, and the lists they come from.

use crate::content::name::Name;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::{
    SHT_GNU_verdef, SHT_GNU_verneed, SHT_GNU_versym, VER_NDX_GLOBAL, VER_NDX_LOCAL, VERSYM_HIDDEN,
    VERSYM_VERSION,
};
use crate::table::rows::Table;
use crate::table::word::Half;
use crate::views::section::SectionHeader;

pub use crate::dynamic::version_list::{
    Definition, Definitions, Need, NeededVersion, NeededVersions, Needs, VersionNames,
};

/// The version of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// The file from which it is needed; `None` if this file defines it.
    pub file: Option<Name<'a>>,
    /// Its index in the list of all symbols' versions.
    pub index: u16,
    /// Whether only a reference that states the version finds the symbol: `name@version`, not `name@@version`.
    pub is_hidden: bool,
}

/// The versions of a file: those it defines, those it needs, and the index of each symbol's.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    pub(crate) at: u64,
    pub(crate) indices: Table<'a, Half>,
    pub(crate) definitions: Definitions<'a>,
    pub(crate) needs: Needs<'a>,
}

impl<'a> Versions<'a> {
    /// The index of each symbol's version, with [`VERSYM_HIDDEN`].
    #[must_use]
    pub const fn indices(&self) -> Table<'a, Half> {
        self.indices
    }

    /// The versions that the file defines.
    #[must_use]
    pub fn definitions(&self) -> Definitions<'a> {
        self.definitions
    }

    /// The files of which it needs versions.
    #[must_use]
    pub fn needs(&self) -> Needs<'a> {
        self.needs
    }

    /// The version of the symbol of this index; `None` if it is local, has none, or there is no such symbol.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if no version has the symbol's index; else what reading the lists gives.
    pub fn of(&self, symbol: u32) -> Result<Option<Version<'a>>, Error> {
        let word = usize::try_from(symbol).ok().and_then(|symbol| self.indices.get(symbol));
        match word.map(|word| (word & VERSYM_VERSION, word & VERSYM_HIDDEN != 0)) {
            None | Some((VER_NDX_LOCAL | VER_NDX_GLOBAL, _)) => Ok(None),
            Some((index, is_hidden)) => self.get(index, is_hidden).map(Some),
        }
    }

    /// The version of this index.
    fn get(&self, index: u16, is_hidden: bool) -> Result<Version<'a>, Error> {
        for definition in self.definitions {
            let definition = definition?;
            if definition.index & VERSYM_VERSION == index {
                return Ok(Version { name: definition.name()?, file: None, index, is_hidden });
            }
        }
        for need in self.needs {
            let need = need?;
            for version in need.versions() {
                let version = version?;
                if version.index & VERSYM_VERSION == index {
                    return Ok(Version {
                        name: version.name,
                        file: Some(need.file),
                        index,
                        is_hidden,
                    });
                }
            }
        }
        Err(Error {
            at: self.at,
            kind: ErrorKind::Invalid { what: "index of a symbol's version", value: index.into() },
        })
    }
}

impl<'a> File<'a> {
    /// The symbol versions, by the sections of types `SHT_GNU_versym`, `SHT_GNU_verdef` and `SHT_GNU_verneed`; `None` if
    /// there is none of them. The symbols they speak of are those of [`dynamic_symbol_table`](Self::dynamic_symbol_table).
    ///
    /// # Errors
    /// As [`rows`](Self::rows), [`section_data`](Self::section_data) and [`string_table`](Self::string_table).
    pub fn versions(&self) -> Result<Option<Versions<'a>>, Error> {
        let find = |r#type| self.sections().iter().find(|section| section.r#type == r#type);
        let (indices, definitions, needs) =
            (find(SHT_GNU_versym), find(SHT_GNU_verdef), find(SHT_GNU_verneed));
        let Some(first) = indices.or(definitions).or(needs) else { return Ok(None) };
        let list = |section: Option<SectionHeader>| {
            let Some(section) = section else { return Ok(None) };
            let (data, strings) =
                (self.section_data(&section)?, self.string_table(section.link, "sh_link")?);
            Ok(Some((data, section.offset, section.info, strings)))
        };
        Ok(Some(Versions {
            at: first.offset,
            indices: indices.map_or(Ok(Table::empty()), |section| self.rows(&section))?,
            definitions: list(definitions)?
                .map_or(Definitions::EMPTY, |list| Definitions::new(self.encoding(), list)),
            needs: list(needs)?.map_or(Needs::EMPTY, |list| Needs::new(self.encoding(), list)),
        }))
    }
}
