//! `hoist fatbin diff OLD NEW`: kernels added, gone and changed, and what they need before and after.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::filter::{Code, Where};
use super::kernels::{Request, Wanted, all_inside, collect};
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::kernel_filter::KernelFilter;
use crate::sources::Sources;
use condition::Condition;
use difference::{Change, Needs};

pub(super) use difference::{Difference, difference};

mod condition;
mod difference;
mod text;

/// Shows which kernels two files, wheels or trees have that the other has not, and which need other registers or memory, or have other
/// code. PTX is compared as such, for `compute_90`.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// What was: a file, an archive, a folder.
    old: PathBuf,
    /// What is.
    new: PathBuf,
    #[command(flatten)]
    filter: KernelFilter,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    place: Where,
    /// Ends with status 1 if this holds of a kernel in both: `registers > +8`, `stack > 0`, `code > +10%`, `shared >= 49152`; or of
    /// the numbers of kernels: `added > 0`, `gone > 0`, `changed > 0`.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
    /// How to print; `--json` is the same as `--format json`.
    #[arg(long, value_name = "FORM", default_value = "text", conflicts_with_all = ["json", "json_lines"])]
    format: Format,
    #[command(flatten)]
    json: JsonArguments,
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
                wanted: Wanted { names: &self.filter.kernel, code: true },
                code: &self.code,
                search: self.place.search(),
            };
            let mut rows = collect(request, &mut faults)?;
            // both sides are called alike: what is inside, without what it is in
            let root = path.display().to_string();
            all_inside(&mut rows, &root);
            anyhow::Ok(rows)
        };
        let (old, new) = (side(&self.old)?, side(&self.new)?);
        let mut found = difference(&old, &new);
        drop((old, new));
        self.order(&mut found);
        for condition in &self.fail_on {
            found.failed.extend(condition.holds(&found));
        }
        let failed = found.failed.clone();
        match if self.json.is_on() { Format::Json } else { self.format } {
            Format::Json => {
                found.cut(self.filter.limit.unwrap_or(usize::MAX));
                crate::json::write(out, &found)?;
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
        use crate::kernel_filter::KernelOrder;
        let grown = |change: &Change, what: fn(&Needs) -> u64| {
            let [old, new] = [&change.old, &change.new].map(|side| side.as_ref().map_or(0, what));
            std::cmp::Reverse(old.abs_diff(new))
        };
        for list in [&mut found.added, &mut found.gone, &mut found.changed] {
            match self.filter.sort {
                None | Some(KernelOrder::Size) => {
                    list.sort_by_key(|one| grown(one, |needs| needs.code_size))
                }
                Some(KernelOrder::Registers) => {
                    list.sort_by_key(|one| grown(one, |needs| needs.registers.unwrap_or(0).into()));
                }
                Some(KernelOrder::Name) => list.sort_by(|one, other| one.name.cmp(&other.name)),
            }
        }
    }
}
