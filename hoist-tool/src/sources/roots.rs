//! Paths in which nothing was found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Error, anyhow};

use crate::faults::Faults;
use crate::form::{not_looked_into, without_container};

/// Which paths of the command line have what a command is about.
#[derive(Debug, Default)]
pub struct Roots {
    /// Those that need no word more: they have it, or are in an error.
    known: BTreeSet<usize>,
}

impl Roots {
    /// Says that a file in a path was looked at, and whether it has what was looked for.
    pub fn has(&mut self, root: usize, has: bool) {
        if has {
            self.known.insert(root);
        }
    }

    /// Says that something of a path could not be read: there is an error that says so.
    pub fn failed(&mut self, root: usize) {
        self.known.insert(root);
    }

    /// Adds an error for every path in which nothing was found.
    pub fn empty(&self, paths: &[PathBuf], what: &str, faults: &mut Faults) {
        self.without(paths).for_each(|path| faults.push(nothing(path, what)));
    }

    /// The same, where containers were looked for: device code may be in none.
    pub fn without_containers(&self, paths: &[PathBuf], what: &str, faults: &mut Faults) {
        for path in self.without(paths) {
            faults.push(nothing(path, without_container(path).unwrap_or(what)));
        }
    }

    /// Whether nothing was found at all, and nothing is wrong either.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.known.is_empty()
    }

    /// The paths in which nothing was found.
    pub fn without<'p>(&self, paths: &'p [PathBuf]) -> impl Iterator<Item = &'p PathBuf> {
        let empty = paths.iter().enumerate().filter(|(root, _)| !self.known.contains(root));
        empty.map(|(_, path)| path)
    }
}

/// Nothing was found in a path.
fn nothing(path: &Path, what: &str) -> Error {
    match not_looked_into(path) {
        Some(form) => anyhow!("{}: is {form}, which is not looked into", path.display()),
        None => anyhow!("{}: {what}", path.display()),
    }
}
