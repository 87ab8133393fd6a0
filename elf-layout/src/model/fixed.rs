//! Sections at addresses of their own, by rising address.

use crate::error::{Error, ErrorKind};
use crate::model::list::{Nodes, sort};
use crate::model::options::Options;
use crate::model::storage::{ObjectSlot, SectionSlot};
use core::num::NonZeroU32;

/// Sections at addresses of their own, as a list that runs through their slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fixed {
    first: Option<NonZeroU32>,
    last: Option<NonZeroU32>,
    /// Some section starts before one that came earlier.
    unsorted: bool,
}

impl Fixed {
    /// Enters section `at` as the last.
    pub(crate) fn append(&mut self, at: usize, sections: &mut [SectionSlot]) -> Option<()> {
        let number = u32::try_from(at).ok().and_then(NonZeroU32::new)?;
        let new = key(sections, number);
        match self.last {
            None => self.first = Some(number),
            Some(last) => {
                self.unsorted |= new < key(sections, last);
                sections.get_mut(last.get() as usize)?.next = Some(number);
            }
        }
        self.last = Some(number);
        Some(())
    }

    /// Brings the sections into the order of their addresses, now that all are there.
    ///
    /// # Errors
    /// [`ErrorKind::Overlap`] of two that overlap, for the one that came later. What is empty overlaps nothing.
    pub(crate) fn finish(
        &mut self,
        objects: &[ObjectSlot<'_>],
        sections: &mut [SectionSlot],
        options: &Options,
    ) -> Result<(), Error> {
        if !cfg!(feature = "addresses") {
            return Ok(());
        }
        if self.unsorted {
            self.first = sort(self.first, &mut ByAddress(sections));
        }
        let (mut end, mut owner) = (0, 0);
        for at in self.iter(sections) {
            let Some(slot) = sections.get(at).filter(|slot| slot.size > 0) else { continue };
            if slot.offset < end {
                return Err(overlap(at.max(owner), objects, sections, options));
            }
            (end, owner) = (slot.end(), at);
        }
        Ok(())
    }

    /// Numbers of the sections, once [`finish`](Self::finish)ed by rising address.
    pub(crate) fn iter(self, sections: &[SectionSlot]) -> impl Iterator<Item = usize> + '_ {
        let next = |&number: &NonZeroU32| slot(sections, number).and_then(|slot| slot.next);
        core::iter::successors(self.first, next).map(|number| number.get() as usize)
    }
}

impl SectionSlot {
    /// End of the section, which fits 64 bits.
    const fn end(&self) -> u64 {
        self.offset.wrapping_add(self.size)
    }
}

fn slot(sections: &[SectionSlot], number: NonZeroU32) -> Option<SectionSlot> {
    sections.get(number.get() as usize).copied()
}

/// By what sections are ordered: of those at one address the empty ones come first.
fn key(sections: &[SectionSlot], number: NonZeroU32) -> (u64, u64) {
    slot(sections, number).map_or((0, 0), |slot| (slot.offset, slot.size))
}

/// The slots as a list by address.
struct ByAddress<'s>(&'s mut [SectionSlot]);

impl Nodes for ByAddress<'_> {
    fn next(&self, number: NonZeroU32) -> Option<NonZeroU32> {
        slot(self.0, number).and_then(|slot| slot.next)
    }

    fn set_next(&mut self, number: NonZeroU32, next: Option<NonZeroU32>) {
        if let Some(slot) = self.0.get_mut(number.get() as usize) {
            slot.next = next;
        }
    }

    fn is_before(&self, first: NonZeroU32, second: NonZeroU32) -> bool {
        key(self.0, first) < key(self.0, second)
    }
}

/// Section `at`, of all, overlaps another.
#[cold]
fn overlap(
    at: usize,
    objects: &[ObjectSlot<'_>],
    sections: &[SectionSlot],
    options: &Options,
) -> Error {
    let number = objects.partition_point(|object| object.first_section <= at).saturating_sub(1);
    let first = objects.get(number).map_or(0, |object| object.first_section);
    let offset = sections.get(at).map_or(0, |slot| slot.offset);
    let address = offset.wrapping_add(options.base.unwrap_or(0));
    let section = at.saturating_sub(first) as u32;
    Error { object: number, section, kind: ErrorKind::Overlap { address } }
}
