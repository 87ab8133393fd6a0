//! `hoist fatbin slim FOLDER`: an image as OCI lays it out in a folder, where it is or, with `-o`, in another folder.
//!
//! Blobs are called by their digests: new ones stand beside the old ones until `index.json` names them, and then the old ones go. Whoever
//! looks at any moment finds an image that is whole.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use walkdir::WalkDir;

use super::change::New;
use super::layer::Found;
use super::parts::{BLOBS, Image, ROOTS};
use super::{MOST, Report, report, told};
use crate::budget::{Budget, FLOOR};
use crate::cmd::fatbin::slim::digest;
use crate::cmd::fatbin::slim::host::Slimming;
use crate::cmd::fatbin::slim::journal::{Journal, Line, Successor};
use crate::mapped::Mapped;
use crate::output::{Dates, NewFolder, Output, Turn, is_stdout};

/// The file that says what the folder is.
pub const MARK: &str = "oci-layout";

/// An image in a folder, and what it becomes.
struct Layout<'l> {
    folder: &'l Path,
    /// Its files, by their names in it.
    files: &'l [(String, Mapped)],
    new: &'l New,
    dates: Dates,
}

/// Whether a folder is one with an image.
#[must_use]
pub fn is_layout(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Makes the libraries in an image smaller.
///
/// # Errors
/// If it is damaged, or a layer cannot change: then nothing is written. If a file cannot be written or removed: then the image is the old
/// one or the new one, and may have blobs that nothing names.
pub fn slim(
    how: &Slimming,
    path: &Path,
    output: &Path,
    (dates, backup): (Dates, Option<&Path>),
) -> Result<Report> {
    let label = path.display().to_string();
    ensure!(!is_stdout(output), "{label}: is an image in a folder: -o names a folder");
    let folder = dunce::canonicalize(path).with_context(|| label.clone())?;
    let is_same = dunce::canonicalize(output).is_ok_and(|output| output == folder);
    let is_free = is_same || fs::symlink_metadata(output).is_err();
    ensure!(is_free, "{}: is there already", output.display());
    let mut journal = backup.map(Journal::make).transpose()?;
    let _turn = Turn::take(&folder.join(MARK))?;
    let files = files(&folder)?;
    let before = files.iter().map(|(_, file)| file.bytes().len() as u64).sum();
    let image = Image::of_files(&files);
    let parts = image.parts().with_context(|| label.clone())?;
    let mut found = Found::default();
    let budget = Budget::new(how.limit, FLOOR, MOST, before);
    let new = image.changed(&parts, how, &budget, &mut found).with_context(|| label.clone())?;
    let layout = Layout { folder: &folder, files: &files, new: &new, dates };
    let is_replaced = is_same && !new.contents.is_empty();
    if is_same {
        layout.replace(journal.as_mut())?;
        found.notes.extend(dates.note().filter(|_| is_replaced).map(String::from));
    } else {
        layout.copy(output)?;
    }
    found.notes.extend(backup.map(|folder| told(folder, is_replaced)));
    let after = layout.size();
    let kept = journal.filter(|_| is_replaced).map(|journal| journal.folder);
    Ok(report(how, (path, output), (before, after), kept, (parts, new, found)))
}

/// The files of an image.
fn files(folder: &Path) -> Result<Vec<(String, Mapped)>> {
    let blobs = folder.join(BLOBS);
    ensure!(
        !blobs.is_symlink(),
        "{}: leads to blobs that other images may have, too",
        blobs.display()
    );
    let mut files = Vec::new();
    for name in ROOTS {
        let path = folder.join(name);
        if path.is_file() {
            files.push((name.to_owned(), Mapped::open(&path)?));
        }
    }
    for entry in WalkDir::new(&blobs).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(folder)?;
            let name = name.to_str().with_context(|| entry.path().display().to_string())?;
            files.push((name.to_owned(), Mapped::open(entry.path())?));
        }
    }
    Ok(files)
}

