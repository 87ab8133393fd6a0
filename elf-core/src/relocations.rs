//! The relocations of one section, in whatever form they are written.

#[cfg(feature = "packed-relocations")]
use crate::android::{AndroidPacked, AndroidPackedIter};
use crate::class::Encoding;
#[cfg(feature = "packed-relocations")]
use crate::crel::{Crel, CrelIter};
use crate::error::Error;
use crate::file::File;
use crate::names::{EM_MIPS, SHT_REL, SHT_RELA};
#[cfg(feature = "mips64")]
use crate::record::{Mips64ElRel, Mips64ElRela};
use crate::record::{Record, Rel, Rela};
#[cfg(feature = "packed-relocations")]
use crate::relr::{Relr, RelrIter};
use crate::section::SectionHeader;
use crate::table::{Table, TableIter, try_for_each};

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
        self.len() == 0
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

impl<'a> File<'a> {
    /// The relocations of a section of type `SHT_RELA`, `SHT_REL`, `SHT_RELR`, `SHT_CREL`, Android's or AArch64's forms of
    /// them; `None` for other types.
    ///
    /// `sh_info` is the section they apply to (in `ET_REL`), `sh_link` the symbol table they mean.
    ///
    /// # Errors
    /// As [`rows`](Self::rows); of packed forms [`ErrorKind::Outside`](crate::ErrorKind::Outside) or
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), as [`Crel::parse`] and [`AndroidPacked::parse`] say.
    #[inline]
    pub fn relocations(&self, section: &SectionHeader) -> Result<Option<Relocations<'a>>, Error> {
        let mips = self.header().machine == EM_MIPS && self.encoding() == Encoding::Elf64Le;
        Ok(Some(match section.r#type {
            #[cfg(feature = "mips64")]
            SHT_RELA if mips => Relocations::Mips64ElRela(self.rows(section)?),
            #[cfg(feature = "mips64")]
            SHT_REL if mips => Relocations::Mips64ElRel(self.rows(section)?),
            #[cfg(not(feature = "mips64"))]
            SHT_RELA | SHT_REL if mips => return Err(feature_off("mips64", section)),
            SHT_RELA => Relocations::Rela(self.rows(section)?),
            SHT_REL => Relocations::Rel(self.rows(section)?),
            _ => return self.packed_relocations(*section),
        }))
    }

    #[cfg(not(feature = "packed-relocations"))]
    fn packed_relocations(&self, section: SectionHeader) -> Result<Option<Relocations<'a>>, Error> {
        use crate::names::{
            EM_AARCH64, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR,
            SHT_CREL, SHT_RELR,
        };
        match section.r#type {
            SHT_AARCH64_AUTH_RELR if self.header().machine != EM_AARCH64 => Ok(None),
            SHT_RELR
            | SHT_ANDROID_RELR
            | SHT_AARCH64_AUTH_RELR
            | SHT_CREL
            | SHT_ANDROID_REL
            | SHT_ANDROID_RELA => Err(feature_off("packed-relocations", &section)),
            _ => Ok(None),
        }
    }
}

/// The relocations are of a form that is left out.
#[cfg(not(all(feature = "packed-relocations", feature = "mips64")))]
#[cold]
const fn feature_off(feature: &'static str, section: &SectionHeader) -> Error {
    Error { at: section.offset, kind: crate::ErrorKind::FeatureOff(feature) }
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
