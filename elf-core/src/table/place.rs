//! How many rows a section says that it has.

use crate::error::{Error, ErrorKind};
use crate::views::section::SectionHeader;

/// What a section header says of the table in its section.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// File offset.
    pub(crate) at: u64,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Size of a row in bytes, or 0.
    pub(crate) entry_size: u64,
}

impl Place {
    /// Of a section.
    #[inline]
    pub(crate) const fn of(section: &SectionHeader) -> Self {
        let size = section.file_size();
        Self { at: section.offset, size, entry_size: section.entry_size }
    }

    /// The number of rows of `entry` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::EntrySize`] if the section says that they have another size, [`ErrorKind::UnevenTable`] if a part of a
    /// row is left.
    #[inline]
    pub(crate) fn count(self, what: &'static str, entry: usize) -> Result<u64, Error> {
        let Self { at, size, entry_size: found } = self;
        let expected = entry as u64;
        if found != expected && found != 0 {
            let kind = ErrorKind::EntrySize { what: "sh_entsize", found, expected };
            return Err(Error { at, kind });
        }
        count(what, at, size, entry)
    }
}

/// The number of rows of `entry` bytes that `size` bytes at file offset `at` hold.
// its callers know `entry`, so that inlined there is no division; where code is scarce, one function divides for all
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) fn count(what: &'static str, at: u64, size: u64, entry: usize) -> Result<u64, Error> {
    // a size that no memory has is not divided: small machines have no instruction for that
    let Ok(bytes) = usize::try_from(size) else { return Ok(size) };
    match (bytes.checked_div(entry), bytes.checked_rem(entry)) {
        (Some(count), Some(0)) => Ok(count as u64),
        _ => Err(Error { at, kind: ErrorKind::UnevenTable { what, size, entry: entry as u64 } }),
    }
}
