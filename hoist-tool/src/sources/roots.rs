//! Paths in which nothing was found.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::anyhow;

use crate::faults::Faults;

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
        let empty = paths.iter().enumerate().filter(|(root, _)| !self.known.contains(root));
        empty.for_each(|(_, path)| faults.push(anyhow!("{}: {what}", path.display())));
    }
}
