//! `hoist fatbin list FILE...`: what device code files hold. Files are mapped, only headers are read, nothing is unpacked.

use std::collections::BTreeMap;
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
    serde_json::to_writer(&mut *out, &path.to_string_lossy())?;
    Ok(write!(out, ",\"size\":{size},\"regions\":[")?)
}

fn json_tail(errors: &[String], out: &mut dyn Write) -> Result<()> {
    write!(out, "],\"errors\":")?;
    serde_json::to_writer(&mut *out, errors)?;
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
        serde_json::to_writer(&mut *out, row)?;
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
            table.row(cells(region, entry))?;
            for part in &entry.parts {
                let size = part.size.to_string();
                table.row(["", "", &part.kind, &part.arch, "", "", &size, "", "", "", ""])?;
            }
            let key = (&*entry.kind, entry.arch.as_deref().unwrap_or_default());
            let sum = sums.entry(key).or_default();
            sum.count += 1;
            sum.stored = sum.stored.saturating_add(entry.stored_size);
            sum.unpacked = sum.unpacked.saturating_add(entry.unpacked_size);
        }
        if region.entries.is_empty() {
            let (index, offset) = (region.index.to_string(), format!("{:#x}", region.offset));
            table.row([&*index, "", "empty", "", &offset, "", "", "", "", "", &place(region)])?;
        }
    }
    if count > 0 {
        table.end()?;
        writeln!(out)?;
        let mut table = Table::new(out);
        table.row(["kind", "arch", "entries", "stored", "unpacked"])?;
        let mut all = Sum::default();
        for ((kind, arch), sum) in &sums {
            table.row([
                *kind,
                arch,
                &sum.count.to_string(),
                &sum.stored.to_string(),
                &sum.unpacked.to_string(),
            ])?;
            all.count += sum.count;
            all.stored = all.stored.saturating_add(sum.stored);
            all.unpacked = all.unpacked.saturating_add(sum.unpacked);
        }
        table.row([
            "all",
            "",
            &all.count.to_string(),
            &all.stored.to_string(),
            &all.unpacked.to_string(),
        ])?;
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
fn place(region: &RegionRow<'_>) -> String {
    let section = region.section.map(|name| name.to_string());
    let place = match (section, region.member) {
        (Some(section), Some(member)) => format!("{member}: {section}"),
        (Some(section), None) => section,
        (None, Some(member)) => member.to_string(),
        (None, None) => region.container.to_owned(),
    };
    if region.searched { format!("{place} (searched)") } else { place }
}

fn cells(region: &RegionRow<'_>, entry: &EntryRow<'_>) -> [String; 11] {
    let mut options = match (&entry.options, &entry.compat, &entry.triple) {
        (Some(options), _, _) => options.to_string().trim().to_owned(),
        (_, Some(_), _) => "compat".to_owned(),
        (_, _, Some(triple)) => triple.to_string(),
        _ => String::new(),
    };
    if let Some(producer) = entry.producer {
        options = format!("{producer} {options}");
    }
    let compression = match (entry.compression, entry.obfuscation_key) {
        (method, Some(_)) => format!("{} obfuscated", method.unwrap_or_default()).trim().to_owned(),
        (method, None) => method.unwrap_or_default().to_owned(),
    };
    let debug = if entry.flag_names.0.contains(fatbin::Flags::DEBUG) { " debug" } else { "" };
    [
        region.index.to_string(),
        entry.index.to_string(),
        format!("{}{debug}", entry.kind),
        entry.arch.clone().unwrap_or_default(),
        format!("{:#x}", entry.offset),
        entry.stored_size.to_string(),
        entry.unpacked_size.to_string(),
        compression,
        entry.identifier.to_string(),
        options,
        place(region),
    ]
}
