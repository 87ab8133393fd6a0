//! Relocations in packed forms: those of a section, and any of them by index.

use crate::android::AndroidPacked;
use crate::crel::{Crel, CrelIter};
use crate::error::Error;
use crate::file::File;
use crate::names::{
    EM_AARCH64, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR,
    SHT_CREL, SHT_RELR,
};
use crate::record::Record;
use crate::relocations::{RelocationIter, Relocations};
use crate::relr::{self, Relr};
use crate::section::SectionHeader;

impl<'a> File<'a> {
    #[inline(never)]
    pub(crate) fn packed_relocations(
        &self,
        section: SectionHeader,
    ) -> Result<Option<Relocations<'a>>, Error> {
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

impl<'a> Relocations<'a> {
    /// The records by index, at the cost of `len / stops.len()` steps each at most.
    ///
    /// Tables need no `stops`; those of packed forms are set here, in one pass.
    #[must_use]
    pub fn indexed<'s>(&self, stops: &'s mut [RelocationIter<'a>]) -> IndexedRelocations<'a, 's> {
        let step = match self {
            Self::Rela(_) | Self::Rel(_) => 0,
            #[cfg(feature = "mips64")]
            Self::Mips64ElRela(_) | Self::Mips64ElRel(_) => 0,
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

impl RelocationIter<'_> {
    /// No records: what storage for [`Relocations::indexed`] is filled with at first.
    pub const EMPTY: Self = Self::Crel(CrelIter::EMPTY);
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
