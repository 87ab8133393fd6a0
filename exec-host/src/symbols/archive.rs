//! Archives as a source of symbols.

use super::shared_bytes::SharedBytes;
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
pub struct ArchiveSource(Arc<MemberIndex<SharedBytes>>);

impl ArchiveSource {
    /// The archive that `bytes` are: `Vec<u8>`, `&'static [u8]`, a mapped file. They are kept, and members are parts of them. Members that are
    /// no ELF files define nothing.
    ///
    /// # Errors
    /// [`Error::Archive`] if it is damaged, [`Error::Member`] if a member is; [`Error::ThinArchive`] if it is thin: then
    /// [`open`](Self::open) finds the members.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self, Error> {
        Self::collect(&SharedBytes::new(bytes), None)
    }

    /// The same with a copy of bytes that are somebody else's.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::new(bytes.to_vec())
    }

    /// Reads an archive, once as a whole, and the files that a thin one names: regular files in its folder or below, of no more than
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
        Self::collect(&read(path.as_ref())?.into(), Some(&mut files))
    }

    /// All members, in order: to load them whether somebody asks for them or not (`--whole-archive` of linkers).
    pub fn members(&self) -> impl Iterator<Item = SharedBytes> + '_ {
        self.0.members().iter().cloned()
    }

    /// Which member defines a name, and who has it.
    pub(super) const fn index(&self) -> &Arc<MemberIndex<SharedBytes>> {
        &self.0
    }

    /// Collects members, those of a thin archive from `files`.
    fn collect(bytes: &SharedBytes, mut files: Option<&mut NamedFiles>) -> Result<Self, Error> {
        let (mut members, mut names) = (Vec::new(), Vec::new());
        let start = bytes.as_ptr().addr();
        for member in Members::parse(bytes).map_err(Error::Archive)?.members() {
            let member = member.map_err(Error::Archive)?;
            members.push(match (member.data, &mut files) {
                (Some(data), _) => {
                    let from = data.as_ptr().addr().saturating_sub(start);
                    bytes.part(from..from.saturating_add(data.len()))
                }
                (None, Some(files)) => {
                    let name = OsStr::from_bytes(member.name.as_bytes());
                    files.read(Path::new(name)).map_err(Error::Named)?.into()
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
