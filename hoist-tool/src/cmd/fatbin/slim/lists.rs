//! Lists of files of installed packages that say digests and sizes: `RECORD` of Python's (PyPA specifications, "Recording installed
//! projects"), and `conda-meta/*.json` of conda's.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{conda, digest};
use crate::cmd::wheel::record;

/// Which kind of list one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a package of Python.
    Record,
    /// Of a package of conda.
    Conda,
}

impl Kind {
    /// Of which kind the list of this name is, and the folder that names in it start from.
    #[must_use]
    pub fn of(path: &Path) -> Option<(Self, PathBuf)> {
        let package = path.parent()?;
        let is_of_conda = package.file_name().is_some_and(|name| name == "conda-meta")
            && path.extension().is_some_and(|end| end == "json");
        let is_record = path.file_name().is_some_and(|name| name == "RECORD")
            && package.to_string_lossy().ends_with(".dist-info");
        let kind = match (is_record, is_of_conda) {
            (true, _) => Self::Record,
            (_, true) => Self::Conda,
            _ => return None,
        };
        Some((kind, package.parent()?.to_owned()))
    }

    /// Files of a list, and what it says of them: of which it has digests.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn rows(self, list: &str) -> Result<Vec<(String, String)>> {
        match self {
            Self::Record => {
                let rows = record::rows(list).filter(|(_, said)| !said.starts_with(','));
                Ok(rows.map(|(name, said)| (name, said.to_owned())).collect())
            }
            Self::Conda => Ok(conda::rows(list)?),
        }
    }

    /// The list with other words for some files, where `new` has some for a name and what is said of it.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn changed(
        self,
        list: &str,
        mut new: impl FnMut(&str, &str) -> Option<String>,
    ) -> Result<String> {
        match self {
            Self::Record => {
                let new = |name: &str, said: &str| {
                    if said.starts_with(',') { None } else { new(name, said) }
                };
                Ok(record::changed(list, new))
            }
            Self::Conda => Ok(conda::changed(list, new)?),
        }
    }

    /// What a list says of a file of this digest and size that it said `before` of.
    #[must_use]
    pub fn fields(self, before: &str, digest: &str, size: u64) -> String {
        match self {
            Self::Record => record::fields(&digest::raw(digest), size),
            Self::Conda => conda::fields(before, digest, size),
        }
    }
}
