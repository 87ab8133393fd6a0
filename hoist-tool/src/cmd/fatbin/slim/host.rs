//! A host file with the code that is wanted only, compressed anew.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use elf_rewrite::RewritePlan;
use fatbin::{CompressionMode, Container, Region, RegionEntry, Search};
use rayon::prelude::*;

use super::super::blob::Blob;
use super::super::change::{self, Change, Unreferenced, change, entries};
use super::super::found::{containers, regions};
use super::super::keep::{Keep, keep};
use super::super::prune::{Fate, Present, as_before, check_gaps, fate};
use super::super::recompress::{How, mode, stored};
use super::super::stored::Stored;
use super::super::unpacking::Unpacking;
use crate::budget::{Budget, FLOOR, TIMES};
use crate::mapped::Mapped;
use crate::number::number;
use crate::printable::Printable;

/// How files of Windows begin (PE), which are not rewritten.
const PE: &[u8] = b"MZ";

/// How files begin that may have device code: ELF files, archives, files of Windows, and fatbins by themselves.
pub const HEADS: [&[u8]; 4] = [b"\x7fELF", b"!<arch>\n", PE, b"\x50\xed\x55\xba"];

/// What becomes of device code.
#[derive(Clone, Debug, clap::Args)]
pub struct Slimming {
    /// What to keep: `sm_90`, `sm_90a` (machine code), `compute_90` (PTX), `ptx`, `elf`, `nvvm` (all of a kind). Without it, all.
    #[arg(long, value_delimiter = ',', value_name = "WHAT", value_parser = keep)]
    pub keep: Vec<Keep>,
    /// How to compress, in the words of nvcc 13: `speed` (LZ4 at level 3), `balance` (Zstandard at level 5), `size` (at level 19). Without it,
    /// as before. What is not smaller then, in a wheel or a layer that is compressed as well, is done without it, but for `speed`. LTO-IR as `fatbin recompress` does.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<CompressionMode>,
    /// Goes on where an architecture that is kept would have no code for something that it runs now.
    #[arg(long)]
    pub allow_gaps: bool,
    /// Takes all device code out of files that have none of what is kept; otherwise they stay as they are.
    #[arg(long, requires = "keep")]
    pub allow_empty: bool,
    /// The most bytes that the entries of a file may unpack to, together: otherwise 256 MiB and 64 times the size of the file.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    pub limit: Option<u64>,
}

/// What is said of a file whose code would be compressed in another way, and which would be no smaller.
#[must_use]
pub fn no_smaller(name: &str) -> String {
    format!("{} would be no smaller, and stays as it is", Printable::from(name))
}

/// What becomes of a file.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing: it has no device code.
    NoCode,
    /// Nothing: all of its device code is kept as it is.
    Same(Present),
    /// Nothing: it has device code, but none of what is kept.
    Without(Present),
    /// Nothing: it has device code, and is a file of Windows.
    Foreign,
    /// Nothing: it begins as libraries and archives do, and is neither; why.
    Damaged(String),
    /// It becomes smaller.
    Slimmed(Box<Slimmed>),
}

/// Which files of all that are made smaller together have something of what is kept.
#[derive(Debug, Default)]
pub struct Tally {
    has_any: bool,
    present: Present,
    /// Those that have device code and stay as they are: they have nothing of what is kept, or are files of Windows.
    pub left: Vec<String>,
    /// Of these, files of Windows.
    foreign: Vec<String>,
    /// Files that are damaged, and why they cannot be read.
    damaged: Vec<(String, String)>,
}

/// How a file becomes smaller.
#[derive(Debug)]
pub struct Slimmed {
    plan: RewritePlan<Blob>,
    changes: Vec<Change>,
    /// What code there was.
    present: Present,
    /// Entries before, and after.
    pub entries: (usize, usize),
    /// Bytes before, and after.
    pub sizes: (u64, u64),
    /// What whoever uses the file should know.
    pub notes: Vec<String>,
}

/// What becomes of a region.
struct New {
    change: Option<Change>,
    before: usize,
    after: usize,
}

