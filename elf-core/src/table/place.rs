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
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) fn count(what: &'static str, at: u64, size: u64, entry: usize) -> Result<u64, Error> {
    // a size that no memory has is not divided: small machines have no instruction for that
    let Ok(bytes) = usize::try_from(size) else { return Ok(size) };
    match quotient(bytes, entry) {
        (count, 0) => Ok(count as u64),
        _ => Err(Error { at, kind: ErrorKind::UnevenTable { what, size, entry: entry as u64 } }),
    }
}

/// How many rows of `entry` bytes are in `bytes`, and what is left of these.
// its callers know `entry`, so that inlined there is no division
#[cfg(target_pointer_width = "64")]
#[inline]
pub(crate) const fn quotient(bytes: usize, entry: usize) -> (usize, usize) {
    match (bytes.checked_div(entry), bytes.checked_rem(entry)) {
        (Some(count), Some(rest)) => (count, rest),
        _ => (0, bytes),
    }
}

/// The same bit by bit: the smallest processors cannot divide, and what the compiler has for them is more code than any table's reader.
#[cfg(not(target_pointer_width = "64"))]
#[inline(never)]
pub(crate) const fn quotient(bytes: usize, entry: usize) -> (usize, usize) {
    let (mut count, mut rest, mut bit) = (0, bytes, usize::BITS);
    while bit > 0 && entry > 0 {
        bit = bit.wrapping_sub(1);
        count <<= 1;
        if rest.wrapping_shr(bit) >= entry {
            rest = rest.wrapping_sub(entry.wrapping_shl(bit));
            count |= 1;
        }
    }
    (count, rest)
}

#[cfg(test)]
mod tests {
    use super::quotient;

    #[test]
    fn rows_and_what_is_left() {
        for (bytes, entry) in
            [(0, 40), (39, 40), (40, 40), (81, 40), (24, 1), (usize::MAX, 24), (usize::MAX, 1)]
        {
            assert_eq!(
                quotient(bytes, entry),
                (bytes / entry, bytes % entry),
                "{bytes} by {entry}"
            );
        }
        assert_eq!(quotient(5, 0).1, 5, "there are no such rows");
    }
}
