//! A library's file: its image is made of pages of the file, as the dynamic loader's is, and its tables are read where they are, or, of a
//! small file, in a copy. Who opens the file guarantees that it stays as it is.

use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use elf_core::SegmentFlags;
use rustix::buffer::spare_capacity;
use rustix::io::pread;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum FileBytes {
    /// Pages, and how many bytes.
    Pages(Mapping, usize),
    Copy(Vec<u8>),
}

/// Up to so many bytes are copied: a system maps, and forgets, a few pages for what it takes to copy these.
const SMALL: u64 = 128 << 10;

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

/// A file of which pages can be mapped.
#[derive(Debug)]
pub(crate) struct FilePages(pub(crate) File);

/// Maps a file if `may_map`; else reads it.
///
/// # Errors
/// [`Error::File`], or there is no memory.
///
/// # Safety
/// Nobody writes to the file or makes it shorter as long as the bytes are used.
pub(crate) unsafe fn read(
    path: &Path,
    may_map: bool,
) -> Result<(FileBytes, Option<FilePages>), Error> {
    let failed = |cause: io::Error| Error::File { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    // so much memory there is, or the mapping fails
    let (size, count) = (metadata.len(), metadata.len() as usize);
    let has_pages = may_map && metadata.is_file() && size > 0;
    if has_pages && size > SMALL {
        let memory = Mapping::of_file(&file, 0, size, SegmentFlags::READ)?;
        return Ok((FileBytes::Pages(memory, count), Some(FilePages(file))));
    }
    if size <= SMALL {
        let bytes = copy(&file, count).map_err(failed)?;
        return Ok((FileBytes::Copy(bytes), has_pages.then_some(FilePages(file))));
    }
    let options = MappingOptions { size, alignment: 1, ..MappingOptions::default() };
    let mut memory = Mapping::new(&options)?;
    memory.populate(0, size);
    let place = memory.bytes_mut().get_mut(..count).unwrap_or_default();
    file.read_exact_at(place, 0).map_err(failed)?;
    Ok((FileBytes::Pages(memory, count), None))
}

/// So many bytes of a file.
fn copy(file: &File, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let at = bytes.len() as u64;
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(size);
    Ok(bytes)
}
