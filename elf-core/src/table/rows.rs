//! A table of rows, and going over them.

// a loop for each class and byte order, or one for all where code is scarcer than time: each file says why
#[cfg_attr(target_pointer_width = "64", path = "rows/wide.rs")]
#[cfg_attr(not(target_pointer_width = "64"), path = "rows/narrow.rs")]
mod reader;

use self::reader::{Iter, Rows};
use crate::error::Error;
use crate::table::class::Elf64;
use crate::table::entry::{Entry, row_size};
use crate::table::place::{Place, count};
use crate::views::encoding::Encoding;
use core::fmt;
use zerocopy::byteorder::LE;

/// A table of rows borrowed from a file, checked once: reading them cannot fail.
pub struct Table<'a, E: Entry>(Rows<'a, E>);

impl<E: Entry> Clone for Table<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Entry> Copy for Table<'_, E> {}

impl<'a, E: Entry> Table<'a, E> {
    /// A table without rows.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Rows::EMPTY)
    }

    /// `count` rows at file offset `at`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`](crate::ErrorKind::Outside) unless all of them lie inside `file`.
    #[inline]
    pub fn parse(file: &'a [u8], encoding: Encoding, at: u64, count: u64) -> Result<Self, Error> {
        Rows::parse(file, encoding, at, count).map(Self)
    }

    /// As many rows as `size` bytes at file offset `at` hold.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`](crate::ErrorKind::Outside) unless the bytes lie inside `file`;
    /// [`ErrorKind::UnevenTable`](crate::ErrorKind::UnevenTable) if a part of a row is left.
    #[inline]
    pub fn parse_bytes(
        file: &'a [u8],
        encoding: Encoding,
        at: u64,
        size: u64,
    ) -> Result<Self, Error> {
        let entry = row_size::<E>(encoding);
        Self::parse(file, encoding, at, count(E::WHAT, at, size, entry)?)
    }

    /// The table in a section; none where the section is empty.
    ///
    /// # Errors
    /// As [`Place::count`]; [`ErrorKind::Outside`] if the section leaves the file.
    #[inline]
    pub(crate) fn of_section(
        file: &'a [u8],
        encoding: Encoding,
        place: Place,
    ) -> Result<Self, Error> {
        Rows::of_section(file, encoding, place).map(Self)
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Row `index`.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<E::View> {
        self.0.get(index)
    }

    /// The rows `start..end`, if there are that many.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Option<Self> {
        self.0.slice(start, end).map(Self)
    }

    /// Calls `f` with every row in order, up to the first error.
    ///
    /// Faster than a loop over [`iter`](Self::iter) for files of the machine's own class: it is asked for once, not for every
    /// row.
    ///
    /// # Errors
    /// The first error of `f`.
    #[inline]
    pub fn try_for_each<Error>(
        &self,
        f: impl FnMut(E::View) -> Result<(), Error>,
    ) -> Result<(), Error> {
        try_for_each(self.native(), self.iter(), f)
    }

    /// The rows, if they are of the machine's own class, and it has a loop of its own for them.
    #[inline]
    pub(crate) const fn native(&self) -> Option<&'a [E::Raw<Elf64<LE>>]> {
        self.0.native()
    }

    /// Index of the first row that `is` what is looked for.
    #[inline]
    pub fn position(&self, mut is: impl FnMut(&E::View) -> bool) -> Option<usize> {
        if let Some(rows) = self.0.native() {
            return rows.iter().position(|&row| is(&row.into()));
        }
        // `position` of an iterator that is not a slice's checks its counter for overflow, and panics
        (0..self.len()).zip(self.iter()).find(|(_, row)| is(row)).map(|(index, _)| index)
    }

    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> TableIter<'a, E> {
        TableIter(self.0.iter())
    }
}

/// Calls `f` with every row of `native`, if there are any to be had, else with all that `others` gives.
#[inline]
pub(crate) fn try_for_each<R: Copy + Into<V>, V, Error>(
    native: Option<&[R]>,
    mut others: impl Iterator<Item = V>,
    mut f: impl FnMut(V) -> Result<(), Error>,
) -> Result<(), Error> {
    // one loop for all encodings where code is scarcer than time
    if cfg!(not(target_pointer_width = "64")) {
        return others.try_for_each(f);
    }
    let mut rows = native.unwrap_or_default().iter();
    // `f` is called from one place, so that it becomes a part of the loop
    loop {
        let view = match rows.next() {
            Some(&row) => row.into(),
            None if native.is_some() => return Ok(()),
            None => match others.next() {
                Some(view) => view,
                None => return Ok(()),
            },
        };
        f(view)?;
    }
}

impl<'a, E: Entry> IntoIterator for Table<'a, E> {
    type Item = E::View;
    type IntoIter = TableIter<'a, E>;

    fn into_iter(self) -> TableIter<'a, E> {
        self.iter()
    }
}

impl<E: Entry<View: fmt::Debug>> fmt::Debug for Table<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The rows of a [`Table`] in order.
///
/// Internal iteration (`for_each`, `fold` and what is built on them) asks for the class once, not for every row; on machines of
/// 32 bits, where code is scarcer, all callers share one reader.
pub struct TableIter<'a, E: Entry>(Iter<'a, E>);

impl<E: Entry> Clone for TableIter<'_, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Entry> Iterator for TableIter<'_, E> {
    type Item = E::View;

    #[inline]
    fn next(&mut self) -> Option<E::View> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.len();
        (len, Some(len))
    }

    fn nth(&mut self, n: usize) -> Option<E::View> {
        self.0.nth(n)
    }

    // asks for the encoding once a table; without it rows are asked for one by one, which is less code
    #[cfg(target_pointer_width = "64")]
    #[inline]
    fn fold<B, F: FnMut(B, E::View) -> B>(self, init: B, f: F) -> B {
        self.0.fold(init, f)
    }
}

impl<E: Entry> DoubleEndedIterator for TableIter<'_, E> {
    fn next_back(&mut self) -> Option<E::View> {
        self.0.next_back()
    }
}

impl<E: Entry> ExactSizeIterator for TableIter<'_, E> {}
impl<E: Entry> core::iter::FusedIterator for TableIter<'_, E> {}
