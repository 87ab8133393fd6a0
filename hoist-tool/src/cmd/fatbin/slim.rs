//! `hoist fatbin slim DIR --keep sm_90,ptx --mode size --backup FOLDER`: installed libraries with the code that is wanted only, and
//! `--undo FOLDER`, which brings them back.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::json::JsonArguments;
use crate::mapped::Mapped;
use crate::output;
use crate::printable::Printable;
use host::Slimming;

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
}

impl Slim {
    /// Changes files, and prints what was done.
    ///
    /// # Errors
    /// The first file that cannot be changed; those before it are.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let lines = match (&self.undo, &self.backup) {
            (Some(folder), _) => undo(folder)?,
            (None, Some(folder)) => self.slim(folder)?,
            (None, None) => bail!("where originals are to be kept: --backup"),
        };
        if self.json.is_on() {
            crate::json::write(out, &serde_json::json!({ "files": lines }))?;
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
        Ok(writeln!(out, "{} files changed", lines.len())?)
    }

    fn slim(&self, folder: &Path) -> Result<Vec<Line>> {
        ensure!(
            !self.how.keep.is_empty() || self.how.mode.is_some(),
            "nothing is to be done: --keep or --mode"
        );
        let mut lines = Vec::new();
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let folder = fs::canonicalize(folder)?;
        for root in &self.paths {
            for entry in WalkDir::new(root).sort_by_file_name() {
                let entry = entry?;
                if entry.file_type().is_file() && is_elf(entry.path())? {
                    let path = fs::canonicalize(entry.path())?;
                    if !path.starts_with(&folder) {
                        let line = self.file(&path, &folder);
                        lines.extend(line.with_context(|| path.display().to_string())?);
                    }
                }
            }
        }
        Ok(lines)
    }

    /// Changes a file, if there is something to change: the original is kept first, then the list has its line, then it is replaced.
    fn file(&self, path: &Path, folder: &Path) -> Result<Option<Line>> {
        let file = Mapped::open(path)?;
        let Some(slimmed) = self.how.plan(&file)? else { return Ok(None) };
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
        let new = new.like(path)?;
        let path = path.to_owned();
        let line = Line { path, original, slimmed: hash, size_before, size_after };
        let list = folder.join(LIST);
        let mut list = fs::File::options().create(true).append(true).open(list)?;
        list.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
        list.sync_all()?;
        new.keep()?;
        Ok(Some(line))
    }
}

/// Whether a file begins as ELF files do.
fn is_elf(path: &Path) -> Result<bool> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(4).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    Ok(head == b"\x7fELF")
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
        output::write(&line.path, Some(&line.path), |to| Ok(to.write_all(original.bytes())?))?;
        lines.push(line);
    }
    Ok(lines)
}
