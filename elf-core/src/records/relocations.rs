//! The relocations of one section, in whatever form they are written.

#[cfg(feature = "packed-relocations")]
use crate::records::android::{AndroidPacked, AndroidPackedIter};
#[cfg(feature = "packed-relocations")]
use crate::records::crel::{Crel, CrelIter};
#[cfg(feature = "packed-relocations")]
use crate::records::relr::{Relr, RelrIter};
#[cfg(feature = "mips64")]
use crate::records::rows::{Mips64ElRel, Mips64ElRela};
use crate::records::rows::{Rel, Rela};
use crate::table::rows::{Table, TableIter, try_for_each};
use crate::views::record::Record;

/// The relocations of one section.
///
/// Tables find a record by its index at once. The packed forms go there from the first one: a pass by index over all
/// of them should [iterate](Self::iter), or take an [`IndexedRelocations`](crate::IndexedRelocations).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Relocations<'a> {
    /// `SHT_RELA`: with addends.
    Rela(Table<'a, Rela>),
    /// `SHT_REL`: addends are at the places.
    Rel(Table<'a, Rel>),
    /// `SHT_RELA` of little-endian MIPS64.
    #[cfg(feature = "mips64")]
    Mips64ElRela(Table<'a, Mips64ElRela>),
    /// `SHT_REL` of little-endian MIPS64.
    #[cfg(feature = "mips64")]
    Mips64ElRel(Table<'a, Mips64ElRel>),
    /// `SHT_RELR`: relative ones.
    #[cfg(feature = "packed-relocations")]
    Relr(Relr<'a>),
    /// `SHT_CREL`: as differences.
    #[cfg(feature = "packed-relocations")]
    Crel(Crel<'a>),
    /// `SHT_ANDROID_REL` or `SHT_ANDROID_RELA`: in groups.
    #[cfg(feature = "packed-relocations")]
    Android(AndroidPacked<'a>),
}

/// Runs `$body` with `$form` as what `$value`, a `$type`, holds.
macro_rules! each {
    ($type:ident, $value:expr, $form:ident => $body:expr) => {
        match $value {
            $type::Rela($form) => $body,
            $type::Rel($form) => $body,
            #[cfg(feature = "mips64")]
            $type::Mips64ElRela($form) => $body,
            #[cfg(feature = "mips64")]
            $type::Mips64ElRel($form) => $body,
            #[cfg(feature = "packed-relocations")]
            $type::Relr($form) => $body,
            #[cfg(feature = "packed-relocations")]
            $type::Crel($form) => $body,
            #[cfg(feature = "packed-relocations")]
            $type::Android($form) => $body,
        }
    };
}

impl<'a> Relocations<'a> {
    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        each!(Self, self, form => form.len())
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        each!(Self, self, form => form.is_empty())
    }

    /// Record `index`. Packed forms read all that is before it.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Record> {
        match self {
            Self::Rela(table) => table.get(index),
            Self::Rel(table) => table.get(index),
            #[cfg(feature = "mips64")]
            Self::Mips64ElRela(table) => table.get(index),
            #[cfg(feature = "mips64")]
            Self::Mips64ElRel(table) => table.get(index),
            #[cfg(feature = "packed-relocations")]
            packed => packed.iter().nth(index),
        }
    }

    /// The records in order.
    #[must_use]
    pub fn iter(&self) -> RelocationIter<'a> {
        match self {
            Self::Rela(table) => RelocationIter::Rela(table.iter()),
            Self::Rel(table) => RelocationIter::Rel(table.iter()),
            #[cfg(feature = "mips64")]
            Self::Mips64ElRela(table) => RelocationIter::Mips64ElRela(table.iter()),
            #[cfg(feature = "mips64")]
            Self::Mips64ElRel(table) => RelocationIter::Mips64ElRel(table.iter()),
            #[cfg(feature = "packed-relocations")]
            Self::Relr(words) => RelocationIter::Relr(words.iter()),
            #[cfg(feature = "packed-relocations")]
            Self::Crel(packed) => RelocationIter::Crel(packed.iter()),
            #[cfg(feature = "packed-relocations")]
            Self::Android(packed) => RelocationIter::Android(packed.iter()),
        }
    }

    /// Calls `f` with every record in order, up to the first error: faster than a loop over [`iter`](Self::iter) for the form
    /// that most objects have.
    ///
    /// # Errors
    /// The first error of `f`.
    #[inline]
    pub fn try_for_each<E>(&self, f: impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        let native = match self {
            Self::Rela(table) => table.native(),
            _ => None,
        };
        try_for_each(native, self.iter(), f)
    }
}

impl<'a> IntoIterator for Relocations<'a> {
    type Item = Record;
    type IntoIter = RelocationIter<'a>;

    fn into_iter(self) -> RelocationIter<'a> {
        self.iter()
    }
}

/// The records of a section in order. Internal iteration asks for the form once, not for every record.
#[derive(Clone)]
#[non_exhaustive]
pub enum RelocationIter<'a> {
    /// Of `SHT_RELA`.
    Rela(TableIter<'a, Rela>),
    /// Of `SHT_REL`.
    Rel(TableIter<'a, Rel>),
    /// Of `SHT_RELA` of little-endian MIPS64.
    #[cfg(feature = "mips64")]
    Mips64ElRela(TableIter<'a, Mips64ElRela>),
    /// Of `SHT_REL` of little-endian MIPS64.
    #[cfg(feature = "mips64")]
    Mips64ElRel(TableIter<'a, Mips64ElRel>),
    /// Of `SHT_RELR`.
    #[cfg(feature = "packed-relocations")]
    Relr(RelrIter<'a>),
    /// Of `SHT_CREL`.
    #[cfg(feature = "packed-relocations")]
    Crel(CrelIter<'a>),
    /// Of `SHT_ANDROID_REL` or `SHT_ANDROID_RELA`.
    #[cfg(feature = "packed-relocations")]
    Android(AndroidPackedIter<'a>),
}

#[cfg(any(feature = "packed-relocations", feature = "mips64"))]
impl RelocationIter<'_> {
    /// `fold` of the forms that are rare: out of the way of the others.
    #[inline(never)]
    fn fold_rare<B, F: FnMut(B, Record) -> B>(self, init: B, f: F) -> B {
        each!(Self, self, iter => iter.fold(init, f))
    }
}

impl Iterator for RelocationIter<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        each!(Self, self, iter => iter.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        each!(Self, self, iter => iter.size_hint())
    }

    fn nth(&mut self, n: usize) -> Option<Record> {
        each!(Self, self, iter => iter.nth(n))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Record) -> B>(self, init: B, f: F) -> B {
        match self {
            Self::Rela(iter) => iter.fold(init, f),
            Self::Rel(iter) => iter.fold(init, f),
            #[cfg(any(feature = "packed-relocations", feature = "mips64"))]
            other => other.fold_rare(init, f),
        }
    }
}

impl ExactSizeIterator for RelocationIter<'_> {}
impl core::iter::FusedIterator for RelocationIter<'_> {}
