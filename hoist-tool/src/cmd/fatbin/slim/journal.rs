//! The list of what was done, in the folder of originals: a line for every change, written before that is made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::digest;
use crate::mapped::Mapped;
use crate::output::{self, Turn};

/// What it is called.
const NAME: &str = "slimmed.jsonl";

/// A change of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The file.
    pub path: PathBuf,
    /// What the original is called in the folder: its SHA-256.
    pub original: String,
    /// SHA-256 of the smaller file.
    pub slimmed: String,
    /// Bytes of the original.
    pub size_before: u64,
    /// Bytes of the smaller file.
    pub size_after: u64,
    /// When the original was modified.
    pub modified: Option<SystemTime>,
    /// What lists of installed packages say of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<Listed>,
    /// What took its place, if that has another name: then the file is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<Successor>,
}

/// A file of another name: a blob of an image, which is called by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Successor {
    /// The file.
    pub path: PathBuf,
    /// Whether nothing had that name.
    pub is_new: bool,
}

/// What a list of a package says of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The list.
    pub record: PathBuf,
    /// What the file is called there.
    pub name: String,
    /// Digest and size, as they stood there.
    pub before: String,
    /// The same of the smaller file.
    pub after: String,
}

/// The list, which nobody else writes to in the meantime.
#[derive(Debug)]
pub struct Journal {
    /// The folder of originals.
    pub folder: PathBuf,
    turn: Turn,
}

/// What the list says.
#[derive(Debug, Default)]
pub struct Read {
    /// Its lines.
    pub lines: Vec<Line>,
    /// What is to be known of it.
    pub notes: Vec<String>,
    /// What is wrong with it.
    pub faults: Vec<String>,
}

impl Journal {
    /// The list of a folder, which is made if there is none.
    ///
    /// # Errors
    /// If that fails.
    pub fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Self::open(folder, File::options().create(true).append(true).read(true))
    }

    /// The list of a folder that has one.
    ///
    /// # Errors
    /// If there is none.
    pub fn found(folder: &Path) -> Result<Self> {
        Self::open(folder, File::options().read(true))
    }

    fn open(folder: &Path, how: &fs::OpenOptions) -> Result<Self> {
        let folder = dunce::canonicalize(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join(NAME);
        let turn = Turn::of(&path, how).with_context(|| path.display().to_string())?;
        Ok(Self { folder, turn })
    }

    /// All lines. One that a process did not write to its end was that of a change that was not made.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn read(&self) -> Result<Read> {
        let name = || self.folder.join(NAME).display().to_string();
        let mut bytes = Vec::new();
        let file = File::open(self.folder.join(NAME));
        file.and_then(|mut file| file.read_to_end(&mut bytes)).with_context(name)?;
        let mut read = Read::default();
        for (number, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            // a system that stops may leave zeros
            let text = text.trim_ascii().split(|&byte| byte == 0).next().unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            match serde_json::from_slice(text) {
                Ok(line) => read.lines.push(line),
                Err(error) if error.is_eof() => read.notes.push(format!(
                    "{}: line {number} was not written to its end: the change that it is about was not made",
                    name()
                )),
                Err(error) => read.faults.push(format!("{}: line {number}: {error}", name())),
            }
        }
        Ok(read)
    }

    /// Keeps a file under the name of its digest, with its owner and permissions.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, path: &Path, file: &Mapped) -> Result<String> {
        let digest = digest::of(file);
        let kept = self.folder.join(&digest);
        // one that is damaged is no original
        if !kept.exists() || self.kept(&digest).is_err() {
            let new = output::Output::new(&kept, |to| Ok(to.write_all(file.bytes())?))?;
            new.same_as(path, false)?.keep()?;
        }
        Ok(digest)
    }

    /// A file that was kept.
    ///
    /// # Errors
    /// If it is not there, or is another.
    pub fn kept(&self, digest: &str) -> Result<Mapped> {
        let path = self.folder.join(digest);
        let file = Mapped::open(&path)?;
        let is_same = digest::of(&file) == digest;
        ensure!(is_same, "{}: is not what was kept there", path.display());
        Ok(file)
    }

    /// Writes a line. It is on the disk before this returns, and so are the names of files that were kept.
    ///
    /// # Errors
    /// If that fails.
    pub fn add(&mut self, line: &Line) -> Result<()> {
        let name = || self.folder.join(NAME).display().to_string();
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut file = self.turn.file();
        if self.is_torn().with_context(name)? {
            text.insert(0, '\n');
        }
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.with_context(name)?;
        #[cfg(unix)]
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .with_context(|| self.folder.display().to_string())?;
        Ok(())
    }

    /// Whether the last line has no end.
    fn is_torn(&self) -> std::io::Result<bool> {
        use std::io::{Seek as _, SeekFrom};
        let mut file = self.turn.file();
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(false);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }
}

/// Lines by their files, in the order of the list.
#[must_use]
pub fn by_path(lines: &[Line]) -> BTreeMap<&Path, Vec<&Line>> {
    let mut files: BTreeMap<&Path, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        files.entry(&line.path).or_default().push(line);
    }
    files
}
