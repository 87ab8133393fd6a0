//! What commands that change host files have in common: which file, to where, what becomes of its regions, and what is said of it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Seek as _, SeekFrom, Write};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use elf_core::File;
use elf_rewrite::{Piece, Remark, RewritePlan, Rewriter};
use fatbin::{CompressionMethod, Region, RegionEntry, Search, wrappers};
use serde::Serialize;

use super::blob::Blob;
use super::found::regions;
use crate::alone;
use crate::mapped::Mapped;
use crate::output::{self, Backup, Dates, Turn};
use crate::paint;
use crate::printable::Printable;

/// Which file is changed.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// An executable, a shared or static library, an object, or a fatbin.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The file to write: it appears when it is whole. It may be the same.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Refuses to write a file that is not smaller. What is free goes from the file in any case, where its layout allows.
    #[arg(long)]
    pub shrink: bool,
    /// What becomes of its times.
    #[command(flatten)]
    pub dates: Dates,
    /// What becomes of the file that is replaced.
    #[command(flatten)]
    pub backup: Backup,
    /// Prints JSON with stable keys.
    #[arg(long)]
    pub json: bool,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report<'a> {
    file: &'a str,
    output: &'a str,
    /// The name under which the file is kept that was replaced.
    backup: Option<PathBuf>,
    /// Regions that changed.
    regions: usize,
    /// Regions that moved into a new segment, those included that share their section.
    moved: usize,
    size_before: u64,
    size_after: u64,
    /// Bytes that are zeros now.
    holes: u64,
    notes: &'a [String],
}

/// A region that becomes another.
#[derive(Clone, Debug)]
pub struct Change {
    /// Offset of the region in the file.
    pub at: u64,
    /// Its size in bytes.
    pub size: u64,
    /// What it becomes.
    pub new: Blob,
}

/// What becomes of a region that would have to move where nothing points to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreferenced {
    /// It stays as it is: whoever finds it by other means finds it still.
    Left,
    /// It is a reason to refuse: this region was meant.
    Refused,
}

/// The section that cuobjdump shows with `-all`.
const WITH_ALL: &str = "__nv_relfatbin";

/// The entries of a region.
///
/// # Errors
/// If one cannot be read: a region that is not understood is not changed.
pub fn entries<'a>(region: &Region<'a>) -> Result<Vec<RegionEntry<'a>>> {
    Ok(region.entries().collect::<Result<_, _>>()?)
}

/// A region that becomes `new`.
#[must_use]
pub const fn change(region: &Region<'_>, new: Blob) -> Change {
    Change { at: region.at(), size: region.size(), new }
}

/// A file that is to be changed; if that is where it is, by nobody else in the meantime.
#[derive(Debug)]
pub struct Input {
    file: Mapped,
    turn: Option<Turn>,
}

impl Deref for Input {
    type Target = Mapped;

    fn deref(&self) -> &Mapped {
        &self.file
    }
}

impl Files {
    /// Opens the file.
    ///
    /// # Errors
    /// As [`alone::open`].
    pub fn open(&self) -> Result<Input> {
        alone::check(&self.file)?;
        let turn = Turn::in_place(&self.file, &self.output)?;
        Ok(Input { file: Mapped::open(&self.file)?, turn })
    }

    /// What to call the file.
    #[must_use]
    pub fn label(&self) -> String {
        self.file.display().to_string()
    }

