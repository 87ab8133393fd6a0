//! `hoist fatbin list FILE...`: what device code files hold. Files are mapped, only headers are read, nothing is unpacked but
//! LLVM's containers that are compressed as a whole, whose headers are inside.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write;
use std::slice;

use anyhow::{Error, Result, ensure};
use fatbin::Search;

use super::filter::{Code, Where};
use super::found::containers;
use super::holding::Holding;
use super::payload::add_digests;
use super::rows::{EntryRow, RegionRow};
use crate::faults::{Faults, in_words};
use crate::json::JsonArguments;
use crate::mapped::Mapped;
use crate::paint;
use crate::printable::Printable;
use crate::sources::{Order, Roots, Source, Sources};
use crate::table::{Table, line};

/// Lists regions and their entries.
///
/// Host files of any kind (executables, libraries, objects, archives), and containers that are files of their own.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    code: Code,
    #[command(flatten)]
    holding: Holding,
    /// The order of entries in their file: `size` (unpacked, largest first) or `name`; that of the file without it.
    #[arg(long, value_name = "BY", conflicts_with_all = ["json", "json_lines"])]
    sort: Option<EntryOrder>,
    /// The most entries to show of a file.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    json: JsonArguments,
    /// Adds to JSON the SHA-256 of every image when unpacked: the same for the same code, however it is stored.
    #[arg(long)]
    digest: bool,
}

impl List {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged, or holds no device code; what can be read of it is printed.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        let mut roots = Roots::default();
        ensure!(!self.digest || self.json.is_on(), "--digest is for --json");
        if self.json.is_on() {
            write!(out, "{{\"files\":[")?;
        }
        let mut separator: &[u8] = b"";
        let look = |source: Source| {
            let mut shown = Vec::new();
            let search = self.place.search();
            let (mut rows, mut found) = regions(&source.file, search, &self.code);
            let mut errors = Vec::new();
            if let Some((places, wrong)) = self.holding.entries(&source, search, &self.code) {
                retain(&mut rows, |region, entry| places.contains(&(region, entry.index)));
                errors = wrong;
                found.clear(); // they are among these
            }
            let left_out = match self.sort {
                None => cut(&mut rows, self.limit.unwrap_or(usize::MAX)),
                Some(_) => 0,
            };
            if self.digest {
                found.extend(add_digests(&source.file, &mut rows));
            }
            if self.json.is_on() {
                json(&source, &rows, &found, &mut shown)?;
            } else if !rows.is_empty() {
                text(&source, &rows, (self.sort, self.limit, left_out), &mut shown)?;
            }
            let context = |error| Error::new(error).context(source.label.clone());
            errors.extend(found.into_iter().map(context));
            anyhow::Ok((shown, rows.len(), errors))
        };
        self.sources.each(Order::AtOnce, look, |root, found| {
            let (shown, count, errors) = match found.and_then(|found| found) {
                Ok(found) => found,
                Err(error) => {
                    roots.failed(root);
                    if self.json.is_on() {
                        out.write_all(separator)?;
                        separator = b",";
                        json_head(&self.sources.root(root), 0, out)?;
                        json_tail(&[in_words(&error)], out)?;
                    }
                    faults.push(error);
                    return Ok(());
                }
            };
            roots.has(root, count > 0);
            if !errors.is_empty() {
                roots.failed(root);
            }
            errors.into_iter().for_each(|error| faults.push(error));
            if !shown.is_empty() {
                out.write_all(separator)?;
                separator = if self.json.is_on() { b"," } else { b"\n" };
                out.write_all(&shown)?;
            }
            Ok(())
        })?;
        if self.json.is_on() {
            writeln!(out, "]}}")?;
        } else {
            let what = match self.code.is_all() && self.holding.is_all() {
                true => "holds no device code",
                false => "holds no such device code",
            };
            roots.without_containers(&self.sources.paths, what, &mut faults);
        }
        faults.result()
    }
}

