//! Files from the command line: ELF files and archives, with what thin archives name.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use elf_core::Name;
use elf_core::archive::{self, Archive};
use exec_core::NamedFiles;

use crate::budget::Limits;
use crate::lent;
use crate::mapped::Mapped;
use crate::printable::Printable;

/// A file in memory.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    bytes: Mapped,
    /// The members of a thin archive, which are files of their own.
    thin: Vec<Arc<[u8]>>,
    /// Every member of an archive is wanted.
    is_whole: bool,
    /// An archive is searched again with others.
    is_of_group: bool,
}

/// Bytes that are read of what is no file and has no size, such as a pipe.
const ENDLESS: u64 = 4 << 30;

/// An ELF file, or what may be one: a file, or a member of an archive.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// What to call it: the path, with the member's name in parentheses.
    pub label: String,
    /// Name of the member, if it is one.
    pub member: Option<String>,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Input {
    /// Reads a file; of a thin archive, its members too.
    ///
    /// # Errors
    /// If a file cannot be read, or a thin archive is damaged.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self> {
        Self::read_within(path, Limits::default())
    }

    /// The same, with limits: those of a thin archive are what its members may have in all, and where they may be.
    ///
    /// # Errors
    /// As [`read`](Self::read); if a member may not be read.
    pub fn read_within(path: impl Into<PathBuf>, limits: Limits) -> Result<Self> {
        let path = path.into();
        let bytes = match lent::open(&path)? {
            Some(_) => Mapped::open(&path)?,
            None => Mapped::of(read_file(&path, limits)?),
        };
        let mut input = Self { path, bytes, thin: Vec::new(), is_whole: false, is_of_group: false };
        if let Some(archive) = input.archive()?.filter(Archive::is_thin) {
            let mut files = NamedFiles::of(&input.path).anywhere(limits.thin_anywhere);
            if let Some(limit) = limits.limit {
                files = files.limit(limit);
            }
            let mut thin = Vec::new();
            for member in archive.members() {
                let name = member.with_context(|| input.label())?.name;
                let member = files.read(&path_of(name));
                thin.push(member.with_context(|| format!("{}({name})", input.label()))?);
            }
            input.thin = thin;
        }
        Ok(input)
    }

    /// A file that is in memory already.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self {
            path: path.into(),
            bytes: Mapped::of(bytes),
            thin: Vec::new(),
            is_whole: false,
            is_of_group: false,
        }
    }

    /// The same, with every member taken if it is an archive, asked for or not: `--whole-archive`.
    #[must_use]
    pub fn whole(self, is_whole: bool) -> Self {
        Self { is_whole, ..self }
    }

    /// Whether every member of it is taken if it is an archive.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The same, searched in turn with the other archives of the group until none has what is missing: `--start-group`.
    #[must_use]
    pub fn group(self, is_of_group: bool) -> Self {
        Self { is_of_group, ..self }
    }

    /// Whether it is searched again if it is an archive.
    #[must_use]
    pub const fn is_of_group(&self) -> bool {
        self.is_of_group
    }

    /// What to call it: the path as it was given.
    #[must_use]
    pub fn label(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether the file is an archive.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        let bytes = self.bytes.bytes();
        bytes.starts_with(archive::MAGIC) || bytes.starts_with(archive::THIN_MAGIC)
    }

    /// The file as it is: one part, or the members of an archive in order.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn parts<'s>(&'s self) -> Result<Vec<Part<'s>>> {
        let Some(archive) = self.archive()? else {
            return Ok(Vec::from([Part {
                label: self.label(),
                member: None,
                bytes: self.bytes.bytes(),
            }]));
        };
        let mut thin = self.thin.iter();
        let part = |member: Result<archive::Member<'s>, _>| {
            let member = member.with_context(|| self.label())?;
            let name = Printable::from(member.name).to_string();
            let bytes = match member.data {
                Some(bytes) => bytes,
                None => thin.next().map(AsRef::as_ref).unwrap_or_default(),
            };
            Ok(Part { label: format!("{}({name})", self.label()), member: Some(name), bytes })
        };
        archive.members().map(part).collect()
    }

    fn archive(&self) -> Result<Option<Archive<'_>>> {
        if !self.is_archive() {
            return Ok(None);
        }
        Archive::parse(self.bytes.bytes()).map(Some).with_context(|| self.label())
    }
}

/// Reads several files.
///
/// # Errors
/// As [`Input::read_within`].
pub fn read_all(paths: &[PathBuf], limits: Limits) -> Result<Vec<Input>> {
    paths.iter().map(|path| Input::read_within(path, limits)).collect()
}

/// The bytes of a file; of what has no end, no more than the limit.
///
/// # Errors
/// If it cannot be read, or has more.
pub fn read_file(path: &Path, limits: Limits) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    read_open(file, path, limits)
}

/// The same of a file that is open: a pipe opens once.
///
/// # Errors
/// As [`read_file`].
pub fn read_open(mut file: File, path: &Path, limits: Limits) -> Result<Vec<u8>> {
    let context = || path.display().to_string();
    let found = file.metadata().with_context(context)?;
    let mut bytes = Vec::new();
    if found.is_file() {
        file.read_to_end(&mut bytes).with_context(context)?;
        return Ok(bytes);
    }
    let limit = limits.limit.unwrap_or(ENDLESS);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).with_context(context)?;
    if bytes.len() as u64 > limit {
        bail!("{}: has more than {limit} bytes (--limit)", context());
    }
    Ok(bytes)
}

/// A name in a file as the path of another.
fn path_of(name: Name<'_>) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()))
    }
    #[cfg(not(unix))]
    PathBuf::from(name.to_string())
}
