//! Every section to its group, or to the address it carries.

use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::place::{Group, Spans, alignment_of, group_of};
use crate::storage::{ObjectSlot, SectionSlot, SectionState};
use core::num::NonZeroU32;
use elf_core::{File, SectionFlags, SectionHeader};

/// Sections at addresses of their own, as a list by rising address that runs through their slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fixed {
    first: Option<NonZeroU32>,
    last: Option<NonZeroU32>,
}

/// Appends every section of one object that occupies memory to its group; those that are dropped already stay so.
pub(crate) fn place(
    number: usize,
    file: &File<'_>,
    object: &ObjectSlot<'_>,
    sections: &mut [SectionSlot],
    options: &Options,
    (spans, fixed): (&mut Spans, &mut Fixed),
    grouped: bool,
) -> Result<(), Error> {
    let first = object.first_section;
    let mut next = 0u32;
    file.sections().try_for_each(|header| {
        let index = next;
        next = index.wrapping_add(1);
        let at = first.saturating_add(index as usize);
        let Some(slot) = sections.get_mut(at) else { return Ok(()) };
        if grouped && slot.state == SectionState::Dropped {
            return Ok(());
        }
        *slot = SectionSlot { size: header.size, ..SectionSlot::default() };
        let Some(group) = group_of(&header, options) else { return Ok(()) };
        let error = |kind| Error { object: number, section: index, kind };
        let alignment = alignment_of(&header, options).map_err(error)?;
        if header.address == 0 {
            slot.unwinding = is_unwinding(file, &header);
            // a length of 0 ends unwinding tables (LSB, "Exception Frames"): linkers add it
            let room = if slot.unwinding { header.size.saturating_add(4) } else { header.size };
            slot.offset = spans.append(group, room, alignment).map_err(error)?;
            slot.state = SectionState::Placed(group);
        } else {
            let overlap = error(ErrorKind::Overlap { address: header.address });
            slot.offset = header.address.checked_sub(options.base.unwrap_or(0)).ok_or(overlap)?;
            slot.state = SectionState::Placed(Group::Fixed);
            let end = slot.offset.checked_add(header.size).ok_or(error(ErrorKind::TooLarge))?;
            spans.fixed_end = spans.fixed_end.max(end);
            fixed.insert(at, sections).ok_or(overlap)?;
        }
        Ok(())
    })
}

/// Whether a section tells how to unwind.
fn is_unwinding(file: &File<'_>, header: &SectionHeader) -> bool {
    let constant = header.flags & (ALLOC | WRITE | EXECINSTR) == ALLOC;
    constant && file.section_name(header).is_ok_and(|name| name == ".eh_frame")
}

const ALLOC: SectionFlags = SectionFlags::ALLOC;
const WRITE: SectionFlags = SectionFlags::WRITE;
const EXECINSTR: SectionFlags = SectionFlags::EXECINSTR;

impl Fixed {
    /// Enters section `at` behind all that start before it. `None` if it overlaps one.
    fn insert(&mut self, at: usize, sections: &mut [SectionSlot]) -> Option<()> {
        let number = u32::try_from(at).ok().and_then(NonZeroU32::new)?;
        let new = *sections.get(at)?;
        // most files have them in order: look at the last one first
        let append = self
            .last
            .and_then(|last| slot(sections, last))
            .is_none_or(|last| last.offset <= new.offset);
        let (mut before, mut after) = if append { (self.last, None) } else { (None, self.first) };
        while let Some(next) =
            after.and_then(|number| slot(sections, number)).filter(|next| next.offset < new.offset)
        {
            before = after;
            after = next.next;
        }
        let clear_before = before
            .and_then(|number| slot(sections, number))
            .is_none_or(|slot| slot.end() <= new.offset);
        let clear_after = after
            .and_then(|number| slot(sections, number))
            .is_none_or(|slot| new.end() <= slot.offset);
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

impl SectionSlot {
    /// End of the section, which fits 64 bits.
    const fn end(&self) -> u64 {
        self.offset.wrapping_add(self.size)
    }
}

fn slot(sections: &[SectionSlot], number: NonZeroU32) -> Option<SectionSlot> {
    sections.get(number.get() as usize).copied()
}
