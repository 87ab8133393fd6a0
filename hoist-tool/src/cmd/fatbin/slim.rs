//! `hoist fatbin slim DIR --keep sm_90,ptx --mode size --backup FOLDER`: installed libraries with the code that is wanted only, and
//! `--undo FOLDER`, which brings them back; and images of containers, `IMAGE -o OUT`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::Serialize;
use walkdir::WalkDir;

use super::unpacking::Unpacking;
use crate::faults::Faults;
use crate::form::{Form, HEAD};
use crate::json::JsonArguments;
use crate::mapped::Mapped;
use crate::number::smaller;
use crate::output::{self, Dates, Turn};
use crate::paint;
use crate::printable::Printable;
use host::{HEADS, Slimming, Tally};
use image::layer::Row;
use image::layout;
use installed::Installed;
use journal::{Journal, Line};
use links::HardLinks;
use undo::Failed;

pub mod conda;
pub mod digest;
pub mod host;
pub mod image;
pub mod installed;
pub mod journal;
pub mod links;
pub mod lists;
pub mod undo;

/// Makes installed libraries smaller, and back again.
#[derive(Debug, clap::Args)]
pub struct Slim {
    /// Libraries, or folders of them; `RECORD` of Python's packages and `conda-meta` of conda's that they belong to say what they are now. An image of a
    /// container in a folder, as OCI lays it out; with --output also one in a tar file: from `docker save`, `podman save`, or an OCI layout.
    #[arg(value_name = "PATH", required_unless_present = "undo")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    how: Slimming,
    /// Where originals are kept, with a list of them: a folder, which is made if there is none. With --output, of the image that is replaced.
    #[arg(long, value_name = "FOLDER", required_unless_present_any = ["undo", "output"])]
    backup: Option<PathBuf>,
    /// Puts the originals of this folder back where they were; what cannot come back is told, and keeps nothing else from it.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["paths", "keep", "mode", "backup"])]
    undo: Option<PathBuf>,
    /// The image to write: its layers, configurations and manifests have other digests, all else is as it was. It may be the same.
    #[arg(short, long, value_name = "IMAGE", conflicts_with = "undo")]
    output: Option<PathBuf>,
    #[command(flatten)]
    dates: Dates,
    #[command(flatten)]
    json: JsonArguments,
}

/// What was done.
#[derive(Debug, Default, Serialize)]
struct Report {
    files: Vec<Line>,
    /// Files with device code that stay as they are: they have nothing of what is kept, or are files of Windows.
    left: Vec<String>,
    /// Files that `--undo` could not bring back.
    failed: Vec<Failed>,
    notes: BTreeSet<String>,
}

/// What files have in common that are changed one after another.
struct Work {
    journal: Journal,
    unpacking: Unpacking,
    tally: Tally,
    links: HardLinks,
    installed: Installed,
    report: Report,
}

