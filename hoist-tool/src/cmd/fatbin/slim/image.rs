//! `hoist fatbin slim IMAGE.tar -o OUT.tar`: an image of a container, as `docker save`, `podman save` and OCI layouts have it in a tar file.
//! Layers with libraries that become smaller are others, and with them the configurations and manifests that name them by their digests.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::digest;
use super::host::Slimming;
use super::journal::{Journal, Line};
use crate::budget::{Budget, FLOOR};
use crate::mapped::Mapped;
use crate::output::{self, Dates, Turn};
use change::New;
use layer::{Found, Row};
use parts::{Image, Parts};

pub mod change;
pub mod layer;
pub mod layout;
pub mod members;
pub mod parts;
pub mod references;

/// How many times a layer may be larger than the file: deflate gives no more.
const MOST: u64 = 1032;

/// What was done.
#[derive(Debug, Serialize)]
pub struct Report {
    file: String,
    /// The image that was written.
    pub output: String,
    /// The name under which the image is kept that was replaced; of one in a folder, the folder of originals.
    backup: Option<PathBuf>,
    /// Bytes before.
    pub size_before: u64,
    /// Bytes after.
    pub size_after: u64,
    /// Files that changed.
    pub files: Vec<Row>,
    /// Files with device code that stay as they are: they have nothing of what is kept, or are files of Windows.
    left: Vec<String>,
    /// What is to be known.
    pub notes: BTreeSet<String>,
}

/// Writes an image with smaller libraries.
///
/// # Errors
/// If it is none, is damaged, or a layer cannot change: then nothing is written.
pub fn slim(
    how: &Slimming,
    path: &Path,
    output: &Path,
    (dates, backup): (Dates, Option<&Path>),
) -> Result<Report> {
    let mut journal = backup.map(Journal::make).transpose()?;
    let label = path.display().to_string();
    let turn = Turn::in_place(path, output)?;
    let file = Mapped::open(path)?;
    let before = file.bytes().len() as u64;
    let (image, members) = Image::of_tar(&file).with_context(|| label.clone())?;
    let parts = image.parts().with_context(|| label.clone())?;
    let mut found = Found::default();
    let budget = Budget::new(how.limit, FLOOR, MOST, before);
    let new = image.changed(&parts, how, &budget, &mut found).with_context(|| label.clone())?;
    let mut after = 0;
    let keep = |old: &Path, new: &File| {
        journal.as_mut().map(|journal| keep(journal, old, new)).transpose()
    };
    let done = output::change(output, (path, turn.as_ref()), dates, keep, |to| {
        let renamed = |head: &[u8]| references::renamed(head, &new.successors);
        members::write(file.bytes(), &members, &new.contents, renamed, to)?;
        after = to.metadata()?.len();
        Ok(())
    })?;
    found.notes.extend(done.note.map(String::from));
    found.notes.extend(backup.map(|folder| told(folder, done.backup.is_some())));
    Ok(report(how, (path, output), (before, after), done.backup, (parts, new, found)))
}

/// What is said of a folder of originals.
fn told(folder: &Path, is_kept: bool) -> String {
    let folder = folder.display();
    if is_kept {
        format!("what was replaced is kept in {folder}: --undo {folder} brings it back")
    } else {
        format!("nothing was replaced: {folder} keeps nothing")
    }
}

/// What is said of an image.
fn report(
    how: &Slimming,
    (file, output): (&Path, &Path),
    (size_before, size_after): (u64, u64),
    backup: Option<PathBuf>,
    (parts, new, found): (Parts, New, Found),
) -> Report {
    let Found { unpacking, tally, rows: files, mut notes } = found;
    notes.extend(tally.notes(&how.keep));
    notes.extend(unpacking.note());
    if new.contents.is_empty() {
        notes.insert(String::from("nothing of the image changes"));
    } else {
        let kept = |other: &String| {
            format!("what is of the type {other} is kept: it may be about the image as it was")
        };
        notes.extend(parts.others.iter().map(kept));
    }
    let (file, output) = (file.display().to_string(), output.display().to_string());
    Report { file, output, backup, size_before, size_after, files, left: tally.left, notes }
}

/// Keeps an image that will be replaced, with a line that says by what: its name in the folder of originals.
fn keep(journal: &mut Journal, old: &Path, new: &File) -> Result<PathBuf> {
    let (before, after) = (Mapped::open(old)?, Mapped::map(new)?);
    let original = journal.keep(old, &before)?;
    let kept = journal.folder.join(&original);
    journal.add(&Line {
        path: old.to_owned(),
        original,
        slimmed: digest::of(&after),
        size_before: before.bytes().len() as u64,
        size_after: after.bytes().len() as u64,
        modified: std::fs::metadata(old)?.modified().ok(),
        listed: Vec::new(),
        successor: None,
    })?;
    Ok(kept)
}
