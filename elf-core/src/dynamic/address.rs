//! Where in the file lies what a loader puts at an address.

use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::names::PT_LOAD;
use crate::table::slices;

impl<'a> File<'a> {
    /// The file offset of what is loaded at `address`: by the first `PT_LOAD` segment whose bytes in the file hold it.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.loaded_at(address).map(|(offset, _)| offset)
    }

    /// The file offset of what is loaded at `address`, and the bytes from there to the end of its segment in the file.
    ///
    /// # Errors
    /// [`ErrorKind::NoAddress`], called `what`, at offset 0, if no `PT_LOAD` segment holds it; [`ErrorKind::Outside`] if the
    /// segment leaves the file.
    pub fn bytes_at(&self, what: &'static str, address: u64) -> Result<(u64, &'a [u8]), Error> {
        let missing = Error { at: 0, kind: ErrorKind::NoAddress { what, address } };
        let (offset, size) = self.loaded_at(address).ok_or(missing)?;
        Ok((offset, slices::bytes(self.bytes(), what, offset, size)?))
    }

    /// The file offset of what is loaded at `address`, and how many bytes its segment has in the file from there on.
    #[must_use]
    pub fn loaded_at(&self, address: u64) -> Option<(u64, u64)> {
        self.segments().iter().filter(|segment| segment.r#type == PT_LOAD).find_map(|segment| {
            let from_start = address.checked_sub(segment.address)?;
            // of those that say so, more bytes than the memory has are in no memory
            let size = segment.file_size.min(segment.memory_size).checked_sub(from_start)?;
            let size = Some(size).filter(|size| *size != 0)?;
            Some((segment.offset.checked_add(from_start)?, size))
        })
    }
}
