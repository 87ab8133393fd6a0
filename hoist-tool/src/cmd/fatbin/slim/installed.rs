//! Lists of installed packages: what they say of files that change.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use super::digest;
use super::journal::{Line, Listed, by_path};
use super::lists::Kind;
use crate::mapped::Mapped;
use crate::output::{self, Turn};

/// Lists of installed packages, as they were found.
#[derive(Debug, Default)]
pub struct Installed {
    folders: HashSet<PathBuf>,
    files: HashMap<PathBuf, Vec<Listed>>,
    /// What is to be known of lists that cannot be read.
    pub notes: Vec<String>,
    /// Lists that nobody else changes in the meantime.
    held: Vec<Turn>,
}

/// Waits until nobody else changes these lists, one after another in an order that is the same for all.
pub fn hold<'l>(listed: impl Iterator<Item = &'l Listed>) -> Vec<Turn> {
    let lists: BTreeSet<_> = listed.map(|listed| &*listed.record).collect();
    // what is not there, or cannot be opened, is told when it is to be written
    lists.into_iter().filter_map(|list| Turn::take(list).ok()).collect()
}

impl Installed {
    /// What lists say of a file that becomes another: lists of packages beside it, and in the folders above. Old and new are digests and
    /// sizes.
    pub fn of(&mut self, path: &Path, old: (&str, u64), new: (&str, u64)) -> Vec<Listed> {
        for folder in path.ancestors().skip(1) {
            self.look(folder);
        }
        let found = self.files.get(path).into_iter().flatten();
        let after = |listed: &Listed| {
            let (kind, folder) = Kind::of(&listed.record)?;
            let fields = |(digest, size): (&str, u64)| kind.fields(&listed.before, digest, size);
            // of a symbolic link a list may say what it is, not where it leads
            let is_file = joined(&folder, &listed.name) == path;
            let is_meant = is_file || listed.before == fields(old);
            is_meant.then(|| Listed { after: fields(new), ..listed.clone() })
        };
        found.filter_map(after).collect()
    }

    /// Finds the lists that name these files, waits until nobody else changes one, and reads them as they are then.
    pub fn hold(&mut self, files: &[PathBuf]) {
        for folder in files.iter().flat_map(|path| path.ancestors().skip(1)) {
            self.look(folder);
        }
        self.held = hold(files.iter().filter_map(|path| self.files.get(path)).flatten());
        self.files.clear();
        self.notes.clear();
        for folder in core::mem::take(&mut self.folders) {
            self.look(&folder);
        }
    }

    /// Reads the lists of packages that are installed in a folder.
    pub fn look(&mut self, folder: &Path) {
        if !self.folders.insert(folder.to_owned()) {
            return;
        }
        // what cannot be read is no place of packages for us
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().ends_with(b".dist-info") {
                self.list(&entry.path().join("RECORD"));
            } else if entry.file_name() == "conda-meta" {
                for list in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                    self.list(&list.path());
                }
            }
        }
    }

    /// Reads a list, if it is one.
    fn list(&mut self, record: &Path) {
        let Some((kind, folder)) = Kind::of(record) else { return };
        let text = fs::read_to_string(record);
        if text.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return;
        }
        match text.map_err(Into::into).and_then(|text| kind.rows(&text)) {
            Ok(rows) => {
                for (name, before) in rows {
                    let path = joined(&folder, &name);
                    let path =
                        if path.is_symlink() { dunce::canonicalize(&path) } else { Ok(path) };
                    let Ok(path) = path else { continue };
                    let (record, after) = (record.to_owned(), String::new());
                    let listed = Listed { record, name, before, after };
                    self.files.entry(path).or_default().push(listed);
                }
            }
            Err(error) => self.notes.push(format!("{}: {error:#}", record.display())),
        }
    }
}

/// A path below a folder, or beside it: `..` goes up without a look at the disk.
#[must_use]
pub fn joined(folder: &Path, name: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(name).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// Writes lists anew where they do not say what files are now; `now` is what is known of digests. What is to be known of that.
pub fn update(lines: &[Line], now: &HashMap<PathBuf, String>) -> Vec<String> {
    let mut lists: BTreeMap<&Path, HashMap<&str, Vec<&Line>>> = BTreeMap::new();
    for lines in by_path(lines).into_values() {
        for listed in lines.iter().flat_map(|line| &line.listed) {
            lists.entry(&listed.record).or_default().insert(&listed.name, lines.clone());
        }
    }
    let update = |(record, files): (&Path, HashMap<&str, Vec<&Line>>)| {
        let shown = record.display();
        match one(record, &files, now) {
            Ok(0) => None,
            Ok(count) => {
                Some(format!("{shown}: digests and sizes of {count} files are written anew"))
            }
            Err(error) => Some(format!(
                "{shown}: cannot be written anew, and what it says of files that changed is not so any more: {error:#}"
            )),
        }
    };
    lists.into_iter().filter_map(update).collect()
}

/// Writes a list anew, of which these files changed; how many of them it says something else of.
fn one(
    record: &Path,
    files: &HashMap<&str, Vec<&Line>>,
    now: &HashMap<PathBuf, String>,
) -> Result<usize> {
    let text = match fs::read_to_string(record) {
        // the package is not installed any more
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    let mut count = 0;
    let Some((kind, _)) = Kind::of(record) else { return Ok(0) };
    let text = kind.changed(&text, |name, found| {
        let wanted = wanted(record, name, found, files.get(name)?, now)?;
        count += 1;
        Some(wanted)
    })?;
    if count > 0 {
        output::write(record, Some(record), |to| Ok(to.write_all(text.as_bytes())?))
            .context("a new one")?;
    }
    Ok(count)
}

/// What a list is to say of a file; nothing if it says that, or something that does not come from us.
fn wanted<'l>(
    record: &Path,
    name: &str,
    found: &str,
    lines: &[&'l Line],
    now: &HashMap<PathBuf, String>,
) -> Option<String> {
    let is_this = |listed: &&Listed| listed.record == record && listed.name == name;
    let row = |line: &&'l Line| Some((*line, line.listed.iter().find(is_this)?));
    let rows: Vec<_> = lines.iter().filter_map(row).collect();
    let (last, said) = rows.last()?;
    let is_ours = rows.iter().any(|(_, listed)| listed.before == found || listed.after == found);
    let is_last = said.after == found && !now.contains_key(&last.path);
    if !is_ours || is_last {
        return None;
    }
    let digest = match now.get(&last.path) {
        Some(digest) => digest.clone(),
        None => digest::of(&Mapped::open(&last.path).ok()?),
    };
    let after = rows.iter().find(|(line, _)| line.slimmed == digest);
    let before = rows.iter().find(|(line, _)| line.original == digest);
    let wanted = after.map(|(_, listed)| &listed.after);
    wanted.or(before.map(|(_, listed)| &listed.before)).filter(|wanted| *wanted != found).cloned()
}
