//! The entries that a layout adds to the index of Arm's unwinding tables: what follows cannot be unwound.

use crate::emit::part::ImagePart;
use crate::error::{Error, ErrorKind};
use crate::model::layout::Layout;
use crate::model::owner::followed;
use crate::model::spans::align_up;
use crate::model::storage::SectionState;
use crate::model::unwind_index::ENTRY;
use elf_core::{Arch, Check};

impl<A: Arch> Layout<'_, '_, A> {
    /// Writes an entry wherever there is room for one behind a section of the index: about what is behind the section's code.
    pub(super) fn write_unwind_index(&self, image: &mut ImagePart<'_>) -> Result<(), Error> {
        let Some(index) = self.found.unwind_index else { return Ok(()) };
        let mut at = Some(index.first);
        while let Some(number) = at.filter(|_| at != index.behind) {
            let Some(slot) = self.sections.get(number.get() as usize) else { break };
            at = slot.next;
            let SectionState::Placed(group) = slot.state else { continue };
            let next = at.filter(|_| at != index.behind);
            let next = next.and_then(|next| self.sections.get(next.get() as usize));
            let behind = next.map_or(index.end, |next| next.offset);
            let Some(own) = align_up(slot.offset.saturating_add(slot.size), 4) else { continue };
            if behind.checked_sub(own).is_none_or(|room| room < ENTRY) {
                continue;
            }
            let code = followed(self.files, self.objects, self.sections, number);
            let code = code.and_then(|code| self.offset_of(code)?.checked_add(code.size));
            let place = self.spans.group(group).offset.saturating_add(own);
            let Some((code, room)) = code.zip(image.at(place, ENTRY)) else { continue };
            let distance = code.wrapping_sub(place);
            if !Check::Signed(31).holds(distance) {
                return Err(Error::object(0, ErrorKind::TooLarge));
            }
            let words = [distance as u32 & 0x7fff_ffff, 1];
            for (place, word) in room.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                *place = match self.is_big_endian() {
                    true => word.to_be_bytes(),
                    false => word.to_le_bytes(),
                };
            }
        }
        Ok(())
    }
}