/// Every container of a file in order, with the entries that are meant, and the errors met.
#[must_use]
pub fn regions<'a>(
    file: &'a Mapped,
    search: Search,
    code: &Code,
) -> (Vec<RegionRow<'a>>, Vec<fatbin::Error>) {
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for found in containers(file, search, |found| RegionRow::of(0, &found)) {
        match found {
            Ok((row, error)) => {
                rows.push(RegionRow { index: rows.len(), ..row });
                errors.extend(error);
            }
            Err(error) => errors.push(error),
        }
    }
    if !code.is_all() {
        retain(&mut rows, |_, entry| code.wants_row(entry));
    }
    (rows, errors)
}

/// Leaves out all entries but these, with the number of their region, and regions without any.
pub fn retain(
    rows: &mut Vec<RegionRow<'_>>,
    mut is_meant: impl FnMut(usize, &EntryRow<'_>) -> bool,
) {
    for region in &mut *rows {
        let index = region.index;
        region.entries.retain(|entry| is_meant(index, entry));
    }
    rows.retain(|region| !region.entries.is_empty());
}

/// Leaves the first entries: how many are left out.
fn cut(rows: &mut Vec<RegionRow<'_>>, limit: usize) -> usize {
    let count = rows.iter().map(|region| region.entries.len()).sum::<usize>();
    if count <= limit {
        return 0;
    }
    let mut left = limit;
    retain(rows, |_, _| {
        let is_kept = left > 0;
        left = left.saturating_sub(1);
        is_kept
    });
    count - limit
}

/// An order of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EntryOrder {
    /// The largest first, unpacked.
    Size,
    /// By name.
    Name,
}

fn json_head(label: &str, size: usize, out: &mut dyn Write) -> Result<()> {
    write!(out, "{{\"file\":")?;
    crate::json::write(out, label)?;
    Ok(write!(out, ",\"size\":{size},\"regions\":[")?)
}

fn json_tail(errors: &[String], out: &mut dyn Write) -> Result<()> {
    write!(out, "],\"errors\":")?;
    crate::json::write(out, errors)?;
    Ok(write!(out, "}}")?)
}

/// Shows a file to programs.
fn json(
    source: &Source,
    rows: &[RegionRow<'_>],
    errors: &[fatbin::Error],
    out: &mut Vec<u8>,
) -> Result<()> {
    json_head(&source.label, source.file.bytes().len(), out)?;
    for (index, row) in rows.iter().enumerate() {
        out.write_all(if index == 0 { b"" } else { b"," })?;
        crate::json::write(out, row)?;
    }
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    json_tail(&texts, out)
}

/// Bytes of the entries of a kind and architecture.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: usize,
    stored: u64,
    unpacked: u64,
}

