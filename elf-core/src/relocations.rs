//! The relocations of one section, in whatever form they are written.

use crate::android::{AndroidPacked, AndroidPackedIter};
use crate::class::Encoding;
use crate::crel::{Crel, CrelIter};
use crate::error::Error;
use crate::file::File;
use crate::names::{
    EM_AARCH64, EM_MIPS, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA,
    SHT_ANDROID_RELR, SHT_CREL, SHT_REL, SHT_RELA, SHT_RELR,
};
use crate::record::{Mips64ElRel, Mips64ElRela, Record, Rel, Rela};
use crate::relr::{self, Relr, RelrIter};
use crate::section::SectionHeader;
use crate::table::{Table, TableIter};

/// The relocations of one section.
///
/// Tables find a record by its index at once. The packed forms go there from the first one: a pass by index over all
/// of them should [iterate](Self::iter), or take an [`IndexedRelocations`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Relocations<'a> {
    /// `SHT_RELA`: with addends.
    Rela(Table<'a, Rela>),
    /// `SHT_REL`: addends are at the places.
    Rel(Table<'a, Rel>),
    /// `SHT_RELA` of little-endian MIPS64.
    Mips64ElRela(Table<'a, Mips64ElRela>),
    /// `SHT_REL` of little-endian MIPS64.
    Mips64ElRel(Table<'a, Mips64ElRel>),
    /// `SHT_RELR`: relative ones.
    Relr(Relr<'a>),
    /// `SHT_CREL`: as differences.
    Crel(Crel<'a>),
    /// `SHT_ANDROID_REL` or `SHT_ANDROID_RELA`: in groups.
    Android(AndroidPacked<'a>),
}

/// Runs `$body` with `$form` as what `$value`, a `$type`, holds.
macro_rules! each {
    ($type:ident, $value:expr, $form:ident => $body:expr) => {
        match $value {
            $type::Rela($form) => $body,
            $type::Rel($form) => $body,
            $type::Mips64ElRela($form) => $body,
            $type::Mips64ElRel($form) => $body,
            $type::Relr($form) => $body,
            $type::Crel($form) => $body,
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
            Self::Mips64ElRela(table) => table.get(index),
            Self::Mips64ElRel(table) => table.get(index),
            packed => packed.iter().nth(index),
        }
    }

    /// The records in order.
    #[must_use]
    pub fn iter(&self) -> RelocationIter<'a> {
        match self {
            Self::Rela(table) => RelocationIter::Rela(table.iter()),
            Self::Rel(table) => RelocationIter::Rel(table.iter()),
            Self::Mips64ElRela(table) => RelocationIter::Mips64ElRela(table.iter()),
            Self::Mips64ElRel(table) => RelocationIter::Mips64ElRel(table.iter()),
            Self::Relr(words) => RelocationIter::Relr(words.iter()),
            Self::Crel(packed) => RelocationIter::Crel(packed.iter()),
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
        match self {
            Self::Rela(table) => table.try_for_each(f),
            other => other.iter().try_for_each(f),
        }
    }

    /// The records by index, at the cost of `len / stops.len()` steps each at most.
    ///
    /// Tables need no `stops`; those of packed forms are set here, in one pass.
    #[must_use]
    pub fn indexed<'s>(&self, stops: &'s mut [RelocationIter<'a>]) -> IndexedRelocations<'a, 's> {
        let step = match self {
            Self::Rela(_) | Self::Rel(_) | Self::Mips64ElRela(_) | Self::Mips64ElRel(_) => 0,
            packed => {
                packed.len().checked_div(stops.len()).map_or(0, |step| step.saturating_add(1))
            }
        };
        let mut iter = self.iter();
        if let Some(skip) = step.checked_sub(1) {
            for stop in stops.iter_mut() {
                *stop = iter.clone();
                iter.nth(skip);
            }
        }
        IndexedRelocations { relocations: *self, stops, step }
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
            SHT_RELA if mips => Relocations::Mips64ElRela(self.rows(section)?),
            SHT_REL if mips => Relocations::Mips64ElRel(self.rows(section)?),
            SHT_RELA => Relocations::Rela(self.rows(section)?),
            SHT_REL => Relocations::Rel(self.rows(section)?),
            _ => return self.packed_relocations(*section),
        }))
    }

    #[inline(never)]
    fn packed_relocations(&self, section: SectionHeader) -> Result<Option<Relocations<'a>>, Error> {
        let (machine, is_64) = (self.header().machine, self.encoding().is_64());
        Ok(Some(match section.r#type {
            SHT_RELR | SHT_ANDROID_RELR => {
                self.relr(&section, relr::relative_type(machine, is_64))?
            }
            SHT_AARCH64_AUTH_RELR if machine == EM_AARCH64 => {
                self.relr(&section, relr::AARCH64_AUTH_RELATIVE)?
            }
            SHT_CREL => {
                Relocations::Crel(Crel::parse(self.section_data(&section)?, is_64, section.offset)?)
            }
            SHT_ANDROID_REL | SHT_ANDROID_RELA => {
                // Each relocation has a place of its own, most of them in the file.
                let (data, limit) = (self.section_data(&section)?, self.bytes().len());
                let has_addends = section.r#type == SHT_ANDROID_RELA;
                Relocations::Android(AndroidPacked::parse(
                    data,
                    has_addends,
                    is_64,
                    limit,
                    section.offset,
                )?)
            }
            _ => return Ok(None),
        }))
    }

    fn relr(&self, section: &SectionHeader, r#type: u32) -> Result<Relocations<'a>, Error> {
        let relr = Relr::new(self.rows(section)?, self.encoding().is_64(), r#type, section.offset)?;
        Ok(Relocations::Relr(relr))
    }
}

impl<'a> IntoIterator for Relocations<'a> {
    type Item = Record;
    type IntoIter = RelocationIter<'a>;

    fn into_iter(self) -> RelocationIter<'a> {
        self.iter()
    }
}

/// The relocations of one section by index, in storage of the caller: see [`Relocations::indexed`].
///
/// ```
/// # fn f(relocations: elf_core::Relocations<'_>) {
/// let mut stops = [const { elf_core::RelocationIter::EMPTY }; 64];
/// let indexed = relocations.indexed(&mut stops);
/// assert_eq!(indexed.get(1000), relocations.get(1000));
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct IndexedRelocations<'a, 's> {
    relocations: Relocations<'a>,
    /// Iterators, `step` records apart; none if `step` is 0.
    stops: &'s [RelocationIter<'a>],
    step: usize,
}

impl IndexedRelocations<'_, '_> {
    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.relocations.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Record> {
        match index.checked_div(self.step).zip(index.checked_rem(self.step)) {
            None => self.relocations.get(index),
            Some((stop, rest)) => self.stops.get(stop)?.clone().nth(rest),
        }
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
    Mips64ElRela(TableIter<'a, Mips64ElRela>),
    /// Of `SHT_REL` of little-endian MIPS64.
    Mips64ElRel(TableIter<'a, Mips64ElRel>),
    /// Of `SHT_RELR`.
    Relr(RelrIter<'a>),
    /// Of `SHT_CREL`.
    Crel(CrelIter<'a>),
    /// Of `SHT_ANDROID_REL` or `SHT_ANDROID_RELA`.
    Android(AndroidPackedIter<'a>),
}

impl RelocationIter<'_> {
    /// No records: what storage for [`Relocations::indexed`] is filled with at first.
    pub const EMPTY: Self = Self::Crel(CrelIter::EMPTY);

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
            other => other.fold_rare(init, f),
        }
    }
}

impl ExactSizeIterator for RelocationIter<'_> {}
impl core::iter::FusedIterator for RelocationIter<'_> {}