/// What a file of an image is called when it has other contents: a blob by their digest.
fn renamed(name: &str, content: &Mapped) -> PathBuf {
    let name = Path::new(name);
    if name.starts_with(BLOBS) { name.with_file_name(digest::of(content)) } else { name.into() }
}

impl Layout<'_> {
    /// Bytes of all files now.
    fn size(&self) -> u64 {
        let size = |(index, (_, file)): (usize, &(String, Mapped))| {
            self.new.contents.get(&index).unwrap_or(file).bytes().len() as u64
        };
        self.files.iter().enumerate().map(size).sum()
    }

    /// What changes: the name of a file, what it was, its name then, and what it is then.
    fn changes(&self) -> impl Iterator<Item = (&str, &Mapped, PathBuf, &Mapped)> {
        self.new.contents.iter().filter_map(|(index, content)| {
            let (name, old) = self.files.get(*index)?;
            Some((name.as_str(), old, renamed(name, content), content))
        })
    }

    /// Puts it in the place of what was there.
    fn replace(&self, mut journal: Option<&mut Journal>) -> Result<()> {
        let (blobs, roots): (Vec<_>, Vec<_>) =
            self.changes().partition(|(name, ..)| Path::new(name).starts_with(BLOBS));
        for (name, old, to, content) in blobs.iter().chain(&roots) {
            let (from, path) = (self.folder.join(name), self.folder.join(to));
            let is_same = fs::read(&from).is_ok_and(|now| now == old.bytes());
            ensure!(is_same, "{}: was changed in the meantime", from.display());
            let successor =
                (from != path).then(|| Successor { path: path.clone(), is_new: !path.exists() });
            if let Some(journal) = &mut journal {
                journal.add(&Line {
                    original: journal.keep(&from, old)?,
                    slimmed: digest::of(content),
                    size_before: old.bytes().len() as u64,
                    size_after: content.bytes().len() as u64,
                    modified: fs::metadata(&from)?.modified().ok(),
                    listed: Vec::new(),
                    path: from.clone(),
                    successor,
                })?;
            }
            write(&path, content, &from, self.dates)?;
        }
        // nothing names them any more
        for (name, ..) in blobs {
            let path = self.folder.join(name);
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Writes it into a folder that appears when it is whole.
    fn copy(&self, output: &Path) -> Result<()> {
        let shown = || output.display().to_string();
        let new = NewFolder::beside(output).with_context(shown)?;
        let old = |name: &Path| self.changes().any(|(changed, ..)| Path::new(changed) == name);
        for entry in WalkDir::new(self.folder).min_depth(1) {
            let entry = entry?;
            let name = entry.path().strip_prefix(self.folder)?;
            let to = new.path().join(name);
            let kind = entry.file_type();
            let done = if kind.is_dir() {
                fs::create_dir(&to)
            } else if kind.is_symlink() {
                link(entry.path(), &to)
            } else if kind.is_file() && !old(name) {
                fs::copy(entry.path(), &to).map(drop)
            } else {
                Ok(())
            };
            done.with_context(|| to.display().to_string())?;
        }
        for (name, _, to, content) in self.changes() {
            write(&new.path().join(to), content, &self.folder.join(name), self.dates)?;
        }
        let permissions = fs::metadata(self.folder)?.permissions();
        fs::set_permissions(new.path(), permissions).with_context(shown)?;
        new.keep(output).with_context(shown)
    }
}

/// Writes a file with the permissions, owner and attributes of another, and its times if that is asked for.
fn write(path: &Path, content: &Mapped, like: &Path, dates: Dates) -> Result<()> {
    let new = Output::new(path, |to| Ok(to.write_all(content.bytes())?))?;
    new.same_as(like, true)?.dated(like, dates)?.keep()
}

/// Makes a link that leads to where another does.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    let target = fs::read_link(from)?;
    #[cfg(unix)]
    return std::os::unix::fs::symlink(target, to);
    #[cfg(not(unix))]
    fs::copy(target, to).map(drop)
}
