//! Whose turn it is: commands that change the same file go one after another.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// A file that nobody else who asks for a turn replaces until this is dropped.
#[derive(Debug)]
pub struct Turn {
    path: PathBuf,
    /// As long as it is open, no other file has its number.
    file: File,
    seen: Metadata,
}

impl Turn {
    /// Waits until nobody else has it. Where files cannot be locked, nobody waits.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn take(path: &Path) -> Result<Self> {
        let context = || path.display().to_string();
        let mut how = File::options();
        how.read(true);
        Self::of(path, &how).with_context(context)
    }

    /// The same of a file that is opened in this way: made, if the words say so.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn of(path: &Path, how: &fs::OpenOptions) -> std::io::Result<Self> {
        loop {
            let file = how.open(path)?;
            // what is locked elsewhere cannot be read there
            #[cfg(unix)]
            let _ = file.lock();
            let seen = file.metadata()?;
            // who had it before may have put another in its place, or removed it
            match fs::metadata(path) {
                Ok(now) if is_one(&seen, &now) => {
                    return Ok(Self { path: path.to_owned(), file, seen });
                }
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }

    /// That of a file that is changed where it is; none if it is written to another.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn in_place(file: &Path, output: &Path) -> Result<Option<Self>> {
        let (Ok(file), Ok(output)) = (dunce::canonicalize(file), dunce::canonicalize(output))
        else {
            return Ok(None);
        };
        (file == output && file.is_file()).then(|| Self::take(&file)).transpose()
    }

    /// What is known of the file.
    #[must_use]
    pub const fn seen(&self) -> &Metadata {
        &self.seen
    }

    /// The open file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Whether the file is still what it was: those that ask for no turn may have changed it.
    ///
    /// # Errors
    /// If it is another now.
    pub fn check(&self) -> Result<()> {
        let is_same = fs::metadata(&self.path).is_ok_and(|now| {
            is_one(&self.seen, &now)
                && self.seen.len() == now.len()
                && self.seen.modified().ok() == now.modified().ok()
        });
        ensure!(is_same, "{}: was changed in the meantime", self.path.display());
        Ok(())
    }
}

/// Whether both are of one file.
#[cfg(unix)]
fn is_one(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_one(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn one_waits_for_the_other_and_has_what_that_left() {
        let folder = tempfile::tempdir().unwrap();
        let [path, new] = ["file", "new"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::write(&new, "newer").unwrap();
        let first = Turn::take(&path).unwrap();
        first.check().unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(Turn::take(&path).unwrap().seen().len()).unwrap());
            let early = receiver.recv_timeout(Duration::from_millis(50));
            assert!(early.is_err(), "it waits");
            fs::rename(&new, &path).unwrap();
            let said = first.check().unwrap_err().to_string();
            assert!(said.ends_with("file: was changed in the meantime"), "{said}");
            drop(first);
            assert_eq!(receiver.recv().unwrap(), 5);
        });
    }

    #[test]
    fn only_what_is_changed_where_it_is_needs_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["file", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        let has = |output: &Path| Turn::in_place(&path, output).unwrap().is_some();
        assert!(has(&path) && !has(&other) && !has(Path::new("-")));
        let turn = Turn::in_place(&path, &folder.path().join("./file")).unwrap().unwrap();
        fs::write(&path, "longer").unwrap();
        assert!(turn.check().is_err());
    }
}
