//! `hoist fatbin`: device code inside host files, one file per subcommand.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Error, Result, anyhow};

use crate::sources::Sources;

pub mod change;
pub mod cubins;
pub mod diff;
pub mod disasm;
pub mod extract;
pub mod filter;
pub mod find;
pub mod found;
pub mod kernels;
pub mod list;
pub mod names;
pub mod offload;
pub mod pack;
pub mod prune;
pub mod recompress;
pub mod replace;
pub mod rewrite;
pub mod rows;
pub mod scan;
pub mod select;
pub mod size;

/// Lists, extracts, packs and changes device code inside host files.
#[derive(Debug, clap::Subcommand)]
pub enum Fatbin {
    /// Lists regions and their entries.
    List(list::List),
    /// Writes entries to files, unpacked, named as cuobjdump names them.
    Extract(extract::Extract),
    /// Shows which entry of each region a driver would take for a device.
    Select(select::Select),
    /// Packs cubins and PTX into a fatbin, or into an object with a wrapper.
    Pack(pack::Pack),
    /// LLVM's containers.
    #[command(subcommand)]
    Offload(offload::Offload),
    /// Shows which architectures the files of a tree cover.
    Scan(scan::Scan),
    /// Shows in which files, regions and architectures kernels are.
    Find(find::Find),
    /// Shows which kernels two files or trees do not have in common, or need more or less.
    Diff(diff::Diff),
    /// Shows machine code of kernels, through nvdisasm.
    Disasm(disasm::Disasm),
    /// Shows what device code is made of, in bytes.
    Size(size::Size),
    /// Puts other code in place of an entry.
    Replace(replace::Replace),
    /// Removes entries.
    Prune(prune::Prune),
    /// Compresses entries in another way.
    Recompress(recompress::Recompress),
}

impl Fatbin {
    /// Does what the subcommand says and prints to `out`.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn run(self, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::List(command) => command.run(out),
            Self::Extract(command) => command.run(out),
            Self::Select(command) => command.run(out),
            Self::Pack(command) => command.run(out),
            Self::Offload(command) => command.run(out),
            Self::Scan(command) => command.run(out),
            Self::Find(command) => command.run(out),
            Self::Diff(command) => command.run(out),
            Self::Disasm(command) => command.run(out),
            Self::Size(command) => command.run(out),
            Self::Replace(command) => command.run(out),
            Self::Prune(command) => command.run(out),
            Self::Recompress(command) => command.run(out),
        }
    }
}

/// Bytes that the entries of a file may unpack to, whatever its size.
pub const FLOOR: u64 = 1 << 28;
/// How many times the bytes of a file its entries may unpack to, beyond that: more than real ones do.
pub const TIMES: u64 = 64;

/// What went wrong while the work went on: the first, and how many more there were.
#[derive(Debug, Default)]
pub struct Faults {
    first: Option<Error>,
    more: usize,
}

impl Faults {
    /// Remembers an error.
    pub fn push(&mut self, error: impl Into<Error>) {
        if self.first.is_some() {
            self.more += 1;
        } else {
            self.first = Some(error.into());
        }
    }

    /// Whether nothing went wrong.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The result of all the work.
    ///
    /// # Errors
    /// The first error, and the number of others.
    pub fn result(self) -> Result<()> {
        match (self.first, self.more) {
            (None, _) => Ok(()),
            (Some(error), 0) => Err(error),
            (Some(error), more) => Err(anyhow!("{error:#} (and {more} more errors)")),
        }
    }
}

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
    pub fn empty(&self, sources: &Sources, what: &str, faults: &mut Faults) {
        let empty = (0..sources.paths.len()).filter(|root| !self.known.contains(root));
        empty.for_each(|root| faults.push(anyhow!("{}: {what}", sources.root(root))));
    }
}
