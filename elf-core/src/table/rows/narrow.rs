//! Rows on machines of 32 bits, where code is scarcer than time: bytes and their class, which is asked for at every row.

use crate::error::Error;
use crate::table::class::Elf64;
use crate::table::entry::{Entry, row_size, view};
use crate::table::place::{Place, quotient};
use crate::table::slices::{span, times};
use crate::views::encoding::Encoding;
use core::marker::PhantomData;
use zerocopy::byteorder::LE;

pub(super) struct Rows<'a, E: Entry> {
    /// Whole rows.
    bytes: &'a [u8],
    encoding: Encoding,
    entry: PhantomData<E>,
}

impl<E: Entry> Clone for Rows<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Entry> Copy for Rows<'_, E> {}

impl<'a, E: Entry> Rows<'a, E> {
    pub(super) const EMPTY: Self =
        Self { bytes: &[], encoding: Encoding::Elf64Le, entry: PhantomData };

    pub(super) fn parse(
        file: &'a [u8],
        encoding: Encoding,
        at: u64,
        count: u64,
    ) -> Result<Self, Error> {
        let bytes = span(file, E::WHAT, at, count, row_size::<E>(encoding))?;
        Ok(Self { bytes, encoding, entry: PhantomData })
    }

    pub(super) fn of_section(
        file: &'a [u8],
        encoding: Encoding,
        place: Place,
    ) -> Result<Self, Error> {
        let bytes = section(file, E::WHAT, place, row_size::<E>(encoding))?;
        Ok(Self { bytes, encoding, entry: PhantomData })
    }

    pub(super) const fn len(&self) -> usize {
        quotient(self.bytes.len(), row_size::<E>(self.encoding)).0
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn get(&self, index: usize) -> Option<E::View> {
        self.iter().nth(index)
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> Option<Self> {
        let size = row_size::<E>(self.encoding);
        let bytes = self.bytes.get(times(start, size)?..times(end, size)?)?;
        Some(Self { bytes, ..*self })
    }

    /// There is one way for all classes.
    pub(super) const fn native(&self) -> Option<&'a [E::Raw<Elf64<LE>>]> {
        None
    }

    pub(super) const fn iter(&self) -> Iter<'a, E> {
        Iter(*self)
    }
}

/// The bytes of the table in a section; none where the section is empty.
#[inline(never)]
fn section<'a>(
    file: &'a [u8],
    what: &'static str,
    place: Place,
    entry: usize,
) -> Result<&'a [u8], Error> {
    match place.count(what, entry)? {
        0 => Ok(&[]),
        count => span(file, what, place.at, count, entry),
    }
}

/// The next `size` bytes of `rest`, if there are so many.
#[inline(never)]
fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(size)?;
    *rest = left;
    Some(taken)
}

/// The rows in order.
pub(super) struct Iter<'a, E: Entry>(Rows<'a, E>);

impl<E: Entry> Clone for Iter<'_, E> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<E: Entry> Iter<'_, E> {
    #[inline(never)]
    pub(super) fn next(&mut self) -> Option<E::View> {
        let rows = &mut self.0;
        view::<E>(take(&mut rows.bytes, row_size::<E>(rows.encoding))?, rows.encoding)
    }

    pub(super) fn next_back(&mut self) -> Option<E::View> {
        let rows = &mut self.0;
        let start = rows.bytes.len().checked_sub(row_size::<E>(rows.encoding))?;
        let (rest, last) = rows.bytes.split_at_checked(start)?;
        rows.bytes = rest;
        view::<E>(last, rows.encoding)
    }

    pub(super) fn nth(&mut self, n: usize) -> Option<E::View> {
        let rows = &mut self.0;
        let skipped = times(n, row_size::<E>(rows.encoding));
        if skipped.and_then(|skipped| take(&mut rows.bytes, skipped)).is_none() {
            rows.bytes = &[];
        }
        self.next()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}
