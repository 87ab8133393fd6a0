//! A library's file, mapped: its image is made of pages of the file, as the dynamic loader's is, and its tables are read where they are.
//! Who opens the file guarantees that it stays as it is.

use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use elf_core::SegmentFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) struct FileBytes {
    memory: Mapping,
    size: usize,
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is ours and readable, and nobody writes to it; of a file's pages the caller of `read` guarantees that.
        let bytes = unsafe { self.memory.bytes(0, self.size as u64) };
        bytes.and_then(|bytes| bytes.get(..self.size)).unwrap_or_default()
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
    if may_map && metadata.is_file() && size > 0 {
        let memory = Mapping::of_file(&file, 0, size, SegmentFlags::READ)?;
        return Ok((FileBytes { memory, size: count }, Some(FilePages(file))));
    }
    let options = MappingOptions { size, alignment: 1, ..MappingOptions::default() };
    let mut memory = Mapping::new(&options)?;
    memory.populate(0, size);
    let place = memory.bytes_mut().get_mut(..count).unwrap_or_default();
    file.read_exact_at(place, 0).map_err(failed)?;
    Ok((FileBytes { memory, size: count }, None))
}
