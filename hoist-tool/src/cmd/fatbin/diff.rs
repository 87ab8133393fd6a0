//! `hoist fatbin diff OLD NEW`: kernels added, gone and changed, and what they need before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use fatbin::Sm;
use serde::Serialize;

use super::Faults;
use super::filter::Where;
use super::kernels::{KernelRow, Request, collect};
use crate::cmd::cubin::KernelFilter;
use crate::sources::Sources;
use condition::Condition;

mod condition;
mod text;

/// Shows which kernels two files, wheels or trees have that the other has not, and which need other registers, memory or code.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// What was: a file, an archive, a folder.
    old: PathBuf,
    /// What is.
    new: PathBuf,
    #[command(flatten)]
    filter: KernelFilter,
    /// Architectures, with their suffix: `sm_90`, `90a`.
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<Sm>,
    #[command(flatten)]
    place: Where,
    /// Ends with status 1 if this holds of a kernel in both: `registers > +8`, `stack > 0`, `code > +10%`, `shared >= 49152`; or of
    /// the numbers of kernels: `added > 0`, `gone > 0`, `changed > 0`.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
    /// How to print.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// With stable keys.
    Json,
    /// For a page of a pull request.
    Markdown,
}

/// What a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Needs {
    pub(super) registers: Option<u32>,
    pub(super) shared: u64,
    pub(super) stack: Option<u64>,
    pub(super) local: u64,
    pub(super) code_size: u64,
}

impl From<&KernelRow> for Needs {
    fn from(row: &KernelRow) -> Self {
        let KernelRow { registers, shared, stack, local, code_size, .. } = *row;
        Self { registers, shared, stack, local, code_size }
    }
}

/// A kernel of one architecture that is on one side, or on both with other needs.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) demangled: Option<String>,
    pub(super) arch: String,
    /// The file that it is in, or was.
    pub(super) file: String,
    pub(super) old: Option<Needs>,
    pub(super) new: Option<Needs>,
}

/// The differences of two trees.
#[derive(Debug, Default, Serialize)]
pub(super) struct Difference {
    pub(super) added: Vec<Change>,
    pub(super) gone: Vec<Change>,
    pub(super) changed: Vec<Change>,
    /// How many are the same in both.
    pub(super) same: usize,
    pub(super) archs_before: BTreeSet<String>,
    pub(super) archs_after: BTreeSet<String>,
    /// Bytes of code of all kernels.
    pub(super) code_before: u64,
    pub(super) code_after: u64,
    /// Conditions that hold, with the kernels that they hold of.
    pub(super) failed: Vec<String>,
}

impl Diff {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or a condition holds.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut side = |path: &PathBuf| {
            let sources = Sources::of(vec![path.clone()]);
            let request = Request {
                sources: &sources,
                wanted: &self.filter.kernel,
                arch: &self.arch,
                search: self.place.search(),
            };
            let mut rows = collect(request, &mut faults)?;
            // both sides are called alike: what is inside, without what it is in
            let root = path.display().to_string();
            for row in &mut rows {
                let inside = row.file.strip_prefix(&root).unwrap_or(&row.file);
                row.file = inside.trim_start_matches([':', '/']).to_owned();
            }
            anyhow::Ok(rows)
        };
        let (old, new) = (side(&self.old)?, side(&self.new)?);
        let mut found = difference(old, new);
        self.order(&mut found);
        for condition in &self.fail_on {
            found.failed.extend(condition.holds(&found));
        }
        let failed = found.failed.clone();
        match if self.json { Format::Json } else { self.format } {
            Format::Json => {
                serde_json::to_writer(&mut *out, &found)?;
                writeln!(out)?;
            }
            Format::Text => text::text(&found, &self.filter, out)?,
            Format::Markdown => text::markdown(&found, &self.filter, out)?,
        }
        faults.result()?;
        match failed.as_slice() {
            [] => Ok(()),
            [first] => bail!("{first}"),
            [first, rest @ ..] => bail!("{first} (and {} more)", rest.len()),
        }
    }

    fn order(&self, found: &mut Difference) {
        use crate::cmd::cubin::Sort;
        let grown = |change: &Change, what: fn(&Needs) -> u64| {
            let [old, new] = [&change.old, &change.new].map(|side| side.as_ref().map_or(0, what));
            std::cmp::Reverse(old.abs_diff(new))
        };
        for list in [&mut found.added, &mut found.gone, &mut found.changed] {
            match self.filter.sort {
                None | Some(Sort::Size) => {
                    list.sort_by_key(|one| grown(one, |needs| needs.code_size))
                }
                Some(Sort::Registers) => {
                    list.sort_by_key(|one| grown(one, |needs| needs.registers.unwrap_or(0).into()));
                }
                Some(Sort::Name) => list.sort_by(|one, other| one.name.cmp(&other.name)),
            }
        }
    }
}

/// Compares kernels of one name and architecture: those of one file first, then the others in order.
fn difference(old: Vec<KernelRow>, new: Vec<KernelRow>) -> Difference {
    let mut found = Difference::default();
    let mut sides: BTreeMap<(String, String), [Vec<KernelRow>; 2]> = BTreeMap::new();
    for (side, rows) in [old, new].into_iter().enumerate() {
        for row in rows {
            let (archs, code) = match side {
                0 => (&mut found.archs_before, &mut found.code_before),
                _ => (&mut found.archs_after, &mut found.code_after),
            };
            archs.insert(row.place.arch.clone());
            *code = code.saturating_add(row.code_size);
            let key = (row.name.clone(), row.place.arch.clone());
            if let Some(list) = sides.entry(key).or_default().get_mut(side) {
                list.push(row);
            }
        }
    }
    for [old, mut new] in sides.into_values() {
        let mut left = Vec::new();
        let mut pairs = Vec::new();
        for row in old {
            match new.iter().position(|other| other.file == row.file) {
                Some(at) => pairs.push((row, new.remove(at))),
                None => left.push(row),
            }
        }
        let both = left.len().min(new.len());
        let rest = new.split_off(both);
        let gone = left.split_off(both);
        pairs.extend(left.into_iter().zip(new));
        found.added.extend(rest.into_iter().map(|row| change(&row, None, Some(Needs::from(&row)))));
        found.gone.extend(gone.into_iter().map(|row| change(&row, Some(Needs::from(&row)), None)));
        for (old, new) in pairs {
            let (before, after) = (Needs::from(&old), Needs::from(&new));
            if before == after {
                found.same += 1;
            } else {
                found.changed.push(change(&new, Some(before), Some(after)));
            }
        }
    }
    found
}

fn change(row: &KernelRow, old: Option<Needs>, new: Option<Needs>) -> Change {
    Change {
        name: row.name.clone(),
        demangled: row.demangled.clone(),
        arch: row.place.arch.clone(),
        file: row.file.clone(),
        old,
        new,
    }
}