    /// Writes the file with these changes, looks at what was written, and says what was done.
    ///
    /// # Errors
    /// If the file cannot be changed so: then nothing is written.
    pub fn apply(
        &self,
        Input { file, turn }: &Input,
        mut changes: Vec<Change>,
        mut notes: Vec<String>,
        unreferenced: Unreferenced,
        out: &mut dyn Write,
    ) -> Result<()> {
        let plan = plan(file, &mut changes, unreferenced).with_context(|| self.label())?;
        let before = file.bytes().len() as u64;
        ensure!(
            !self.shrink || plan.size() < before,
            "{}: would not become smaller: {} bytes before, {} after",
            self.label(),
            before,
            plan.size()
        );
        file.done_with(0..before);
        let keep = |old: &Path, _: &fs::File| self.backup.make(old);
        let old = (&*self.file, turn.as_ref());
        let changed = output::change(&self.output, old, self.dates, keep, |to| {
            write(&plan, file, to).with_context(|| self.output.display().to_string())?;
            let written = Mapped::map(to)?;
            check(file, &written, &changes).with_context(|| self.label())
        })?;
        notes.extend(changed.note.map(String::from));
        notes.extend(plan.remarks.iter().map(note));
        notes.sort();
        notes.dedup();
        let report = Report {
            file: &self.label(),
            output: &self.output.display().to_string(),
            backup: changed.backup,
            regions: changes.len(),
            moved: plan.moved,
            size_before: before,
            size_after: plan.size(),
            holes: plan.holes,
            notes: &notes,
        };
        let out = &mut *output::beside(&self.output, out);
        if self.json {
            crate::json::write(out, &report)?;
            return Ok(writeln!(out)?);
        }
        text(&report, out)
    }
}

fn text(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let Report { regions, moved, size_before, size_after, holes, .. } = report;
    let holes = match holes {
        0 => String::new(),
        holes => {
            format!(", {holes} of them holes, which take no room where the file system has such")
        }
    };
    let moved =
        if *moved > 0 { format!(", {moved} moved into a new segment") } else { String::new() };
    writeln!(
        out,
        "{}: {regions} {} changed{moved}; {size_before} bytes before, {size_after} after{holes}",
        Printable::from(report.output),
        if *regions == 1 { "region" } else { "regions" }
    )?;
    if let Some(backup) = &report.backup {
        paint::note(out, &format!("what was replaced is kept as {}", backup.display()))?;
    }
    for note in report.notes {
        paint::note(out, note)?;
    }
    Ok(())
}

/// How a file is to be written; `changes` are put in order, and those that are not made are not among them any more.
pub(super) fn plan(
    file: &Mapped,
    changes: &mut Vec<Change>,
    unreferenced: Unreferenced,
) -> Result<RewritePlan<Blob>> {
    changes.sort_by_key(|change| change.at);
    let bytes = file.bytes();
    if changes.is_empty() {
        return Ok(RewritePlan::unchanged(bytes.len() as u64));
    }
    for change in &*changes {
        ensure!(Region::parse(&*change.new).is_ok(), "what a region becomes is no region");
        change.new.rest();
    }
    let new = changes
        .iter()
        .map(|change| (change.at..change.at.saturating_add(change.size), change.new.clone()));
    let mut rewriter = Rewriter::of_device_code(bytes, new)?;
    if unreferenced == Unreferenced::Left {
        rewriter.leave_unreferenced();
    }
    let plan = rewriter.plan()?;
    changes.retain(|change| plan.left.binary_search(&change.at).is_err());
    Ok(plan)
}

/// Writes the changed file, of which little is in memory at a time; zeros are holes.
pub(super) fn write(plan: &RewritePlan<Blob>, file: &Mapped, out: &mut fs::File) -> Result<()> {
    for piece in plan.pieces() {
        match piece {
            Piece::Kept(range) => copy(file, range, out)?,
            Piece::Given(blob) => {
                out.write_all(blob)?;
                blob.rest();
            }
            Piece::Made(bytes) => out.write_all(bytes)?,
            Piece::Zeros(size) => {
                out.seek(SeekFrom::Current(i64::try_from(size)?))?;
            }
            _ => bail!("a piece of an unknown kind"),
        }
    }
    let size = out.stream_position()?;
    Ok(out.set_len(size)?)
}

/// Writes a range of a file piece by piece.
fn copy(file: &Mapped, range: Range<u64>, out: &mut fs::File) -> Result<()> {
    const PIECE: usize = 8 << 20;
    let part = usize::try_from(range.start)?..usize::try_from(range.end)?;
    let bytes = file.bytes().get(part).context("no such bytes")?;
    file.reads(range.start..range.start.saturating_add(PIECE as u64));
    for (at, piece) in (range.start..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
        let end = at.saturating_add(piece.len() as u64);
        file.reads(end..range.end.min(end.saturating_add(PIECE as u64)));
        out.write_all(piece)?;
        file.done_with(at..end);
    }
    Ok(())
}

