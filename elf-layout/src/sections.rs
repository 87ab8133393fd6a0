//! Every section to its group, or to the address it carries.

use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::place::{Spans, alignment_of, group_of};
use crate::storage::{ObjectSlot, SectionSlot, SectionState};
use core::num::NonZeroU32;
use elf_core::File;

/// Sections at addresses of their own, as a list by rising address that runs through their slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fixed {
    first: Option<NonZeroU32>,
    last: Option<NonZeroU32>,
}

/// Appends every section of one object that occupies memory to its group.
pub(crate) fn place(
    number: usize,
    file: &File<'_>,
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    options: &Options,
    spans: &mut Spans,
    fixed: &mut Fixed,
) -> Result<(), Error> {
    let first = objects.get(number).map_or(0, |object| object.first_section);
    for (index, header) in (0..u32::MAX).zip(file.sections()) {
        let at = first.saturating_add(index as usize);
        let Some(slot) = sections.get_mut(at) else { continue };
        let Some(group) = group_of(&header, options).filter(|_| slot.state != SectionState::Dropped) else { continue };
        let error = |kind| Error { object: number, section: index, kind };
        let alignment = alignment_of(&header, options).map_err(error)?;
        if header.address == 0 {
            slot.offset = spans.append(group, header.size, alignment).map_err(error)?;
            slot.state = SectionState::Placed(group);
        } else {
            let overlap = error(ErrorKind::Overlap { address: header.address });
            let offset = header.address.checked_sub(options.base.unwrap_or(0)).ok_or(overlap)?;
            let end = offset.checked_add(header.size).ok_or(error(ErrorKind::TooLarge))?;
            *slot = SectionSlot { offset, end, state: SectionState::Fixed, next: None };
            spans.fixed_end = spans.fixed_end.max(end);
            fixed.insert(at, sections).ok_or(overlap)?;
        }
    }
    Ok(())
}

impl Fixed {
    /// Enters section `at` behind all that start before it. `None` if it overlaps one.
    fn insert(&mut self, at: usize, sections: &mut [SectionSlot]) -> Option<()> {
        let number = u32::try_from(at).ok().and_then(NonZeroU32::new)?;
        let new = *sections.get(at)?;
        // most files have them in order: look at the last one first
        let append = self.last.and_then(|last| slot(sections, last)).is_none_or(|last| last.offset <= new.offset);
        let (mut before, mut after) = if append { (self.last, None) } else { (None, self.first) };
        while let Some(next) = after.and_then(|number| slot(sections, number)).filter(|next| next.offset < new.offset) {
            before = after;
            after = next.next;
        }
        let clear_before = before.and_then(|number| slot(sections, number)).is_none_or(|slot| slot.end <= new.offset);
        let clear_after = after.and_then(|number| slot(sections, number)).is_none_or(|slot| new.end <= slot.offset);
        if !(clear_before && clear_after) {
            return None;
        }
        sections.get_mut(at)?.next = after;
        match before {
            Some(before) => sections.get_mut(before.get() as usize)?.next = Some(number),
            None => self.first = Some(number),
        }
        if after.is_none() {
            self.last = Some(number);
        }
        Some(())
    }

    /// Numbers of the sections, by rising address.
    pub(crate) fn iter(self, sections: &[SectionSlot]) -> impl Iterator<Item = usize> + '_ {
        let next = |&number: &NonZeroU32| slot(sections, number).and_then(|slot| slot.next);
        core::iter::successors(self.first, next).map(|number| number.get() as usize)
    }
}

fn slot(sections: &[SectionSlot], number: NonZeroU32) -> Option<SectionSlot> {
    sections.get(number.get() as usize).copied()
}
