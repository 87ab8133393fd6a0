//! Archives as a source of symbols.

use crate::error::Error;
use elf_core::Name;
use elf_core::archive::Archive as Members;
use elf_layout::archives::{MemberError, MemberIndex};
use exec_core::NamedFiles;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// An archive whose members are loaded on demand, together with the objects that ask for what they define.
///
/// A member belongs to the load that asked for it: two loads that ask for the same one get it twice. To share it, load it
/// once and offer that [`Module`](crate::Module) first. Which members are taken, and in which order, says [`elf_layout::archives`].
#[derive(Clone, Debug, Default)]
pub struct Archive(Arc<MemberIndex<Arc<[u8]>>>);

impl Archive {
    /// Reads the members of an archive in memory. Members that are no ELF files are kept and define nothing.
    ///
    /// # Errors
    /// [`Error::Archive`] if it is damaged, [`Error::Member`] if a member is; [`Error::ThinArchive`] if it is thin: then
    /// [`open`](Self::open) finds the members.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::collect(bytes, None)
    }

    /// Reads an archive, and the files that a thin one names: regular files in its folder or below, of no more than
    /// [`NAMED_LIMIT`](exec_core::NAMED_LIMIT) bytes.
    ///
    /// # Errors
    /// [`Error::File`] if a file cannot be read, [`Error::Named`] if one that the archive names cannot or may not,
    /// [`Error::Archive`] or [`Error::Member`] if the archive is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::open_with(path, NamedFiles::of(path))
    }

    /// The same, with the files that a thin archive names read by `files`, which may look elsewhere or read more.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, mut files: NamedFiles) -> Result<Self, Error> {
        Self::collect(&read(path.as_ref())?, Some(&mut files))
    }

    /// All members, in order: to load them whether somebody asks for them or not (`--whole-archive` of linkers).
    pub fn members(&self) -> impl Iterator<Item = Arc<[u8]>> + '_ {
        self.0.members().iter().cloned()
    }

    /// Which member defines a name, and who has it.
    pub(super) const fn index(&self) -> &Arc<MemberIndex<Arc<[u8]>>> {
        &self.0
    }

    /// Reads members, those of a thin archive from `files`.
    fn collect(bytes: &[u8], mut files: Option<&mut NamedFiles>) -> Result<Self, Error> {
        let (mut members, mut names) = (Vec::new(), Vec::new());
        for member in Members::parse(bytes).map_err(Error::Archive)?.members() {
            let member = member.map_err(Error::Archive)?;
            members.push(match (member.data, &mut files) {
                (Some(bytes), _) => Arc::from(bytes),
                (None, Some(files)) => {
                    let name = OsStr::from_bytes(member.name.as_bytes());
                    files.read(Path::new(name)).map_err(Error::Named)?
                }
                (None, None) => return Err(Error::ThinArchive),
            });
            names.push(member.name);
        }
        let index =
            MemberIndex::new(members).map_err(|MemberError { member, error }| Error::Member {
                name: names.get(member).map(Name::to_string).unwrap_or_default(),
                error,
            })?;
        Ok(Self(Arc::new(index)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|cause| Error::File { path: path.into(), cause })
}
