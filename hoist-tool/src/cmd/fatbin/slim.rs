//! `hoist fatbin slim DIR --keep sm_90,ptx --mode size --backup FOLDER`: installed libraries with the code that is wanted only, and
//! `--undo FOLDER`, which brings them back.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::unpacking::Unpacking;
use crate::json::JsonArguments;
use crate::mapped::Mapped;
use crate::output::{self, Dates};
use crate::paint;
use crate::printable::Printable;
use host::{Slimming, Tally};

pub mod digest;
pub mod host;

/// The list of what was done, in the folder of originals.
const LIST: &str = "slimmed.jsonl";

/// Makes installed libraries smaller, and back again.
#[derive(Debug, clap::Args)]
pub struct Slim {
    /// Libraries, or folders of them.
    #[arg(value_name = "PATH", required_unless_present = "undo")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    how: Slimming,
    /// Where originals are kept, with a list of them: a folder, which is made if there is none.
    #[arg(long, value_name = "FOLDER", required_unless_present = "undo")]
    backup: Option<PathBuf>,
    /// Puts the originals of this folder back where they were.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["paths", "keep", "mode", "backup"])]
    undo: Option<PathBuf>,
    #[command(flatten)]
    dates: Dates,
    #[command(flatten)]
    json: JsonArguments,
}

/// A line of the list: written before the file is changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    path: PathBuf,
    /// What the original is called in the folder: its SHA-256.
    original: String,
    /// SHA-256 of the smaller file.
    slimmed: String,
    size_before: u64,
    size_after: u64,
    /// When the original was modified.
    modified: Option<SystemTime>,
}

impl Slim {
    /// Changes files, and prints what was done.
    ///
    /// # Errors
    /// The first file that cannot be changed; those before it are.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut notes = BTreeSet::new();
        let mut tally = Tally::default();
        let lines = match (&self.undo, &self.backup) {
            (Some(folder), _) => undo(folder)?,
            (None, Some(folder)) => self.slim(folder, &mut tally, &mut notes)?,
            (None, None) => bail!("where originals are to be kept: --backup"),
        };
        if self.json.is_on() {
            let left = tally.left;
            let report = serde_json::json!({ "files": lines, "left": left, "notes": notes });
            crate::json::write(out, &report)?;
            return Ok(writeln!(out)?);
        }
        for line in &lines {
            let path = line.path.display().to_string();
            let (before, after) = match self.undo {
                Some(_) => (line.size_after, line.size_before),
                None => (line.size_before, line.size_after),
            };
            writeln!(out, "{}: {before} bytes before, {after} after", Printable::from(&*path))?;
        }
        for note in &notes {
            paint::note(out, note)?;
        }
        Ok(writeln!(out, "{} files changed", lines.len())?)
    }

    fn slim(
        &self,
        folder: &Path,
        tally: &mut Tally,
        notes: &mut BTreeSet<String>,
    ) -> Result<Vec<Line>> {
        ensure!(
            !self.how.keep.is_empty() || self.how.mode.is_some(),
            "nothing is to be done: --keep or --mode"
        );
        let mut lines = Vec::new();
        let unpacking = Unpacking::default();
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let folder = fs::canonicalize(folder)?;
        for root in &self.paths {
            for entry in WalkDir::new(root).sort_by_file_name() {
                let entry = entry?;
                if entry.file_type().is_file() && is_host(entry.path())? {
                    let path = fs::canonicalize(entry.path())?;
                    if !path.starts_with(&folder) {
                        let line = self.file(&path, &folder, &unpacking, (tally, notes));
                        lines.extend(line.with_context(|| path.display().to_string())?);
                    }
                }
            }
        }
        tally.check()?;
        notes.extend(tally.notes());
        if !lines.is_empty() {
            notes.extend(unpacking.note());
            notes.extend(self.dates.note().map(String::from));
        }
        Ok(lines)
    }

    /// Changes a file, if there is something to change: the original is kept first, then the list has its line, then it is replaced.
    fn file(
        &self,
        path: &Path,
        folder: &Path,
        unpacking: &Unpacking,
        (tally, notes): (&mut Tally, &mut BTreeSet<String>),
    ) -> Result<Option<Line>> {
        let file = Mapped::open(path)?;
        let outcome = self.how.plan(&file, unpacking)?;
        let name = path.display().to_string();
        let Some(slimmed) = tally.count(&name, outcome) else { return Ok(None) };
        // what becomes no smaller is left alone
        let (size_before, size_after) = slimmed.sizes;
        if size_after >= size_before && self.how.keep.is_empty() {
            return Ok(None);
        }
        let original = digest::of(&file);
        let kept = folder.join(&original);
        if !kept.exists() {
            output::write(&kept, Some(path), |to| Ok(to.write_all(file.bytes())?))?;
        }
        let mut hash = String::new();
        let new = output::Output::new(path, |to| {
            slimmed.write(&file, to)?;
            hash = digest::of(&Mapped::map(to)?);
            Ok(())
        })?;
        let new = new.like(path)?.dated(path, self.dates)?;
        notes.extend(slimmed.notes);
        let modified = fs::metadata(path)?.modified().ok();
        let path = path.to_owned();
        let line = Line { path, original, slimmed: hash, size_before, size_after, modified };
        let list = folder.join(LIST);
        let mut list = fs::File::options().create(true).append(true).open(list)?;
        list.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
        list.sync_all()?;
        new.keep()?;
        Ok(Some(line))
    }
}

/// How files begin that may have device code: ELF files, and archives of these.
pub const HEADS: [&[u8]; 2] = [b"\x7fELF", b"!<arch>\n"];

/// Whether a file begins as those do that may have device code.
fn is_host(path: &Path) -> Result<bool> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(8).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    Ok(HEADS.iter().any(|start| head.starts_with(start)))
}

/// Puts originals back, the last first. What is there already, or was never changed, stays.
fn undo(folder: &Path) -> Result<Vec<Line>> {
    let list = folder.join(LIST);
    let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let mut lines = Vec::new();
    for text in text.lines().rev() {
        let line: Line = serde_json::from_str(text).with_context(|| list.display().to_string())?;
        let shown = line.path.display().to_string();
        let found = digest::of(&Mapped::open(&line.path)?);
        if found == line.original {
            continue;
        }
        ensure!(
            found == line.slimmed,
            "{shown}: was changed since, and is neither the original nor what became of it"
        );
        let kept = folder.join(&line.original);
        let original = Mapped::open(&kept)?;
        ensure!(
            digest::of(&original) == line.original,
            "{}: is not what was kept there",
            kept.display()
        );
        let old = output::Output::new(&line.path, |to| Ok(to.write_all(original.bytes())?))?;
        let old = old.like(&line.path)?;
        let times = line.modified.map(|time| fs::FileTimes::new().set_modified(time));
        old.with_times(times.unwrap_or_default())?.keep()?;
        lines.push(line);
    }
    Ok(lines)
}
