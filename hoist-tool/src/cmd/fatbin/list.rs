//! `hoist fatbin list FILE...`: what device code files hold. Files are mapped, only headers are read, nothing is unpacked.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use fatbin::Search;

use super::Faults;
use super::filter::Where;
use super::found::containers;
use super::mapped::Mapped;
use super::rows::{EntryRow, RegionRow};
use crate::printable::Printable;
use crate::table::Table;

/// Lists regions and their entries.
///
/// Host files of any kind (executables, libraries, objects, archives), and containers that are files of their own.
#[derive(Debug, clap::Args)]
pub struct List {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Prints JSON with stable keys.
    #[arg(long)]
    json: bool,
}

impl List {
    /// Prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged, or holds no device code; what can be read of it is printed.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut faults = Faults::default();
        if self.json {
            write!(out, "{{\"files\":[")?;
        }
        for (index, path) in self.files.iter().enumerate() {
            let separator = if self.json { "," } else { "\n" };
            out.write_all(if index == 0 { b"" } else { separator.as_bytes() })?;
            let file = match Mapped::open(path) {
                Ok(file) => file,
                Err(error) => {
                    if self.json {
                        json_head(path, 0, out)?;
                        json_tail(&[format!("{error:#}")], out)?;
                    }
                    faults.push(error);
                    continue;
                }
            };
            if self.json {
                json(path, &file, self.place.search(), &mut faults, out)?
            } else {
                text(path, &file, self.place.search(), &mut faults, out)?
            }
        }
        if self.json {
            writeln!(out, "]}}")?;
        }
        faults.result()
    }
}

/// Every container of a file in order, and the errors met.
#[must_use]
pub fn regions(file: &Mapped, search: Search) -> (Vec<RegionRow<'_>>, Vec<fatbin::Error>) {
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
    (rows, errors)
}

fn json_head(path: &Path, size: usize, out: &mut dyn Write) -> Result<()> {
    write!(out, "{{\"file\":")?;
    crate::json::write(out, &path.to_string_lossy())?;
    Ok(write!(out, ",\"size\":{size},\"regions\":[")?)
}

fn json_tail(errors: &[String], out: &mut dyn Write) -> Result<()> {
    write!(out, "],\"errors\":")?;
    crate::json::write(out, errors)?;
    Ok(write!(out, "}}")?)
}

fn json(
    path: &Path,
    file: &Mapped,
    search: Search,
    faults: &mut Faults,
    out: &mut dyn Write,
) -> Result<()> {
    json_head(path, file.bytes().len(), out)?;
    let (rows, errors) = regions(file, search);
    for (index, row) in rows.iter().enumerate() {
        out.write_all(if index == 0 { b"" } else { b"," })?;
        crate::json::write(out, row)?;
    }
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    json_tail(&texts, out)?;
    for error in errors {
        faults.push(anyhow::Error::new(error).context(path.display().to_string()));
    }
    Ok(())
}

/// Bytes of the entries of a kind and architecture.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: usize,
    stored: u64,
    unpacked: u64,
}

fn text(
    path: &Path,
    file: &Mapped,
    search: Search,
    faults: &mut Faults,
    out: &mut dyn Write,
) -> Result<()> {
    let label = path.display().to_string();
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    let (rows, errors) = regions(file, search);
    let count = rows.len();
    let mut table = Table::new(out);
    table.row([
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
    for region in &rows {
        for entry in &region.entries {
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
        if region.entries.is_empty() {
            let offset = format_args!("{:#x}", region.offset);
            let place = Place(region);
            let cells: [&dyn Display; _] =
                [&region.index, &"", &"empty", &"", &offset, &"", &"", &"", &"", &"", &place];
            table.row(cells)?;
        }
    }
    if count > 0 {
        table.end()?;
        writeln!(out)?;
        let mut table = Table::new(out);
        table.row(["kind", "arch", "entries", "stored", "unpacked"])?;
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
        let size = file.bytes().len();
        writeln!(out, "{}: {count} regions, {size} bytes", Printable::from(&*label))?;
    } else if errors.is_empty() {
        faults.push(anyhow!("{label}: holds no device code"));
    }
    for error in errors {
        faults.push(anyhow::Error::new(error).context(label.clone()));
    }
    Ok(())
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
    let debug = if entry.flag_names.0.contains(fatbin::Flags::DEBUG) { " debug" } else { "" };
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
