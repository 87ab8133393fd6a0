//! A layout: every section, symbol, GOT entry and stub has its place. Planned in `plan`, written in `emit`.

use crate::error::{Error, ErrorKind};
use crate::model::edits::Edit;
use crate::model::fixed::Fixed;
use crate::model::options::Options;
use crate::model::scan_result::ScanResult;
use crate::model::spans::{Group, Segment, Spans};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState, SymbolSlot};
use crate::model::thunks::ThunkSections;
use crate::model::tls::{self, StaticTlsBlock};
use core::marker::PhantomData;
use elf_core::{Arch, File};

/// Where everything goes: addresses as offsets from the start of an image whose own address may still be open.
#[derive(Debug)]
pub struct Layout<'a, 's, A> {
    pub(crate) files: &'s [File<'a>],
    pub(crate) objects: &'s [ObjectSlot<'a>],
    pub(crate) sections: &'s [SectionSlot],
    pub(crate) symbols: &'s [SymbolSlot],
    pub(crate) options: Options,
    pub(crate) spans: Spans,
    pub(crate) found: ScanResult,
    pub(crate) fixed: Fixed,
    /// Size of all stubs in bytes.
    pub(crate) stubs_size: u64,
    pub(crate) static_tls_block: Option<StaticTlsBlock>,
    pub(crate) thunks: ThunkSections,
    pub(crate) edits: &'s [Edit],
    /// Number of the symbol that means where the global pointer is, if code may count from there.
    pub(crate) global_pointer: Option<u32>,
    pub(crate) arch: PhantomData<A>,
}

impl<'a, 's, A: Arch> Layout<'a, 's, A> {
    /// Offset of a section from the start of the image, if it is loaded.
    #[inline]
    pub(crate) fn offset_of(&self, slot: &SectionSlot) -> Option<u64> {
        match slot.state {
            SectionState::Placed(group) => {
                Some(self.spans.group(group).offset.wrapping_add(slot.offset))
            }
            SectionState::NotLoaded | SectionState::Discarded => None,
        }
    }

    /// What the caller decided.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The objects that were laid out.
    #[must_use]
    pub const fn files(&self) -> &'s [File<'a>] {
        self.files
    }

    /// Whether data are big-endian.
    pub(crate) fn is_big_endian(&self) -> bool {
        self.files.first().is_some_and(|file| file.encoding().is_big_endian())
    }

    /// Size of the image in bytes: sections, GOT, stubs and the zeros at its end.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.spans.size
    }

    /// Alignment that the image's address must have, in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.spans.alignment
    }

    /// First address that the image may not reach, if its code has room for low addresses only: 2 GiB for objects that are
    /// compiled without `-fPIC`. Large data at the end of the image (`SHF_X86_64_LARGE`) may reach beyond that.
    #[must_use]
    pub const fn limit(&self) -> Option<u64> {
        match self.found.limit {
            Some(limit) => Some(limit.saturating_add(self.spans.large)),
            None => None,
        }
    }

    /// The parts of the image by permission, in order, apart and on pages of their own. Sections that carry an address are
    /// not among them.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.spans.segments()
    }

    /// Gives every segment another place in the image: `place` is asked for its offset, in the order of the image. The image is then as
    /// large as the last end; what is between segments is not written, and may belong to other images.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] if `place` gives none, or no multiple of the [`alignment`](Self::alignment), or more than
    /// [`Options::spread`] together. The layout is then of no use any more.
    pub fn place_segments(
        &mut self,
        place: impl FnMut(Segment) -> Option<u64>,
    ) -> Result<(), Error> {
        self.spans.move_segments(place)?;
        if self.spans.size > self.options.spread {
            return Err(Error::object(0, ErrorKind::TooLarge));
        }
        Ok(())
    }

    /// The GOT: its offset from the start of the image and its size in bytes.
    #[must_use]
    pub fn got(&self) -> (u64, u64) {
        let span = self.spans.group(Group::Got);
        (span.offset, span.size)
    }

    /// Offset of what `__dso_handle` means from the start of the image, if the objects ask for it and none defines it: a word that
    /// holds its own address. `__cxa_atexit` knows by that address whose destructors it is given.
    #[must_use]
    pub fn dso_handle(&self) -> Option<u64> {
        let start = self.spans.group(Group::Got).offset;
        self.found.handle.map(|offset| start.wrapping_add(offset))
    }

    /// Offset of section `section` of object `object` from the start of the image; `None` if it is not loaded.
    #[must_use]
    pub fn section(&self, object: usize, section: u32) -> Option<u64> {
        self.offset_of(self.section_slot(object, section)?)
    }

    pub(crate) fn section_slot(&self, object: usize, section: u32) -> Option<&SectionSlot> {
        let object = self.objects.get(object)?;
        let at = object
            .first_section
            .checked_add(section as usize)
            .filter(|_| section < object.section_count)?;
        self.sections.get(at)
    }

    /// The slots of the sections of object `object`.
    pub(crate) fn section_slots(&self, object: usize) -> &[SectionSlot] {
        let of = |object: &ObjectSlot<'_>| {
            let slots = self.sections.get(object.first_section..)?;
            slots.get(..object.section_count as usize)
        };
        self.objects.get(object).and_then(of).unwrap_or_default()
    }

    /// Definitions that the image has a GOT entry, a stub or a copy for, among others, with their numbers.
    pub(crate) fn special_definitions(&self) -> impl Iterator<Item = (u32, &SymbolSlot)> {
        self.found.special.of(self.symbols).filter(|(id, slot)| slot.definition == *id)
    }

    pub(crate) fn slot(&self, object: usize, symbol: u32) -> Option<&SymbolSlot> {
        let object = self.objects.get(object)?;
        let index = usize::try_from(symbol).ok().filter(|&index| index < object.symbol_count)?;
        self.symbols.get(object.first_symbol.checked_add(index)?)
    }

    /// A variable's offset in the block.
    pub(crate) fn block_offset(&self, slot: &SymbolSlot) -> Option<u64> {
        tls::block_offset(&self.spans, slot)
    }
}
