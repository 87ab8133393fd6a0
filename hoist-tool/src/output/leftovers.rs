//! What a killed process leaves: a file or folder under a name of ours, that nobody holds any more. Whoever writes such a one next into the
//! folder removes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = ".hoist-";
const SUFFIX: &str = ".tmp";

/// The folder that a file is in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Of files and folders under such names.
pub(super) fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// Whether a file is called so: it is being written, or was.
#[must_use]
pub fn is_ours(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Keeps others from removing a file as long as it is open. Where that cannot be, nobody removes any.
pub(super) fn hold(file: &File) {
    let _ = file.try_lock();
}

/// A folder that is filled under a name of ours, and takes its own when it is whole.
#[derive(Debug)]
pub struct NewFolder {
    folder: TempDir,
    /// Keeps others from removing it, where folders can be opened.
    _held: Option<File>,
}

impl NewFolder {
    /// An empty one, beside what it is to become.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let parent = folder(target);
        clean(parent);
        loop {
            let folder = builder().tempdir_in(parent)?;
            let Ok(held) = File::open(folder.path()) else {
                return Ok(Self { folder, _held: None });
            };
            hold(&held);
            // somebody may have taken it for what was left, before it was held
            if folder.path().exists() {
                return Ok(Self { folder, _held: Some(held) });
            }
        }
    }

    /// Where it is as long as it is filled.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives it its name, which nothing has, or an empty folder.
    ///
    /// # Errors
    /// If that fails: then nothing is left of it.
    pub fn keep(self, target: &Path) -> io::Result<()> {
        fs::rename(self.folder.path(), target)?;
        let _ = self.folder.keep();
        Ok(())
    }
}

/// Removes what nobody holds. What cannot be removed stays: it keeps nobody from writing.
pub(super) fn clean(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if !is_ours(&entry.file_name()) || !(kind.is_file() || kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // held until it is gone: who has just made it makes another then
        let Ok(held) = File::open(&path) else { continue };
        if held.try_lock().is_ok() {
            let _ = if kind.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_filled_stays_and_one_that_was_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".hoist-left.tmp/blobs")).unwrap();
        fs::write(at(".hoist-left.tmp/blobs/one"), "half").unwrap();
        let first = NewFolder::beside(&at("first")).unwrap();
        fs::write(first.path().join("file"), "whole").unwrap();
        let second = NewFolder::beside(&at("second")).unwrap();
        let failed = NewFolder::beside(&at("third")).unwrap();
        assert!(!at(".hoist-left.tmp").exists());
        first.keep(&at("first")).unwrap();
        assert_eq!(fs::read_to_string(at("first/file")).unwrap(), "whole");
        assert!(failed.keep(&at("first")).is_err(), "it is not empty");
        drop(second);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