impl Slim {
    /// Changes files, and prints what was done.
    ///
    /// # Errors
    /// The first file that cannot be changed; those before it are. If an original cannot come back; others do.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(output) = &self.output {
            return self.image(output, out);
        }
        if let [path] = &*self.paths
            && layout::is_layout(path)
        {
            return self.image(path, out);
        }
        let (report, done) = match (&self.undo, &self.backup) {
            (Some(folder), _) => undone(folder)?,
            (None, Some(folder)) => self.slim(folder)?,
            (None, None) => bail!("where originals are to be kept: --backup"),
        };
        if self.json.is_on() {
            crate::json::write(out, &report)?;
            writeln!(out)?;
            return done;
        }
        for line in &report.files {
            let path = line.path.display().to_string();
            let (before, after) = match self.undo {
                Some(_) => (line.size_after, line.size_before),
                None => (line.size_before, line.size_after),
            };
            writeln!(out, "{}: {before} bytes before, {after} after", Printable::from(&*path))?;
        }
        for note in &report.notes {
            paint::note(out, note)?;
        }
        writeln!(out, "{} files changed", report.files.len())?;
        done
    }

    /// Writes an image, and prints what was done.
    fn image(&self, output: &Path, out: &mut dyn Write) -> Result<()> {
        self.how.check_asked()?;
        let [path] = &*self.paths else { bail!("--output is for one image") };
        let slim = if layout::is_layout(path) { layout::slim } else { image::slim };
        let report = slim(&self.how, path, output, (self.dates, self.backup.as_deref()))?;
        let out = &mut *output::beside(output, out);
        if self.json.is_on() {
            crate::json::write(out, &report)?;
            return Ok(writeln!(out)?);
        }
        for Row { layer, file, size_before, size_after } in &report.files {
            let name = format!("{layer}:{file}");
            let name = Printable::from(&*name);
            writeln!(out, "{name}: {size_before} bytes before, {size_after} after")?;
        }
        let image::Report { output, size_before, size_after, files, notes, .. } = &report;
        let (name, count) = (Printable::from(&**output), files.len());
        writeln!(
            out,
            "{name}: {count} files changed; {size_before} bytes before, {size_after} after{}",
            smaller(*size_before, *size_after)
        )?;
        notes.iter().try_for_each(|note| Ok(paint::note(out, note)?))
    }

    /// What was done, and whether all of it was.
    fn slim(&self, folder: &Path) -> Result<(Report, Result<()>)> {
        self.how.check_asked()?;
        self.paths.iter().try_for_each(|path| check_layout(path))?;
        let mut work = Work {
            journal: Journal::make(folder)?,
            unpacking: Unpacking::default(),
            tally: Tally::default(),
            links: HardLinks::default(),
            installed: Installed::default(),
            report: Report::default(),
        };
        let done = self.all(&mut work);
        let Work { journal, unpacking, tally, links, installed, mut report } = work;
        let now = report.files.iter().map(|line| (line.path.clone(), line.slimmed.clone()));
        let now: HashMap<_, _> = now.collect();
        let read = journal.read()?;
        report.notes.extend(read.faults.into_iter().chain(installed.notes));
        report.notes.extend(installed::update(&read.lines, &now));
        report.notes.extend(tally.notes(&self.how.keep));
        if !report.files.is_empty() {
            report.notes.extend(unpacking.note());
            report.notes.extend(self.dates.note().map(String::from));
        }
        report.left = tally.left;
        links.tell();
        Ok((report, done))
    }

    fn all(&self, work: &mut Work) -> Result<()> {
        let mut files = Vec::new();
        for root in &self.paths {
            if root.is_file() && Form::of(&head(root, HEAD)?) == Form::Tar {
                bail!("{}: is a tar file: -o says where to write an image", root.display());
            }
            if root.is_file() && !is_host(root)? {
                let name = root.display().to_string();
                let is_zip = Form::of(&head(root, HEAD)?) == Form::Zip;
                let other = if is_zip { ": `hoist wheel slim` changes wheels" } else { "" };
                let note = format!(
                    "{}: is nothing that holds device code itself, and stays{other}",
                    Printable::from(&*name)
                );
                work.report.notes.insert(note);
            }
            let entries = WalkDir::new(root).sort_by_file_name().into_iter();
            for entry in entries.filter_entry(|entry| !output::is_ours(entry.file_name())) {
                let entry = entry?;
                if entry.file_type().is_file() && is_host(entry.path())? {
                    files.push(dunce::canonicalize(entry.path())?);
                } else if entry.file_type().is_dir() {
                    let folder = dunce::canonicalize(entry.path())?;
                    work.installed.look(&folder);
                }
            }
        }
        files.retain(|path| !path.starts_with(&work.journal.folder));
        work.installed.hold(&files);
        for path in files {
            let line = self.file(&path, work).with_context(|| path.display().to_string())?;
            work.report.files.extend(line);
        }
        work.tally.check()
    }

    /// Changes a file, if there is something to change: the original is kept first, then the list has its line, then it is replaced.
    fn file(&self, path: &Path, work: &mut Work) -> Result<Option<Line>> {
        let turn = Turn::take(path)?;
        let old = turn.seen().clone();
        if let Some(met) = work.links.met(&old, || Ok(digest::of(&Mapped::open(path)?)))? {
            let before = (&*met.original, met.size_before);
            let listed = work.installed.of(path, before, (&met.slimmed, met.size_after));
            let line = Line { path: path.to_owned(), listed, ..met };
            work.journal.add(&line)?;
            turn.check()?;
            links::name(&met.path, path)?;
            work.links.add(&old, &line);
            return Ok(Some(line));
        }
        let file = Mapped::open(path)?;
        let own = Unpacking::default();
        let outcome = self.how.plan(&file, &own)?;
        let name = path.display().to_string();
        work.report.notes.extend(own.left_of(&Printable::from(&*name).to_string()));
        let Some(slimmed) = work.tally.count(&name, outcome) else { return Ok(None) };
        // what becomes no smaller is left alone
        let (size_before, size_after) = slimmed.sizes;
        if size_after >= size_before && self.how.keep.is_empty() {
            work.report.notes.insert(host::no_smaller(&name));
            return Ok(None);
        }
        work.unpacking.extend(&own);
        let original = work.journal.keep(path, &file)?;
        let mut hash = String::new();
        let new = output::Output::new(path, |to| {
            slimmed.write(&file, to)?;
            hash = digest::of(&Mapped::map(to)?);
            Ok(())
        })?;
        let new = new.like(path)?.dated(path, self.dates)?;
        work.report.notes.extend(slimmed.notes);
        let listed = work.installed.of(path, (&original, size_before), (&hash, size_after));
        let (path, modified) = (path.to_owned(), old.modified().ok());
        let line = Line {
            path,
            original,
            slimmed: hash,
            size_before,
            size_after,
            modified,
            listed,
            successor: None,
        };
        turn.check()?;
        work.journal.add(&line)?;
        new.keep_name_in(Some(&turn))?;
        work.links.add(&old, &line);
        Ok(Some(line))
    }
}

/// What became of a folder of originals, and whether all came back.
fn undone(folder: &Path) -> Result<(Report, Result<()>)> {
    let undone = undo::undo(folder)?;
    let mut faults = Faults::default();
    for failed in &undone.failed {
        faults.push(anyhow!("{}", failed.error));
    }
    let mut notes: BTreeSet<_> = undone.notes.into_iter().collect();
    if undone.failed.len() > 1 {
        notes.extend(undone.failed.iter().map(|failed| failed.error.clone()));
    }
    let report = Report { files: undone.lines, left: Vec::new(), failed: undone.failed, notes };
    Ok((report, faults.result()))
}

/// Whether a path is anything but an OCI layout, which is named alone: libraries in its layers would not be found.
///
/// # Errors
/// If it is one.
fn check_layout(path: &Path) -> Result<()> {
    let name = path.display();
    ensure!(!layout::is_layout(path), "{name}: is an image in a folder: it is to be named alone");
    Ok(())
}

/// Whether a file begins as those do that may have device code.
fn is_host(path: &Path) -> Result<bool> {
    let head = head(path, 8)?;
    Ok(HEADS.iter().any(|start| head.starts_with(start)))
}

/// The first bytes of a file.
fn head(path: &Path, size: usize) -> Result<Vec<u8>> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(size as u64).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    Ok(head)
}
