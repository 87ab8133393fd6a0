//! `hoist fatbin scan PATH...`: which architectures are covered, by which file of a tree. Files are looked at on all cores.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Error, Result, anyhow};
use fatbin::EntryKind;
use serde::Serialize;

use super::filter::{Code, Where};
use super::holding::Holding;
use super::list::{regions, retain};
use super::rows::RegionRow;
use crate::faults::Faults;
use crate::json::JsonArguments;
use crate::printable::Printable;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::Table;

/// Shows which architectures the files of a tree cover, archives and wheels inside included.
#[derive(Debug, clap::Args)]
pub struct Scan {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    holding: Holding,
    /// The order of files: `size` (of what is stored, largest first) or `name`; that of the command line without it.
    #[arg(long, value_name = "BY")]
    sort: Option<FileOrder>,
    /// The most files to show.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    json: JsonArguments,
}

/// An order of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FileOrder {
    /// The most bytes of device code first.
    Size,
    /// By name.
    Name,
}

/// What a file holds.
#[derive(Debug, Default, Serialize)]
pub struct Covered {
    /// The file; in an archive behind its path and a colon.
    pub file: String,
    /// Number of regions.
    pub regions: usize,
    /// Number of entries.
    pub entries: usize,
    /// Bytes of all payloads as they are stored.
    pub stored_size: u64,
    /// Bytes of all payloads when unpacked, as headers claim.
    pub unpacked_size: u64,
    /// Architectures with machine code.
    pub code: BTreeSet<Arch>,
    /// Architectures with PTX.
    pub ptx: BTreeSet<Arch>,
    /// Architectures with other code.
    pub other: BTreeSet<Arch>,
}

/// The name of an architecture, ordered by its number: those of AMD, whose numbers are hexadecimal, behind all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch(u32, String);

impl Arch {
    fn new(name: &str) -> Self {
        const AMD: u32 = 1 << 31;
        let number = match name.strip_prefix("gfx") {
            Some(number) => {
                let end = number.find(|one: char| !one.is_ascii_hexdigit());
                let digits = end.and_then(|end| number.get(..end)).unwrap_or(number);
                AMD | u32::from_str_radix(digits, 16).unwrap_or(0)
            }
            None => {
                let digits: String = name.chars().filter(char::is_ascii_digit).collect();
                digits.parse().unwrap_or(0)
            }
        };
        Self(number, name.to_owned())
    }
}

impl Serialize for Arch {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.1)
    }
}

impl Covered {
    fn add(&mut self, region: &RegionRow<'_>) {
        self.regions += 1;
        for entry in &region.entries {
            self.entries += 1;
            self.stored_size = self.stored_size.saturating_add(entry.stored_size);
            self.unpacked_size = self.unpacked_size.saturating_add(entry.unpacked_size);
            let triple = || entry.triple.map(|triple| triple.to_string());
            let set = |kind: &str| match kind {
                kind if kind == EntryKind::Ptx.name() || kind == "s" => 1,
                "elf" | "cubin" | "o" | "hip" | "hipv4" => 0,
                _ => 2,
            };
            let named = entry.arch.clone().or_else(triple);
            let parts = entry.parts.iter().map(|part| (&*part.kind, part.arch.clone()));
            for (kind, arch) in named.map(|arch| (&*entry.kind, arch)).into_iter().chain(parts) {
                let into = [&mut self.code, &mut self.ptx, &mut self.other];
                into.into_iter().nth(set(kind)).into_iter().for_each(|set| {
                    set.insert(Arch::new(&arch));
                });
            }
        }
    }
}

