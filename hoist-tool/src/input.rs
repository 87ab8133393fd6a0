//! Files from the command line: ELF files and archives, with what thin archives name.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use elf_core::Name;
use elf_core::archive::{self, Archive};
use exec_core::NamedFiles;

use crate::budget::Limits;
#[cfg(all(feature = "device-code", not(target_family = "wasm")))]
use crate::form::Form;
use crate::form::is_archive;
use crate::lent;
use crate::mapped::Mapped;
use crate::member::Member;
use crate::printable::Printable;
pub use crate::read::{read_file, read_open};

/// A file in memory.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    content: Arc<Content>,
    /// Every member of an archive is wanted.
    is_whole: bool,
    /// An archive is searched again with others.
    is_of_group: bool,
}

/// What files have that are given once or several times.
#[derive(Debug)]
struct Content {
    bytes: Mapped,
    /// The members of a thin archive, which are files of their own.
    thin: Vec<Arc<[u8]>>,
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
    /// Reads a file, or maps it if it is large, or an archive, of which much is never looked at; of a thin archive, reads its members too.
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
        if let Some(member) = Member::named(&path) {
            return Ok(Self::of_mapped(path, member.read()?));
        }
        let bytes = if lent::open(&path)?.is_some() || is_large_or_archive(&path) {
            Mapped::open(&path)?
        } else {
            Mapped::of(read_file(&path, limits)?)
        };
        let mut content = Content { bytes, thin: Vec::new() };
        if let Some(archive) = content.archive(&path)?.filter(Archive::is_thin) {
            let mut files = NamedFiles::of(&path).anywhere(limits.thin_anywhere);
            if let Some(limit) = limits.limit {
                files = files.limit(limit);
            }
            let mut thin = Vec::new();
            for member in archive.members() {
                let name = member.with_context(|| label(&path))?.name;
                let member = files.read(&path_of(name));
                thin.push(member.with_context(|| format!("{}({name})", label(&path)))?);
            }
            content.thin = thin;
        }
        Ok(Self::new(path, content))
    }

    /// A file that is in memory already.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self::new(path.into(), Content { bytes: Mapped::of(bytes), thin: Vec::new() })
    }

    /// The same of one that is mapped.
    #[must_use]
    pub fn of_mapped(path: impl Into<PathBuf>, bytes: Mapped) -> Self {
        Self::new(path.into(), Content { bytes, thin: Vec::new() })
    }

    fn new(path: PathBuf, content: Content) -> Self {
        Self { path, content: Arc::new(content), is_whole: false, is_of_group: false }
    }

    /// Whether it is the same file, read once.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
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
        label(&self.path)
    }

    /// How many bytes it has, those of a thin archive's members among them.
    #[must_use]
    pub fn size(&self) -> usize {
        let Content { bytes, thin } = &*self.content;
        thin.iter().fold(bytes.bytes().len(), |sum, member| sum.saturating_add(member.len()))
    }

    /// Says that few of its bytes will be looked at from now on: the pages of a file that is mapped need not stay in memory.
    pub fn done(&self) {
        let bytes = &self.content.bytes;
        bytes.done_with(0..bytes.bytes().len() as u64);
    }

    /// Whether the file is an archive.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        is_archive(self.content.bytes.bytes())
    }

    /// The file as it is: one part, or the members of an archive in order.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn parts<'s>(&'s self) -> Result<Vec<Part<'s>>> {
        let bytes = self.content.bytes.bytes();
        let Some(archive) = self.content.archive(&self.path)? else {
            return Ok(Vec::from([Part { label: self.label(), member: None, bytes }]));
        };
        let mut thin = self.content.thin.iter();
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
}

impl Content {
    fn archive(&self, path: &Path) -> Result<Option<Archive<'_>>> {
        let bytes = self.bytes.bytes();
        if !is_archive(bytes) {
            return Ok(None);
        }
        Archive::parse(bytes).map(Some).with_context(|| label(path))
    }
}

/// Reads several files, those that are given more than once but once.
///
/// # Errors
/// As [`Input::read_within`].
pub fn read_all(paths: &[PathBuf], limits: Limits) -> Result<Vec<Input>> {
    let mut known = HashMap::<&Path, Arc<Content>>::new();
    let read = |path| {
        if let Some(content) = known.get(path) {
            return Ok(Input { content: Arc::clone(content), ..Input::of(path, Vec::new()) });
        }
        let input = Input::read_within(path, limits)?;
        // of archives that are linked the tables of all members are looked at, one behind the other
        let bytes = &input.content.bytes;
        bytes.will_read(0..bytes.bytes().len() as u64);
        known.insert(path, Arc::clone(&input.content));
        Ok(input)
    };
    paths.iter().map(PathBuf::as_path).map(read).collect()
}

/// Calls `look` with the file of this path, or, if it is a folder or an archive of files (a wheel, tar, an image of a container ...), with each
/// ELF file and archive of objects that is in there.
///
/// # Errors
/// As [`Input::read_within`]; those of `look`, and of what is inside.
pub fn each(path: &Path, limits: Limits, mut look: impl FnMut(&Input) -> Result<()>) -> Result<()> {
    #[cfg(all(feature = "device-code", not(target_family = "wasm")))]
    if path.is_dir() || Form::of_file(path).is_some_and(|form| form != Form::Plain) {
        let mut found = false;
        let sources = crate::sources::Sources::of(vec![path.to_owned()]);
        sources.each(
            crate::sources::Order::OneByOne,
            |source| source,
            |_, source| {
                let source = source?;
                let bytes = source.file.bytes();
                if !bytes.starts_with(&elf_core::names::ELFMAG) && !is_archive(bytes) {
                    return Ok(());
                }
                found = true;
                look(&Input::of_mapped(source.label, source.file))
            },
        )?;
        anyhow::ensure!(found, "{}: no ELF file is in there", label(path));
        return Ok(());
    }
    look(&Input::read_within(path, limits)?)
}

/// Whether a file is one to map: an archive, or so large that to read it takes longer than to have its pages looked up. No pipe is: it
/// opens once.
fn is_large_or_archive(path: &Path) -> bool {
    const LARGE: u64 = 1 << 20;
    let mut magic = [0; archive::MAGIC.len()];
    let Some(found) = path.metadata().ok().filter(Metadata::is_file) else { return false };
    found.len() >= LARGE
        || File::open(path)
            .is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && is_archive(&magic))
}

fn label(path: &Path) -> String {
    path.display().to_string()
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