/// What is to be known of the changed file, with what it means to NVIDIA's tools.
pub(super) fn note(remark: &Remark) -> String {
    match remark {
        Remark::NewSection(name) if name == WITH_ALL => {
            format!("{remark}: cuobjdump shows it with -all")
        }
        Remark::NewSection(_) => {
            format!("{remark}, and of two of this name cuobjdump sees the first")
        }
        _ => remark.to_string(),
    }
}

/// Looks at a changed file: it has as many regions with entries, those that changed are there, and wrappers lead to regions as
/// before.
pub(super) fn check(old: &Mapped, new: &Mapped, changes: &[Change]) -> Result<()> {
    // the search for magic numbers passes over regions without entries
    let filled = |region: &Region<'_>| region.entries().next().is_some();
    let filled_change =
        |change: &&Change| Region::parse(&*change.new).is_ok_and(|new| filled(&new));
    let (before, after) = (regions(old, Search::Always)?, regions(new, Search::Always)?);
    let (before, after): (Vec<_>, Vec<_>) = (
        before.into_iter().filter(|(_, region)| filled(region)).collect(),
        after.into_iter().filter(|(_, region)| filled(region)).collect(),
    );
    let starts: HashSet<u64> = before.iter().map(|(_, region)| region.at()).collect();
    let was_filled = changes.iter().filter(|change| starts.contains(&change.at));
    let emptied = was_filled.filter(|change| !filled_change(change)).count();
    ensure!(
        after.len() + emptied == before.len(),
        "would have {} regions instead of {}",
        after.len(),
        before.len() - emptied
    );
    let mut there: HashMap<u64, Vec<&Region<'_>>> = HashMap::new();
    for (_, region) in &after {
        there.entry(region.size()).or_default().push(region);
    }
    for change in changes.iter().filter(filled_change) {
        let same = |region: &&&Region<'_>| same(new, region, &change.new);
        let found =
            there.get(&(change.new.len() as u64)).and_then(|regions| regions.iter().find(same));
        ensure!(found.is_some(), "the region at offset {:#x} would be lost", change.at);
    }
    let (lost, wrong) = (unwrapped(old.bytes()), unwrapped(new.bytes()));
    if wrong > lost {
        bail!("{wrong} wrappers would lead to no region");
    }
    Ok(())
}

/// Whether a region of `file` has these bytes, of which few are in memory at a time.
fn same(file: &Mapped, region: &Region<'_>, bytes: &Blob) -> bool {
    const PIECE: usize = 8 << 20;
    let pieces = region.bytes().chunks(PIECE).zip(bytes.chunks(PIECE));
    let same = (region.at()..).step_by(PIECE).zip(pieces).all(|(at, (one, other))| {
        let same = one == other;
        file.done_with(at..at.saturating_add(one.len() as u64));
        bytes.rest();
        same
    });
    same && region.bytes().len() == bytes.len()
}

/// Wrappers that lead to no region.
fn unwrapped(bytes: &[u8]) -> usize {
    let Ok(file) = File::parse(bytes) else { return 0 };
    let leads = |wrapper: fatbin::Wrapper| {
        let at = wrapper.data.file_offset(&file).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| bytes.get(at..)).is_some_and(|bytes| Region::parse(bytes).is_ok())
    };
    wrappers(&file).filter(|wrapper| !wrapper.is_ok_and(leads)).count()
}

/// What a method asks of drivers.
#[must_use]
pub fn needs(method: Option<CompressionMethod>) -> Option<String> {
    let since = method?.since()?;
    let name = method?.name();
    Some(format!(
        "{name} needs a driver of CUDA {since} or later; --mode speed (LZ4) is for older ones, too"
    ))
}

/// The path of a file, for messages.
#[must_use]
pub fn label(path: &Path) -> String {
    path.display().to_string()
}
