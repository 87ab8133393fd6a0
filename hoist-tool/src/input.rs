//! Files from the command line: ELF files and archives, with what thin archives name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use elf_core::archive::{self, Archive};

use crate::printable::Printable;

/// A file in memory.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    bytes: Vec<u8>,
    /// The members of a thin archive, which are files of their own.
    thin: Vec<Vec<u8>>,
    /// Every member of an archive is wanted.
    is_whole: bool,
    /// An archive is searched again with others.
    is_of_group: bool,
}

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
        let path = path.into();
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let mut input = Self { path, bytes, thin: Vec::new(), is_whole: false, is_of_group: false };
        if let Some(archive) = input.archive()?.filter(Archive::is_thin) {
            let folder = input.path.parent().unwrap_or(Path::new(""));
            let read = |member: Result<archive::Member<'_>, _>| -> Result<Vec<u8>> {
                let name = member.with_context(|| input.label())?.name.to_string();
                fs::read(folder.join(&name)).with_context(|| format!("{}({name})", input.label()))
            };
            input.thin = archive.members().map(read).collect::<Result<_>>()?;
        }
        Ok(input)
    }

    /// A file that is in memory already.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes, thin: Vec::new(), is_whole: false, is_of_group: false }
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
        self.bytes.starts_with(archive::MAGIC) || self.bytes.starts_with(archive::THIN_MAGIC)
    }

    /// The file as it is: one part, or the members of an archive in order.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn parts<'s>(&'s self) -> Result<Vec<Part<'s>>> {
        let Some(archive) = self.archive()? else {
            return Ok(Vec::from([Part { label: self.label(), member: None, bytes: &self.bytes }]));
        };
        let mut thin = self.thin.iter();
        let part = |member: Result<archive::Member<'s>, _>| {
            let member = member.with_context(|| self.label())?;
            let name = Printable::from(member.name).to_string();
            let bytes = match member.data {
                Some(bytes) => bytes,
                None => thin.next().map(Vec::as_slice).unwrap_or_default(),
            };
            Ok(Part { label: format!("{}({name})", self.label()), member: Some(name), bytes })
        };
        archive.members().map(part).collect()
    }

    fn archive(&self) -> Result<Option<Archive<'_>>> {
        if !self.is_archive() {
            return Ok(None);
        }
        Archive::parse(&self.bytes).map(Some).with_context(|| self.label())
    }
}

/// Reads several files.
///
/// # Errors
/// As [`Input::read`].
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Input>> {
    paths.iter().map(Input::read).collect()
}