/// Shows a file to people.
fn text(
    source: &Source,
    rows: &[RegionRow<'_>],
    (sort, limit, mut left_out): (Option<EntryOrder>, Option<usize>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    let mut table = Table::new(out);
    table.heading([
        "region",
        "entry",
        "kind",
        "arch",
        "offset",
        "stored",
        "unpacked",
        "compression",
        "name",
        "options",
        "where",
    ])?;
    let mut sorted: Vec<_> = rows
        .iter()
        .flat_map(|region| region.entries.iter().map(move |one| (region, one)))
        .collect();
    match sort {
        None => sorted.clear(),
        Some(EntryOrder::Size) => sorted.sort_by_key(|(_, one)| Reverse(one.unpacked_size)),
        Some(EntryOrder::Name) => sorted.sort_by_cached_key(|(_, one)| one.identifier.to_string()),
    }
    if let Some(limit) = limit.filter(|_| sort.is_some()) {
        left_out = sorted.len().saturating_sub(limit);
        sorted.truncate(limit);
    }
    let groups = rows.iter().filter(|_| sort.is_none());
    let groups = groups.map(|region| (region, region.entries.as_slice()));
    let groups = groups.chain(sorted.iter().map(|(region, one)| (*region, slice::from_ref(*one))));
    for (region, entries) in groups {
        for entry in entries {
            row(region, entry, &mut table)?;
            for part in &entry.parts {
                let cells: [&dyn Display; _] =
                    [&"", &"", &part.kind, &part.arch, &"", &"", &part.size, &"", &"", &"", &""];
                table.row(cells)?;
            }
            let key = (&*entry.kind, entry.arch.as_deref().unwrap_or_default());
            let sum = sums.entry(key).or_default();
            sum.count += 1;
            sum.stored = sum.stored.saturating_add(entry.stored_size);
            sum.unpacked = sum.unpacked.saturating_add(entry.unpacked_size);
        }
        if entries.is_empty() {
            let offset = format_args!("{:#x}", region.offset);
            let place = Place(region);
            let cells: [&dyn Display; _] =
                [&region.index, &"", &"empty", &"", &offset, &"", &"", &"", &"", &"", &place];
            table.row(cells)?;
        }
    }
    table.end()?;
    writeln!(out)?;
    let mut table = Table::new(out);
    table.heading(["kind", "arch", "entries", "stored", "unpacked"])?;
    let mut all = Sum::default();
    for ((kind, arch), sum) in &sums {
        let cells: [&dyn Display; _] = [kind, arch, &sum.count, &sum.stored, &sum.unpacked];
        table.row(cells)?;
        all.count += sum.count;
        all.stored = all.stored.saturating_add(sum.stored);
        all.unpacked = all.unpacked.saturating_add(sum.unpacked);
    }
    let cells: [&dyn Display; _] = [&"all", &"", &all.count, &all.stored, &all.unpacked];
    table.row(cells)?;
    table.end()?;
    if left_out > 0 {
        writeln!(out, "and {left_out} more entries")?;
    }
    let size = source.file.bytes().len();
    let label = Printable::from(&*source.label).to_string();
    let count = rows.len();
    let regions = if count == 1 { "region" } else { "regions" };
    let end = format!(": {count} {regions}, {size} bytes");
    Ok(paint::title(out, format_args!("{}", line(&label, &end)))?)
}

/// Where a region lies: its section, and the member of an archive.
struct Place<'a>(&'a RegionRow<'a>);

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(region) = self;
        match (region.section, region.member) {
            (Some(section), Some(member)) => write!(f, "{member}: {section}")?,
            (Some(name), None) | (None, Some(name)) => name.fmt(f)?,
            (None, None) => f.write_str(region.container)?,
        }
        f.write_str(if region.searched { " (searched)" } else { "" })
    }
}

/// Adds the row of an entry.
fn row(region: &RegionRow<'_>, entry: &EntryRow<'_>, table: &mut Table<'_>) -> Result<()> {
    let options: Cow<'_, str> = match (&entry.options, &entry.compat, entry.triple, entry.producer)
    {
        (Some(options), ..) => options.to_string().trim().to_owned().into(),
        (_, Some(_), ..) => "compat".into(),
        (_, _, Some(triple), Some(producer)) => format!("{producer} {triple}").into(),
        (_, _, Some(triple), None) => triple.to_string().into(),
        (_, _, None, producer) => producer.unwrap_or_default().into(),
    };
    let method = entry.compression.unwrap_or_default();
    let compression: Cow<'_, str> = match entry.obfuscation_key {
        Some(_) => format!("{method} obfuscated").trim_start().to_owned().into(),
        None => method.into(),
    };
    let debug = if entry.flag_names.0.contains(fatbin::EntryFlags::DEBUG) { " debug" } else { "" };
    let cells: [&dyn Display; _] = [
        &region.index,
        &entry.index,
        &format_args!("{}{debug}", entry.kind),
        &entry.arch.as_deref().unwrap_or_default(),
        &format_args!("{:#x}", entry.offset),
        &entry.stored_size,
        &entry.unpacked_size,
        &compression,
        &entry.identifier,
        &options,
        &Place(region),
    ];
    table.row(cells)
}
