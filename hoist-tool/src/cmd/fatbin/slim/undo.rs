//! `hoist fatbin slim --undo FOLDER`: originals come back.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::digest;
use super::image::layout;
use super::installed;
use super::journal::{Journal, Line, by_path};
use super::links::{self, HardLinks};
use crate::faults::in_words;
use crate::mapped::Mapped;
use crate::output::{self, Turn};

/// A file that did not come back.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// Which one; none if it is not known.
    pub path: Option<PathBuf>,
    /// Why.
    pub error: String,
}

/// What was undone.
#[derive(Debug, Default)]
pub struct Undone {
    /// What files were before, and after.
    pub lines: Vec<Line>,
    /// Files that did not come back.
    pub failed: Vec<Failed>,
    /// What is to be known.
    pub notes: Vec<String>,
}

/// Puts originals back: of every file that is what we made of it, what it was before. What is there already stays. What cannot come back is
/// told, and keeps nothing else from coming back.
///
/// # Errors
/// If there is no list.
pub fn undo(folder: &Path) -> Result<Undone> {
    let journal = Journal::found(folder)?;
    let read = journal.read()?;
    let _images = images(&read.lines);
    let _lists = installed::hold(read.lines.iter().flat_map(|line| &line.listed));
    let failed = read.faults.into_iter().map(|error| Failed { path: None, error }).collect();
    let mut undone = Undone { lines: Vec::new(), failed, notes: read.notes };
    let (mut links, mut now) = (HardLinks::default(), HashMap::new());
    let made = made(&read.lines);
    // blobs of an image come before what names them
    for (path, lines) in by_path(&read.lines) {
        if made.contains_key(path) {
            continue;
        }
        match file(path, &lines, &journal, &mut links) {
            Ok((digest, line)) => {
                now.insert(path.to_owned(), digest);
                undone.lines.extend(line);
            }
            Err(error) => {
                let error = in_words(&error);
                undone.failed.push(Failed { path: Some(path.to_owned()), error });
            }
        }
    }
    // what still names them needs them
    if undone.failed.is_empty() {
        for (path, digest) in made {
            let is_it = |file: &Mapped| digest::of(file) == *digest;
            if path.is_file() && Mapped::open(path).is_ok_and(|file| is_it(&file)) {
                fs::remove_file(path).with_context(|| path.display().to_string())?;
            }
        }
    }
    undone.notes.extend(installed::update(&read.lines, &now));
    links.tell();
    Ok(undone)
}

/// The turns of images in folders that have these files: nobody else may change one in the meantime.
fn images(lines: &[Line]) -> Vec<Turn> {
    // blobs are three folders below
    const DEEP: usize = 4;
    let folders = lines.iter().flat_map(|line| line.path.ancestors().skip(1).take(DEEP));
    let marks: BTreeSet<_> = folders.map(|folder| folder.join(layout::MARK)).collect();
    marks.iter().filter(|mark| mark.is_file()).filter_map(|mark| Turn::take(mark).ok()).collect()
}

/// Files that were nowhere before others became them, and their digests.
fn made(lines: &[Line]) -> HashMap<&Path, &str> {
    let (mut before, mut made) = (HashSet::new(), HashMap::new());
    for line in lines {
        if !made.contains_key(&*line.path) {
            before.insert(&*line.path);
        }
        let new = line.successor.iter().filter(|new| new.is_new && !before.contains(&*new.path));
        made.extend(new.map(|new| (&*new.path, &*line.slimmed)));
    }
    made
}

/// Puts a file back that is gone, as something of another name took its place.
fn gone(path: &Path, line: &Line, journal: &Journal) -> Result<(String, Option<Line>)> {
    let content = journal.kept(&line.original)?;
    let new = output::Output::new(path, |to| Ok(to.write_all(content.bytes())?))?;
    let times = line.modified.map(|time| fs::FileTimes::new().set_modified(time));
    let new = new.same_as(&journal.folder.join(&line.original), true)?;
    new.with_times(times.unwrap_or_default())?.keep()?;
    Ok((line.original.clone(), Some(line.clone())))
}

/// Puts the original of a file back, of which the list has these lines: the digest of what is there now, and what was done.
fn file(
    path: &Path,
    lines: &[&Line],
    journal: &Journal,
    links: &mut HardLinks,
) -> Result<(String, Option<Line>)> {
    let shown = path.display();
    if fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        if let Some(line) = lines.first().filter(|line| line.successor.is_some()) {
            return gone(path, line, journal);
        }
        bail!("{shown}: is not there any more")
    }
    let turn = Turn::take(path)?;
    let old = turn.seen();
    let found = digest::of(&Mapped::open(path)?);
    // back from change to change; a change that is not in this file's way was not made, or undone
    let (mut digest, mut original, mut is_known) = (found.clone(), None, false);
    for line in lines.iter().rev() {
        is_known |= line.original == digest || line.slimmed == digest;
        if line.slimmed == digest {
            digest.clone_from(&line.original);
            original = Some(*line);
        }
    }
    let Some(original) = original.filter(|line| line.original != found) else {
        if !is_known {
            bail!("{shown}: was changed since, and is neither the original nor what became of it");
        }
        return Ok((digest, None));
    };
    let line =
        Line { path: path.to_owned(), slimmed: found, size_after: old.len(), ..original.clone() };
    turn.check()?;
    if let Some(first) = links.met(old, || Ok(digest.clone()))? {
        links::name(&first.path, path)?;
    } else {
        let content = journal.kept(&digest)?;
        let new = output::Output::new(path, |to| Ok(to.write_all(content.bytes())?))?;
        let times = line.modified.map(|time| fs::FileTimes::new().set_modified(time));
        let new = new.like(path)?.with_times(times.unwrap_or_default())?;
        new.keep_name_in(Some(&turn))?;
    }
    links.add(old, &line);
    Ok((digest, Some(line)))
}
