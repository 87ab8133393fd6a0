//! Rows on machines that have room for code: a slice of raw rows for each class, and a loop for each kind of row.

use crate::error::Error;
#[cfg(feature = "elf32")]
use crate::table::class::Elf32;
use crate::table::class::Elf64;
use crate::table::entry::{Entry, row_size};
use crate::table::place::Place;
use crate::table::slices::rows;
use crate::views::encoding::Encoding;
use core::slice;
#[cfg(feature = "big-endian")]
use zerocopy::byteorder::BE;
use zerocopy::byteorder::LE;

pub(super) enum Rows<'a, E: Entry> {
    #[cfg(feature = "elf32")]
    Elf32Le(&'a [E::Raw<Elf32<LE>>]),
    #[cfg(all(feature = "elf32", feature = "big-endian"))]
    Elf32Be(&'a [E::Raw<Elf32<BE>>]),
    Elf64Le(&'a [E::Raw<Elf64<LE>>]),
    #[cfg(feature = "big-endian")]
    Elf64Be(&'a [E::Raw<Elf64<BE>>]),
}

/// The rows in order.
pub(super) enum Iter<'a, E: Entry> {
    #[cfg(feature = "elf32")]
    Elf32Le(slice::Iter<'a, E::Raw<Elf32<LE>>>),
    #[cfg(all(feature = "elf32", feature = "big-endian"))]
    Elf32Be(slice::Iter<'a, E::Raw<Elf32<BE>>>),
    Elf64Le(slice::Iter<'a, E::Raw<Elf64<LE>>>),
    #[cfg(feature = "big-endian")]
    Elf64Be(slice::Iter<'a, E::Raw<Elf64<BE>>>),
}

/// Runs `$body` with `$rows` as what `$value`, a `$type`, holds, whatever its class; what it gives becomes a `$to`, if one is
/// named.
macro_rules! each {
    ($type:ident, $value:expr, $rows:ident => $($to:ident)? ($body:expr)) => {
        match $value {
            #[cfg(feature = "elf32")]
            $type::Elf32Le($rows) => $($to::Elf32Le)? ($body),
            #[cfg(all(feature = "elf32", feature = "big-endian"))]
            $type::Elf32Be($rows) => $($to::Elf32Be)? ($body),
            $type::Elf64Le($rows) => $($to::Elf64Le)? ($body),
            #[cfg(feature = "big-endian")]
            $type::Elf64Be($rows) => $($to::Elf64Be)? ($body),
        }
    };
}

impl<E: Entry> Clone for Rows<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Entry> Copy for Rows<'_, E> {}

impl<'a, E: Entry> Rows<'a, E> {
    pub(super) const EMPTY: Self = Self::Elf64Le(&[]);

    #[inline]
    pub(super) fn parse(
        file: &'a [u8],
        encoding: Encoding,
        at: u64,
        count: u64,
    ) -> Result<Self, Error> {
        Ok(match encoding {
            #[cfg(feature = "elf32")]
            Encoding::Elf32Le => Self::Elf32Le(rows(file, E::WHAT, at, count)?),
            #[cfg(all(feature = "elf32", feature = "big-endian"))]
            Encoding::Elf32Be => Self::Elf32Be(rows(file, E::WHAT, at, count)?),
            Encoding::Elf64Le => Self::Elf64Le(rows(file, E::WHAT, at, count)?),
            #[cfg(feature = "big-endian")]
            Encoding::Elf64Be => Self::Elf64Be(rows(file, E::WHAT, at, count)?),
        })
    }

    #[inline]
    pub(super) fn of_section(
        file: &'a [u8],
        encoding: Encoding,
        place: Place,
    ) -> Result<Self, Error> {
        match place.count(E::WHAT, row_size::<E>(encoding))? {
            0 => Ok(Self::EMPTY),
            count => Self::parse(file, encoding, place.at, count),
        }
    }

    pub(super) const fn len(&self) -> usize {
        each!(Self, self, rows => (rows.len()))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<E::View> {
        each!(Self, self, rows => (rows.get(index).map(|&row| row.into())))
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> Option<Self> {
        Some(each!(Self, self, rows => Self(rows.get(start..end)?)))
    }

    /// The rows, if they are of the machine's own class.
    #[inline]
    pub(super) const fn native(&self) -> Option<&'a [E::Raw<Elf64<LE>>]> {
        match self {
            Self::Elf64Le(rows) => Some(rows),
            #[cfg(any(feature = "elf32", feature = "big-endian"))]
            _ => None,
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> Iter<'a, E> {
        each!(Self, self, rows => Iter(rows.iter()))
    }
}

impl<E: Entry> Clone for Iter<'_, E> {
    fn clone(&self) -> Self {
        each!(Self, self, rows => Self(rows.clone()))
    }
}

impl<E: Entry> Iter<'_, E> {
    #[inline]
    pub(super) fn next(&mut self) -> Option<E::View> {
        each!(Self, self, rows => (rows.next().map(|&row| row.into())))
    }

    pub(super) fn next_back(&mut self) -> Option<E::View> {
        each!(Self, self, rows => (rows.next_back().map(|&row| row.into())))
    }

    pub(super) fn nth(&mut self, n: usize) -> Option<E::View> {
        each!(Self, self, rows => (rows.nth(n).map(|&row| row.into())))
    }

    pub(super) fn len(&self) -> usize {
        each!(Self, self, rows => (rows.len()))
    }

    #[inline]
    pub(super) fn fold<B, F: FnMut(B, E::View) -> B>(self, init: B, mut f: F) -> B {
        each!(Self, self, rows => (rows.fold(init, |acc, &row| f(acc, row.into()))))
    }
}
