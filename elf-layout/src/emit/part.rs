//! A part of an image.

use crate::model::features::PARTS;
use crate::model::layout::Layout;
use crate::model::spans::Group;
use crate::model::storage::SectionState;
use elf_core::Arch;

/// A part of an image: [`Layout::write_part`] writes what stands in it, [`Layout::parts`] cuts.
#[derive(Debug)]
#[cfg_attr(not(feature = "parts"), expect(unreachable_pub, reason = "public with the feature"))]
pub struct ImagePart<'m> {
    pub(super) bytes: &'m mut [u8],
    /// Where it is in the image, in bytes from its start.
    pub(super) start: u64,
    /// The address that the image, not the part, is to have.
    pub(super) base: u64,
}

impl<'m> ImagePart<'m> {
    /// All of the image.
    pub(super) const fn whole(bytes: &'m mut [u8], base: u64) -> Self {
        Self { bytes, start: 0, base }
    }

    /// `size` bytes of the image at `offset`, if this part has them.
    pub(super) fn at(&mut self, offset: u64, size: u64) -> Option<&mut [u8]> {
        let offset = if PARTS { offset.checked_sub(self.start)? } else { offset };
        part(self.bytes, offset, size)
    }

    /// Whether any of `size` bytes of the image at `offset` is in this part.
    pub(super) fn has(&self, offset: u64, size: u64) -> bool {
        let end = self.start.saturating_add(self.bytes.len() as u64);
        !PARTS || offset < end && self.start < offset.saturating_add(size)
    }
}

/// `size` bytes at `offset`.
pub(super) fn part(bytes: &mut [u8], offset: u64, size: u64) -> Option<&mut [u8]> {
    let start = usize::try_from(offset).ok()?;
    let size = usize::try_from(size).ok()?;
    bytes.get_mut(start..)?.get_mut(..size)
}

impl<A: Arch> Layout<'_, '_, A> {
    /// Whether section `section` of object `object` is in another part than this one.
    pub(super) fn is_elsewhere(&self, part: &ImagePart<'_>, object: usize, section: u32) -> bool {
        if !PARTS || part.bytes.len() as u64 == self.size() {
            return false;
        }
        let Some(slot) = self.section_slot(object, section).filter(|slot| slot.size > 0) else {
            return false;
        };
        let is_there = slot.state != SectionState::Placed(Group::TlsZero);
        let offset = self.offset_of(slot).filter(|_| is_there);
        offset.is_some_and(|offset| !part.has(offset, slot.size))
    }
}
