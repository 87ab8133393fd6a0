//! The one place where bytes become rows.

use crate::class::{Class, Elf32, Elf64, Encoding, Row, with_class};
use crate::error::{Error, ErrorKind};
use core::fmt;
use core::slice;
use zerocopy::FromBytes;
use zerocopy::byteorder::{BE, LE};

/// `count` rows at file offset `at`, borrowed from the file.
///
/// # Errors
/// [`ErrorKind::Outside`] unless every row lies inside `file`.
pub fn rows<'a, T: Row>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    count: u64,
) -> Result<&'a [T], Error> {
    usize::try_from(at)
        .ok()
        .and_then(|at| file.get(at..))
        .zip(usize::try_from(count).ok())
        .and_then(|(rest, count)| <[T]>::ref_from_prefix_with_elems(rest, count).ok())
        .map(|(rows, _)| rows)
        .ok_or(Error { at, kind: ErrorKind::Outside { what, count, file: file.len() as u64 } })
}

/// `size` bytes at file offset `at`.
///
/// # Errors
/// [`ErrorKind::Outside`] unless all of them lie inside `file`.
pub fn bytes<'a>(
    file: &'a [u8],
    what: &'static str,
    at: u64,
    size: u64,
) -> Result<&'a [u8], Error> {
    usize::try_from(at)
        .ok()
        .and_then(|at| file.get(at..))
        .zip(usize::try_from(size).ok())
        .and_then(|(rest, size)| rest.get(..size))
        .ok_or(Error { at, kind: ErrorKind::Outside { what, count: 1, file: file.len() as u64 } })
}

/// The one row at `offset` in `bytes`, which lie at file offset `at`.
///
/// # Errors
/// [`ErrorKind::Outside`] unless all of it lies inside `bytes`.
pub(crate) fn row<E: Entry>(
    bytes: &[u8],
    encoding: Encoding,
    offset: u64,
    at: u64,
) -> Result<E::View, Error> {
    let row = with_class!(encoding, C => rows::<E::Raw<C>>(bytes, E::WHAT, offset, 1).map(|rows| first::<E, C>(rows)));
    let at = at.saturating_add(offset);
    let outside = Error {
        at,
        kind: ErrorKind::Outside { what: E::WHAT, count: 1, file: bytes.len() as u64 },
    };
    row.ok().flatten().ok_or(outside)
}

fn first<E: Entry, C: Class>(rows: &[E::Raw<C>]) -> Option<E::View> {
    rows.first().map(|&row| row.into())
}

/// What a table holds: a raw row in each class, one plain view for all.
pub trait Entry {
    /// The view.
    type View;
    /// The raw row of class `C`.
    type Raw<C: Class>: Row + Into<Self::View>;
    /// What to call the rows in an error.
    const WHAT: &'static str;
}

/// A table of rows borrowed from a file, checked once: reading them cannot fail.
pub struct Table<'a, E: Entry>(pub(crate) Rows<'a, E>);