impl Scan {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a folder or file cannot be read, is damaged, or holds no device code; the others are shown.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        let mut all: Vec<Covered> = Vec::new();
        let look = |source| self.look(source);
        self.sources.each(Order::AtOnce, look, |root, found| {
            match found {
                Ok((covered, errors)) => {
                    roots.has(root, covered.is_some() || !errors.is_empty());
                    all.extend(covered);
                    errors.into_iter().for_each(|error| faults.push(error));
                }
                Err(error) => {
                    roots.failed(root);
                    faults.push(error);
                }
            }
            Ok(())
        })?;
        match self.code.is_all() && self.holding.is_all() {
            true => {
                roots.without_containers(&self.sources.paths, "holds no device code", &mut faults)
            }
            false if roots.is_nothing() => {
                faults.push(anyhow!("no such device code in these files"))
            }
            false => {}
        }
        match self.sort {
            None => {}
            Some(FileOrder::Size) => all.sort_by_key(|one| Reverse(one.stored_size)),
            Some(FileOrder::Name) => all.sort_by(|one, other| one.file.cmp(&other.file)),
        }
        all.truncate(self.limit.unwrap_or(usize::MAX));
        if self.json.is_on() {
            json(&all, out)?
        } else if !all.is_empty() {
            text(&all, out)?
        }
        faults.result()
    }
}

impl Scan {
    /// What a file holds; what was wrong.
    fn look(&self, source: Source) -> (Option<Covered>, Vec<Error>) {
        let search = self.place.search();
        let (mut rows, errors) = regions(&source.file, search, &self.code);
        let context = |error| Error::new(error).context(source.label.clone());
        let mut errors: Vec<_> = errors.into_iter().map(context).collect();
        if let Some((places, wrong)) = self.holding.entries(&source, search, &self.code) {
            retain(&mut rows, |region, entry| places.contains(&(region, entry.index)));
            errors = wrong; // the others are among these
        }
        let mut covered = Covered { file: source.label.clone(), ..Covered::default() };
        rows.iter().for_each(|region| covered.add(region));
        // A file that cannot be read as what it seems to be is only of interest if it holds something.
        ((covered.regions > 0).then_some(covered), errors)
    }
}

/// Architectures to the number of files that have code, and PTX, for them.
fn coverage(all: &[Covered]) -> BTreeMap<&Arch, (usize, usize)> {
    let mut counts: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for covered in all {
        covered.code.iter().for_each(|arch| counts.entry(arch).or_default().0 += 1);
        covered.ptx.iter().for_each(|arch| counts.entry(arch).or_default().1 += 1);
    }
    counts
}

fn json(all: &[Covered], out: &mut dyn Write) -> Result<()> {
    let archs: Vec<_> = coverage(all)
        .into_iter()
        .map(|(arch, (code, ptx))| serde_json::json!({ "arch": arch, "files_with_code": code, "files_with_ptx": ptx }))
        .collect();
    crate::json::write(out, &serde_json::json!({ "files": all, "archs": archs }))?;
    Ok(writeln!(out)?)
}

fn text(all: &[Covered], out: &mut dyn Write) -> Result<()> {
    let list = |set: &BTreeSet<Arch>| {
        let names: Vec<_> = set.iter().map(|Arch(_, name)| short(name)).collect();
        names.join(" ")
    };
    let mut table = Table::new(out);
    table.heading(["regions", "entries", "stored", "unpacked", "code", "ptx", "other", "file"])?;
    for covered in all {
        table.row([
            covered.regions.to_string(),
            covered.entries.to_string(),
            covered.stored_size.to_string(),
            covered.unpacked_size.to_string(),
            list(&covered.code),
            list(&covered.ptx),
            list(&covered.other),
            Printable::from(&*covered.file).to_string(),
        ])?;
    }
    table.end()?;
    writeln!(out)?;
    let mut table = Table::new(out);
    table.heading(["arch", "files with code", "files with ptx"])?;
    for (Arch(_, name), (code, ptx)) in coverage(all) {
        table.row([name, &code.to_string(), &ptx.to_string()])?;
    }
    table.end()
}

/// What the column says already is left out.
fn short(name: &str) -> String {
    let name = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).unwrap_or(name);
    Printable::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use super::Arch;

    #[test]
    fn architectures_are_in_the_order_of_their_numbers() {
        let names = [
            "sm_80",
            "sm_90",
            "sm_90a",
            "compute_120",
            "sm_120",
            "gfx9-generic",
            "gfx900",
            "gfx906:xnack-",
            "gfx90a",
            "gfx942",
            "gfx1010",
            "gfx1201",
        ];
        let mut archs: Vec<_> = names.iter().rev().map(|name| Arch::new(name)).collect();
        archs.sort();
        let sorted: Vec<_> = archs.iter().map(|Arch(_, name)| name.as_str()).collect();
        assert_eq!(sorted, names);
    }
}
