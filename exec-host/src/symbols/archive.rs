//! Archives as a source of symbols.

use super::{Found, Symbols};
use crate::budget::names_limit;
use crate::error::Error;
use elf_core::archive::Archive as Members;
use elf_core::names::STB_LOCAL;
use elf_core::{File, Name};
use exec_core::NamedFiles;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// An archive whose members are loaded on demand, together with the objects that ask for what they define.
///
/// A member belongs to the load that asked for it: two loads that ask for the same one get it twice. To share it, load it
/// once and offer that [`Module`](crate::Module) first.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    members: Vec<Arc<[u8]>>,
    /// The first member that defines a name.
    definers: HashMap<Box<[u8]>, usize>,
}

impl Archive {
    /// Reads the members of an archive in memory. Members that are no ELF files are kept and define nothing.
    ///
    /// # Errors
    /// [`Error::Archive`] if it is damaged, or thin: then [`open`](Self::open) finds the members.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::collect(bytes, None)
    }

    /// Reads an archive, and the files that a thin one names: regular files in its folder or below, of no more than
    /// [`NAMED_LIMIT`](exec_core::NAMED_LIMIT) bytes.
    ///
    /// # Errors
    /// [`Error::File`] if a file cannot be read, [`Error::Named`] if one that the archive names cannot or may not,
    /// [`Error::Archive`] if the archive is damaged.
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
        self.members.iter().cloned()
    }

    /// Reads members, those of a thin archive from `files`.
    fn collect(bytes: &[u8], mut files: Option<&mut NamedFiles>) -> Result<Self, Error> {
        let mut archive = Self::default();
        for member in Members::parse(bytes).map_err(Error::Archive)?.members() {
            let member = member.map_err(Error::Archive)?;
            let bytes: Arc<[u8]> = match (member.data, &mut files) {
                (Some(bytes), _) => bytes.into(),
                (None, Some(files)) => {
                    let name = OsStr::from_bytes(member.name.as_bytes());
                    files.read(Path::new(name)).map_err(Error::Named)?
                }
                (None, None) => return Err(Error::ThinArchive),
            };
            let index = archive.members.len();
            let table = File::parse(&bytes).and_then(|file| file.symbol_table()).ok().flatten();
            if let Some(table) = &table {
                // they are copied here
                table.check_names(names_limit(bytes.len() as u64)).map_err(Error::Archive)?;
            }
            for (table, symbol) in table
                .iter()
                .flat_map(|table| table.symbols().iter().skip(1).map(move |symbol| (table, symbol)))
            {
                if symbol.binding() != STB_LOCAL
                    && !symbol.is_undefined()
                    && let Ok(name) = table.name_of(&symbol)
                {
                    archive.definers.entry(name.as_bytes().into()).or_insert(index);
                }
            }
            archive.members.push(bytes);
        }
        Ok(archive)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|cause| Error::File { path: path.into(), cause })
}

impl Symbols for Archive {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        let member = self.definers.get(name.as_bytes())?;
        self.members.get(*member).map(|bytes| Found::Object(Arc::clone(bytes)))
    }

    fn find_weak(&mut self, _: Name<'_>) -> Option<Found> {
        None
    }
}