pub(crate) enum Rows<'a, E: Entry> {
    Elf32Le(&'a [E::Raw<Elf32<LE>>]),
    Elf32Be(&'a [E::Raw<Elf32<BE>>]),
    Elf64Le(&'a [E::Raw<Elf64<LE>>]),
    Elf64Be(&'a [E::Raw<Elf64<BE>>]),
}

/// Runs `$body` with `$rows` as the raw rows, whatever their class.
macro_rules! each {
    ($table:expr, $rows:ident => $body:expr) => {
        match $table {
            Rows::Elf32Le($rows) => $body,
            Rows::Elf32Be($rows) => $body,
            Rows::Elf64Le($rows) => $body,
            Rows::Elf64Be($rows) => $body,
        }
    };
}

impl<E: Entry> Clone for Table<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Entry> Copy for Table<'_, E> {}

impl<E: Entry> Clone for Rows<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Entry> Copy for Rows<'_, E> {}

impl<'a, E: Entry> Table<'a, E> {
    /// A table without rows.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Rows::Elf64Le(&[]))
    }

    /// `count` rows at file offset `at`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] unless all of them lie inside `file`.
    pub fn parse(file: &'a [u8], encoding: Encoding, at: u64, count: u64) -> Result<Self, Error> {
        with_class!(encoding, C => Self::of_class::<C>(file, at, count))
    }

    /// As many rows as `size` bytes at file offset `at` hold.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] unless the bytes lie inside `file`; [`ErrorKind::UnevenTable`] if a part of a row is left.
    pub fn parse_bytes(
        file: &'a [u8],
        encoding: Encoding,
        at: u64,
        size: u64,
    ) -> Result<Self, Error> {
        with_class!(encoding, C => Self::of_bytes::<C>(file, at, size))
    }

    /// [`parse`](Self::parse), where the class is known.
    #[inline]
    pub(crate) fn of_class<C: Class>(file: &'a [u8], at: u64, count: u64) -> Result<Self, Error> {
        rows(file, E::WHAT, at, count).map(C::table)
    }

    /// [`parse_bytes`](Self::parse_bytes), where the class is known.
    #[inline]
    pub(crate) fn of_bytes<C: Class>(file: &'a [u8], at: u64, size: u64) -> Result<Self, Error> {
        let entry = const { size_of::<E::Raw<C>>() as u64 };
        match (size.checked_div(entry), size.checked_rem(entry)) {
            (Some(count), Some(0)) => Self::of_class::<C>(file, at, count),
            _ => Err(Error { at, kind: ErrorKind::UnevenTable { what: E::WHAT, size, entry } }),
        }
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        each!(&self.0, rows => rows.len())
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<E::View> {
        each!(&self.0, rows => rows.get(index).map(|&row| row.into()))
    }

    /// The rows `start..end`, if there are that many.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Option<Self> {
        Some(Self(match self.0 {
            Rows::Elf32Le(rows) => Rows::Elf32Le(rows.get(start..end)?),
            Rows::Elf32Be(rows) => Rows::Elf32Be(rows.get(start..end)?),
            Rows::Elf64Le(rows) => Rows::Elf64Le(rows.get(start..end)?),
            Rows::Elf64Be(rows) => Rows::Elf64Be(rows.get(start..end)?),
        }))
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
        mut f: impl FnMut(E::View) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(rows) = self.native() {
            return rows.iter().try_for_each(|&row| f(row.into()));
        }
        self.iter().try_for_each(f)
    }

    /// The rows, if they are of the machine's own class.
    #[cfg(target_pointer_width = "64")]
    #[inline]
    const fn native(&self) -> Option<&'a [E::Raw<Elf64<LE>>]> {
        match self.0 {
            Rows::Elf64Le(rows) => Some(rows),
            _ => None,
        }
    }

    /// The rows, if they are of the machine's own class.
    #[cfg(not(target_pointer_width = "64"))]
    #[inline]
    const fn native(&self) -> Option<&'a [E::Raw<Elf32<LE>>]> {
        match self.0 {
            Rows::Elf32Le(rows) => Some(rows),
            _ => None,
        }
    }

    /// Index of the first row that `is` what is looked for.
    #[inline]
    pub fn position(&self, mut is: impl FnMut(&E::View) -> bool) -> Option<usize> {
        if let Some(rows) = self.native() {
            return rows.iter().position(|&row| is(&row.into()));
        }
        // `position` of an iterator that is not a slice's checks its counter for overflow, and panics
        (0..self.len()).zip(self.iter()).find(|(_, row)| is(row)).map(|(index, _)| index)
    }

    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> TableIter<'a, E> {
        TableIter(match self.0 {
            Rows::Elf32Le(rows) => Iters::Elf32Le(rows.iter()),
            Rows::Elf32Be(rows) => Iters::Elf32Be(rows.iter()),
            Rows::Elf64Le(rows) => Iters::Elf64Le(rows.iter()),
            Rows::Elf64Be(rows) => Iters::Elf64Be(rows.iter()),
        })
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
/// Internal iteration (`for_each`, `fold` and what is built on them) asks for the class once, not for every row.
pub struct TableIter<'a, E: Entry>(Iters<'a, E>);

enum Iters<'a, E: Entry> {
    Elf32Le(slice::Iter<'a, E::Raw<Elf32<LE>>>),
    Elf32Be(slice::Iter<'a, E::Raw<Elf32<BE>>>),
    Elf64Le(slice::Iter<'a, E::Raw<Elf64<LE>>>),
    Elf64Be(slice::Iter<'a, E::Raw<Elf64<BE>>>),
}

macro_rules! each_iter {
    ($iter:expr, $rows:ident => $body:expr) => {
        match $iter {
            Iters::Elf32Le($rows) => $body,
            Iters::Elf32Be($rows) => $body,
            Iters::Elf64Le($rows) => $body,
            Iters::Elf64Be($rows) => $body,
        }
    };
}

impl<E: Entry> Clone for TableIter<'_, E> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Iters::Elf32Le(rows) => Iters::Elf32Le(rows.clone()),
            Iters::Elf32Be(rows) => Iters::Elf32Be(rows.clone()),
            Iters::Elf64Le(rows) => Iters::Elf64Le(rows.clone()),
            Iters::Elf64Be(rows) => Iters::Elf64Be(rows.clone()),
        })
    }
}

impl<E: Entry> Iterator for TableIter<'_, E> {
    type Item = E::View;

    #[inline]
    fn next(&mut self) -> Option<E::View> {
        each_iter!(&mut self.0, rows => rows.next().map(|&row| row.into()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        each_iter!(&self.0, rows => rows.size_hint())
    }

    fn nth(&mut self, n: usize) -> Option<E::View> {
        each_iter!(&mut self.0, rows => rows.nth(n).map(|&row| row.into()))
    }

    #[inline]
    fn fold<B, F: FnMut(B, E::View) -> B>(self, init: B, mut f: F) -> B {
        each_iter!(self.0, rows => rows.fold(init, |acc, &row| f(acc, row.into())))
    }
}

impl<E: Entry> DoubleEndedIterator for TableIter<'_, E> {
    fn next_back(&mut self) -> Option<E::View> {
        each_iter!(&mut self.0, rows => rows.next_back().map(|&row| row.into()))
    }
}

impl<E: Entry> ExactSizeIterator for TableIter<'_, E> {}
impl<E: Entry> core::iter::FusedIterator for TableIter<'_, E> {}
