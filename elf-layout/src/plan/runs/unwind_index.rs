//! The index of Arm's unwinding tables (`.ARM.exidx`; EHABI32, "Index table entries"): one table, in the order of the code. A search in it
//! finds the last entry before an address: where code without entries follows, one says that it cannot be unwound
//! (`EXIDX_CANTUNWIND`), as linkers have it.

use crate::error::{Error, ErrorKind};
use crate::model::owner::{followed, section_of};
use crate::model::spans::{Group, Spans};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState};
use crate::model::unwind_index::{ENTRY, UnwindIndex};
use crate::plan::runs::key::{Gathers, is_gathered};
use core::num::NonZeroU32;
use elf_core::{File, SectionFlags};

/// A place of code: the group, and bytes from its start.
type Place = (u8, u64);

/// How far the sections of code in a group were gone through.
#[derive(Default)]
struct Cursor {
    group: u8,
    object: usize,
    section: u32,
}

/// Places a section, and gives the one behind it.
pub(super) type PlaceOne<'p> =
    dyn FnMut(NonZeroU32, &mut [SectionSlot], &mut Spans) -> Result<Option<NonZeroU32>, Error> + 'p;

/// The objects whose index is placed.
pub(super) struct Index<'p, 'a> {
    pub(super) files: &'p [File<'a>],
    pub(super) objects: &'p [ObjectSlot<'a>],
    pub(super) gathers: Gathers,
}

impl Index<'_, '_> {
    /// Places the sections of the index, from `first` to the one before `behind`, and room for the entries that are to be added.
    pub(super) fn place(
        &self,
        (first, behind): (NonZeroU32, Option<NonZeroU32>),
        group: Group,
        sections: &mut [SectionSlot],
        spans: &mut Spans,
        place_one: &mut PlaceOne<'_>,
    ) -> Result<UnwindIndex, Error> {
        let mut cursor = Cursor::default();
        let add = |spans: &mut Spans| {
            let room = spans.append(group, ENTRY, 4);
            room.ok_or_else(|| Error::object(0, ErrorKind::TooLarge))
        };
        // where the code ends that the entries so far are about, unless the last says that it cannot be unwound
        let mut end: Option<Place> = None;
        let mut at = Some(first);
        while let Some(number) = at.filter(|_| at != behind) {
            let code = self.code(number, sections);
            // code whose section is empty has no entries
            let is_empty = sections.get(number.get() as usize).is_some_and(|slot| slot.size == 0);
            if let Some((last, code)) = end.zip(code)
                && self.has_code(
                    &mut cursor,
                    last,
                    if is_empty { code.1 } else { code.0 },
                    sections,
                )
            {
                add(spans)?;
                end = None;
            }
            at = place_one(number, sections, spans)?;
            if let Some((_, last)) = code.filter(|_| !is_empty) {
                end = (!self.ends_in_cant_unwind(number)).then_some(last);
            }
        }
        if end.is_some() {
            add(spans)?;
        }
        Ok(UnwindIndex { first, behind, end: spans.group(group).size })
    }

    /// Where the code starts and ends that a section of the index is about; `None` if that is not loaded.
    fn code(&self, number: NonZeroU32, sections: &[SectionSlot]) -> Option<(Place, Place)> {
        let slot = followed(self.files, self.objects, sections, number)?;
        let SectionState::Placed(group) = slot.state else { return None };
        let group = group as u8;
        Some(((group, slot.offset), (group, slot.offset.saturating_add(slot.size))))
    }

    /// Whether some code lies from `end` on and before `start`, which may be in another group.
    fn has_code(
        &self,
        cursor: &mut Cursor,
        end: Place,
        start: Place,
        sections: &[SectionSlot],
    ) -> bool {
        for group in end.0..=start.0 {
            if cursor.group != group {
                *cursor = Cursor { group, ..Cursor::default() };
            }
            let from = if group == end.0 { end.1 } else { 0 };
            if let Some(offset) = self.next_code(cursor, from, sections) {
                return (group, offset) < start;
            }
        }
        false
    }

    /// Where the first code of the cursor's group lies from `from` on.
    fn next_code(&self, cursor: &mut Cursor, from: u64, sections: &[SectionSlot]) -> Option<u64> {
        while let Some(object) = self.objects.get(cursor.object) {
            if cursor.section >= object.section_count {
                (cursor.object, cursor.section) = (cursor.object.saturating_add(1), 0);
                continue;
            }
            let at = object.first_section.saturating_add(cursor.section as usize);
            let offset = sections.get(at).and_then(|slot| match slot.state {
                SectionState::Placed(group) if group as u8 == cursor.group && slot.size > 0 => {
                    Some(slot.offset)
                }
                _ => None,
            });
            // the others of a group stand in the order of the objects
            let is_code = || {
                let file = self.files.get(cursor.object)?;
                let header = file.section(cursor.section).ok()?;
                let is_code = header.flags.contains(SectionFlags::EXECINSTR);
                (is_code && !is_gathered(file, &header, self.gathers)).then_some(())
            };
            let offset = offset.filter(|offset| *offset >= from && is_code().is_some());
            if offset.is_some() {
                return offset;
            }
            cursor.section = cursor.section.wrapping_add(1);
        }
        None
    }

    /// Whether the last entry of a section says already that what follows cannot be unwound.
    fn ends_in_cant_unwind(&self, number: NonZeroU32) -> bool {
        let last = || {
            let (object, _, header) = section_of(self.files, self.objects, number)?;
            let file = self.files.get(object)?;
            let word = *file.section_data(&header).ok()?.last_chunk::<4>()?;
            Some(match file.encoding().is_big_endian() {
                true => u32::from_be_bytes(word),
                false => u32::from_le_bytes(word),
            })
        };
        last() == Some(1)
    }
}
