//! Versions of symbols by their index, so that every symbol finds its own at once.

use std::collections::HashMap;

use elf_core::names::{VER_FLG_BASE, VERSYM_HIDDEN, VERSYM_VERSION};
use elf_core::{Error, Half, Table, version};
use serde::Serialize;

use crate::printable::Printable;

/// The version of a symbol.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Version<'a> {
    /// Its name.
    pub name: Printable<'a>,
    /// The file from which it is needed, if this file does not define it.
    pub file: Option<Printable<'a>>,
    /// Whether a reference without version means this one: `name@@version`, not `name@version`.
    pub default: bool,
}

/// The versions of the dynamic symbols.
pub(super) struct Versions<'a> {
    indices: Table<'a, Half>,
    /// Name and file by index.
    names: HashMap<u16, (Printable<'a>, Option<Printable<'a>>)>,
}

impl<'a> Versions<'a> {
    /// Reads the lists of versions.
    pub(super) fn of(versions: &version::Versions<'a>) -> Result<Self, Error> {
        let mut names = HashMap::new();
        for definition in versions.definitions() {
            let definition = definition?;
            if definition.flags & VER_FLG_BASE == 0 {
                let name = definition.name()?.into();
                names.insert(definition.index & VERSYM_VERSION, (name, None));
            }
        }
        for need in versions.needs() {
            let need = need?;
            for version in need.versions() {
                let version = version?;
                let name = (version.name.into(), Some(need.file.into()));
                names.insert(version.index & VERSYM_VERSION, name);
            }
        }
        Ok(Self { indices: versions.indices(), names })
    }

    /// The version of symbol `index`. Local and unversioned ones have none.
    pub(super) fn get(&self, index: u32, defined: bool) -> Option<Version<'a>> {
        let version = self.indices.get(usize::try_from(index).ok()?)?;
        let (name, file) = *self.names.get(&(version & VERSYM_VERSION))?;
        // a copy of another file's variable has a section here and its version there
        let default = defined && file.is_none() && version & VERSYM_HIDDEN == 0;
        Some(Version { name, file, default })
    }
}