impl Slimming {
    /// Whether anything is asked for.
    ///
    /// # Errors
    /// If not.
    pub fn check_asked(&self) -> Result<()> {
        ensure!(
            !self.keep.is_empty() || self.mode.is_some(),
            "nothing is to be done: --keep or --mode"
        );
        Ok(())
    }

    /// What becomes of a file.
    ///
    /// # Errors
    /// If an architecture would have no code, or the file cannot be changed so.
    pub fn plan(&self, file: &Mapped, unpacking: &Unpacking) -> Result<Outcome> {
        let before = file.bytes().len() as u64;
        if file.bytes().starts_with(PE) {
            let mut found = containers(file, Search::Always, |found| found.container);
            let is_region =
                |found: Result<Container<'_>, _>| matches!(found, Ok(Container::Region(_)));
            let has_code = found.any(is_region);
            return Ok(if has_code { Outcome::Foreign } else { Outcome::NoCode });
        }
        if let Some(error) = fatbin::scans(file.bytes(), Search::Always).find_map(Result::err) {
            return Ok(Outcome::Damaged(error.to_string()));
        }
        let budget = Budget::new(self.limit, FLOOR, TIMES, before);
        let all = regions(file, Search::Always)?;
        let present = self.present(&all)?;
        if present.all.is_empty() {
            return Ok(Outcome::NoCode);
        }
        if !self.keep.is_empty() && present.kept.is_empty() && !self.allow_empty {
            return Ok(Outcome::Without(present));
        }
        let new = |(_, region): &(usize, Region<'_>)| self.region(region, file, &budget, unpacking);
        let new: Vec<_> = all.par_iter().map(new).collect();
        let (mut changes, mut entries) = (Vec::new(), (0_usize, 0_usize));
        for new in new {
            let New { change, before, after } = new?;
            entries = (entries.0.saturating_add(before), entries.1.saturating_add(after));
            changes.extend(change);
        }
        if changes.is_empty() {
            return Ok(Outcome::Same(present));
        }
        let unreferenced = match &*self.keep {
            [] => Unreferenced::Left,
            _ => Unreferenced::Refused,
        };
        let plan = change::plan(file, &mut changes, unreferenced)?;
        let mut notes: Vec<_> = plan.remarks.iter().map(change::note).collect();
        notes.extend(change::needs(self.mode.map(CompressionMode::method)));
        let sizes = (before, plan.size());
        Ok(Outcome::Slimmed(Box::new(Slimmed { plan, changes, present, entries, sizes, notes })))
    }

    /// Whether code is compressed to be smaller, not to load sooner: what is not smaller then, in a file that is compressed as a whole, is
    /// done without the mode.
    #[must_use]
    pub fn is_for_size(&self) -> bool {
        self.mode.is_some_and(|mode| mode != CompressionMode::Speed)
    }

    /// The same without the mode, if anything is left to do.
    #[must_use]
    pub fn without_mode(&self) -> Option<Self> {
        (!self.keep.is_empty()).then(|| Self { mode: None, ..self.clone() })
    }

    /// What code is there, and what of it is kept.
    fn present(&self, all: &[(usize, Region<'_>)]) -> Result<Present> {
        let mut present = Present::default();
        for (_, region) in all {
            for entry in entries(region)? {
                present.add(entry, &self.keep)?;
            }
        }
        Ok(present)
    }

    fn region(
        &self,
        region: &Region<'_>,
        file: &Mapped,
        budget: &Budget,
        unpacking: &Unpacking,
    ) -> Result<New> {
        let old = entries(region)?;
        let fates: Vec<_> = old
            .par_iter()
            .map(|entry| self.entry(*entry, budget, unpacking))
            .collect::<Result<_>>()?;
        let items: Vec<_> = fates.iter().filter_map(Kept::item).collect();
        let (before, after) = (old.len(), items.len());
        if fates.iter().all(|fate| matches!(fate, Kept::Stored(Stored::Kept(_)))) {
            file.done_with(region.at()..region.end());
            return Ok(New { change: None, before, after });
        }
        let new = Blob::region(&items)?;
        if !self.allow_gaps {
            check_gaps(&self.keep, region, &new)?;
        }
        file.done_with(region.at()..region.end());
        new.rest();
        Ok(New { change: Some(change(region, new)), before, after })
    }

    fn entry<'a>(
        &self,
        entry: RegionEntry<'a>,
        budget: &Budget,
        unpacking: &Unpacking,
    ) -> Result<Kept<'a>> {
        let again = |old, payload: &[u8]| match self.mode {
            Some(mode) => How::Mode(mode).pack(payload),
            None => as_before(old, payload),
        };
        let fate = match &*self.keep {
            [] => Fate::Kept(entry),
            keep => fate(entry, keep, budget, again)?,
        };
        Ok(match (fate, self.mode) {
            (Fate::Kept(entry), Some(mode)) => {
                Kept::Stored(stored(entry, How::Mode(mode), budget, unpacking)?)
            }
            (Fate::Kept(entry), None) => Kept::Stored(Stored::Kept(entry)),
            (other, _) => Kept::Fate(other),
        })
    }
}

impl Tally {
    /// What becomes of a file, counted: how it becomes smaller, if it does.
    pub fn count(&mut self, name: &str, outcome: Outcome) -> Option<Box<Slimmed>> {
        match outcome {
            Outcome::NoCode => None,
            Outcome::Without(present) => {
                self.present.extend(&present);
                self.left.push(name.to_owned());
                None
            }
            Outcome::Foreign => {
                self.left.push(name.to_owned());
                self.foreign.push(name.to_owned());
                None
            }
            Outcome::Damaged(why) => {
                self.damaged.push((name.to_owned(), why));
                None
            }
            Outcome::Same(present) => {
                self.present.extend(&present);
                self.has_any = true;
                None
            }
            Outcome::Slimmed(slimmed) => {
                self.present.extend(&slimmed.present);
                self.has_any = true;
                Some(slimmed)
            }
        }
    }

