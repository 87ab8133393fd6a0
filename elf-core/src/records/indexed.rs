//! Relocations in packed forms by index, in storage of the caller.

use crate::records::crel::CrelIter;
use crate::records::relocations::{RelocationIter, Relocations};
use crate::views::record::Record;

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
