//! A library's file: its image is made of pages of the file, as the dynamic loader's is, and its tables are read from its beginning, in which
//! linkers put them, or, where that is large, where they are. Who opens the file guarantees that it stays as it is.

use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use elf_core::names::{PT_DYNAMIC, PT_LOAD};
use elf_core::{File, SegmentFlags};
use exec_core::sync::OnceLock;
use rustix::buffer::spare_capacity;
use rustix::io::pread;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum FileBytes {
    /// Pages, and how many bytes.
    Pages(Mapping, usize),
    Copy(Vec<u8>),
}

/// Up to so many bytes are copied: a system maps, and forgets, a few pages for what it takes to copy these.
const SMALL: u64 = 128 << 10;

/// So many bytes are read of a file before it is known how many are wanted.
const FIRST: u64 = 16 << 10;

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Copy(bytes) => bytes,
            Self::Pages(memory, size) => {
                // SAFETY: the memory is ours and readable, and nobody writes to it; of a file's pages the caller of `read` guarantees that.
                let bytes = unsafe { memory.bytes(0, *size as u64) };
                bytes.and_then(|bytes| bytes.get(..*size)).unwrap_or_default()
            }
        }
    }
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct OpenFile<'p> {
    path: &'p Path,
    pub(crate) file: fs::File,
    metadata: Metadata,
}

/// What a loader reads of a file whose segments are mapped: its first segment, and its dynamic section.
pub(crate) struct Beginning {
    /// The first bytes of the file.
    bytes: Vec<u8>,
    /// The dynamic section, unless it is among them.
    dynamic: Option<Vec<u8>>,
    file: Named,
    whole: OnceLock<Option<FileBytes>>,
}

/// A file that may be opened again.
struct Named {
    path: PathBuf,
    metadata: Metadata,
}

impl<'p> OpenFile<'p> {
    /// Opens the file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub(crate) fn new(path: &'p Path) -> Result<Self, Error> {
        let opened = fs::File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|cause| failed(path, cause))?;
        Ok(Self { path, file, metadata })
    }

    /// Its beginning, if that is enough to find its tables, as far as that can be told before they are looked for.
    pub(crate) fn beginning(&self) -> Option<Beginning> {
        let size = self.metadata.len();
        if !self.metadata.is_file() {
            return None;
        }
        let mut bytes = Vec::with_capacity(FIRST as usize);
        read(&self.file, &mut bytes, 0, size.min(FIRST)).ok()?;
        let segments = File::parse_beginning(&bytes, size).ok()?.segments();
        let first = segments.iter().find(|it| it.r#type == PT_LOAD)?;
        let dynamic = segments.iter().find(|it| it.r#type == PT_DYNAMIC)?;
        let end = first.file_size.min(size);
        if first.offset != 0 || end > SMALL || dynamic.file_size > FIRST {
            return None;
        }
        let at = bytes.len() as u64;
        read(&self.file, &mut bytes, at, end.saturating_sub(at)).ok()?;
        let is_inside = dynamic.offset.checked_add(dynamic.file_size)? <= bytes.len() as u64;
        let mut apart = None;
        if !is_inside {
            let apart = apart.insert(Vec::new());
            read(&self.file, apart, dynamic.offset, dynamic.file_size).ok()?;
        }
        let path = match self.path.is_absolute() {
            true => self.path.to_owned(),
            false => std::path::absolute(self.path).ok()?,
        };
        let file = Named { path, metadata: self.metadata.clone() };
        Some(Beginning { bytes, dynamic: apart, file, whole: OnceLock::new() })
    }

    /// All its bytes, mapped if they are many and that `may_map`, else read.
    ///
    /// # Errors
    /// [`Error::File`], or there is no memory.
    ///
    /// # Safety
    /// Nobody writes to the file or makes it shorter as long as the bytes are used.
    pub(crate) unsafe fn whole(&self, may_map: bool) -> Result<FileBytes, Error> {
        // so much memory there is, or the mapping fails
        let (size, count) = (self.metadata.len(), self.metadata.len() as usize);
        if may_map && self.metadata.is_file() && size > SMALL {
            let memory = Mapping::of_file(&self.file, 0, size, SegmentFlags::READ)?;
            return Ok(FileBytes::Pages(memory, count));
        }
        self.read_whole()
    }

    /// All its bytes, read.
    ///
    /// # Errors
    /// [`Error::File`], or there is no memory.
    pub(crate) fn read_whole(&self) -> Result<FileBytes, Error> {
        let failed = |cause| failed(self.path, cause);
        let (size, count) = (self.metadata.len(), self.metadata.len() as usize);
        if size <= SMALL {
            let mut bytes = Vec::with_capacity(count);
            read(&self.file, &mut bytes, 0, size).map_err(failed)?;
            return Ok(FileBytes::Copy(bytes));
        }
        let options = MappingOptions { size, alignment: 1, ..MappingOptions::default() };
        let mut memory = Mapping::new(&options)?;
        memory.populate(0, size);
        let place = memory.bytes_mut().get_mut(..count).unwrap_or_default();
        self.file.read_exact_at(place, 0).map_err(failed)?;
        Ok(FileBytes::Pages(memory, count))
    }

    /// Whether pages of it can be mapped.
    pub(crate) fn has_pages(&self) -> bool {
        self.metadata.is_file() && self.metadata.len() > 0
    }
}

impl Beginning {
    /// The first bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The dynamic section, unless it is among them.
    pub(crate) fn dynamic(&self) -> Option<&[u8]> {
        self.dynamic.as_deref()
    }

    /// How many bytes the file has.
    pub(crate) fn size(&self) -> u64 {
        self.file.metadata.len()
    }

    /// All of the file, read when it is asked for first; none if it is not there any more, or has changed.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        let read = || {
            let Named { path, metadata } = &self.file;
            let opened = OpenFile::new(path).ok()?;
            let identity =
                |of: &Metadata| (of.dev(), of.ino(), of.len(), of.mtime(), of.mtime_nsec());
            if identity(&opened.metadata) != identity(metadata) {
                return None;
            }
            opened.read_whole().ok()
        };
        self.whole.get_or_init(read).as_ref().map(AsRef::as_ref)
    }
}

/// Appends so many bytes of a file.
fn read(file: &fs::File, bytes: &mut Vec<u8>, from: u64, size: u64) -> io::Result<()> {
    let start = bytes.len();
    let wanted = start.saturating_add(size as usize);
    bytes.reserve_exact(size as usize);
    while bytes.len() < wanted {
        let at = from.saturating_add(bytes.len().saturating_sub(start) as u64);
        match pread(file, spare_capacity(bytes), at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(wanted);
    Ok(())
}

fn failed(path: &Path, cause: io::Error) -> Error {
    Error::File { path: path.to_owned(), cause }
}