    /// Adds what was counted of others.
    pub fn extend(&mut self, other: Self) {
        self.has_any |= other.has_any;
        self.present.extend(&other.present);
        self.left.extend(other.left);
        self.foreign.extend(other.foreign);
        self.damaged.extend(other.damaged);
    }

    /// What is said of files that stay as they are, and of words of `keep` that keep nothing: they may be misspelt.
    pub fn notes(&self, keep: &[Keep]) -> Vec<String> {
        let left = self.left.iter().map(|name| {
            if self.foreign.contains(name) {
                return format!("{name} has device code and is a file of Windows, which is not rewritten: it stays as it is");
            }
            format!("{name} has nothing of what is kept, and stays as it is: --allow-empty takes all code out of it")
        });
        let idle = keep.iter().filter(|word| self.has_any && !self.present.kept.contains(word));
        let damaged = self.damaged.iter().map(|(name, why)| {
            format!("{name} cannot be read, and stays as it is, whatever is in it: {why}")
        });
        let left = left.chain(damaged);
        left.chain(idle.map(|word| format!("no file has {word}, which --keep names"))).collect()
    }

    /// Whether anything that is kept was found, if there is code at all.
    ///
    /// # Errors
    /// If all code is of other kinds, or for other architectures: nobody means that.
    pub fn check(&self) -> Result<()> {
        let words: Vec<_> = self.present.all.iter().map(Keep::to_string).collect();
        ensure!(
            self.has_any || self.left.len() == self.foreign.len(),
            "nothing of what is kept is in any file: what is there is for {}",
            words.join(", ")
        );
        Ok(())
    }
}

/// What becomes of an entry.
enum Kept<'a> {
    Stored(Stored<'a>),
    Fate(Fate<'a>),
}

impl Kept<'_> {
    fn item(&self) -> Option<fatbin::Item<'_>> {
        match self {
            Self::Stored(stored) => Some(stored.item()),
            Self::Fate(fate) => fate.item(),
        }
    }
}

impl Slimmed {
    /// Writes the smaller file, and looks at what was written.
    ///
    /// # Errors
    /// If it cannot be written, or is not what it should be.
    pub fn write(&self, file: &Mapped, to: &mut fs::File) -> Result<()> {
        change::write(&self.plan, file, to)?;
        let written = Mapped::map(to)?;
        change::check(file, &written, &self.changes).context("what was written")
    }
}
