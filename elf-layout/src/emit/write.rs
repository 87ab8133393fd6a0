//! The image: sections copied, GOT and stubs filled, relocations applied.

use crate::emit::part::ImagePart;
use crate::emit::resolve::Symbols;
use crate::emit::section::Write;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::model::features::{INDIRECT_FUNCTIONS, LINKER_DEFINED, THREAD_LOCAL};
use crate::model::layout::Layout;
use crate::model::owner::owner;
use crate::model::relocations::{is_relocations, pass_over, target};
use crate::model::scan_result::header_size;
use crate::model::spans::Group;
use crate::model::storage::{GOT_SLOTS, Needs, SectionSlot, SectionState, SymbolSlot, SymbolState};
use crate::model::{stubs, tls};
use elf_core::names::{ET_DYN, SHT_NOBITS};
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Record, Role, SectionMut, Slot, Stub, StubRelocation,
    apply_kind, find,
};

impl<A: Arch> Layout<'_, '_, A> {
    /// Writes the image into `image`, to be run at address `base`, wherever `image` is now.
    ///
    /// Bytes of `image` behind the layout's [`size`](Self::size) are left alone; all others are written, zeros included.
    ///
    /// # Errors
    /// [`ErrorKind::Image`], [`ErrorKind::Base`] or [`ErrorKind::CodeOrder`] before anything is written; else what a relocation met, with the image half
    /// written: it must not be used.
    pub fn write(&self, image: &mut [u8], base: u64) -> Result<(), Error> {
        let mut part = ImagePart::whole(self.check_order(image, base)?, base);
        part.bytes.fill(0);
        self.write_part_of(&mut part)
    }

    /// The same into memory that is zero already, as fresh memory of an operating system: zeros are not written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_zeroed(&self, image: &mut [u8], base: u64) -> Result<(), Error> {
        let image = self.check_order(image, base)?;
        self.write_part_of(&mut ImagePart::whole(image, base))
    }

    /// Writes only the initial values of thread-local variables, for those who have to give them to threads before it is known where
    /// the threads have them. The rest of `image` is left alone.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_tls_block(&self, image: &mut [u8], base: u64) -> Result<(), Error> {
        let mut part = ImagePart::whole(self.check(image, base)?, base);
        if self.spans.group(Group::TlsData).size == 0 {
            return Ok(());
        }
        self.write_sections(&mut part, |slot| slot.state == SectionState::Placed(Group::TlsData))
    }

    /// The part of `image` that the layout fills, whose code has the byte order of the files.
    pub(super) fn check_order<'m>(
        &self,
        image: &'m mut [u8],
        base: u64,
    ) -> Result<&'m mut [u8], Error> {
        if self.is_big_endian() && self.found.processor & A::LITTLE_ENDIAN_CODE != 0 {
            return Err(Error::object(0, ErrorKind::CodeOrder));
        }
        self.check(image, base)
    }

    /// The part of `image` that the layout fills.
    pub(super) fn check<'m>(&self, image: &'m mut [u8], base: u64) -> Result<&'m mut [u8], Error> {
        let refuse = |kind| Error::object(0, kind);
        let alignment = self.alignment();
        let last = base.checked_add(self.size());
        let fits = match (A::ADDRESS_SIZE, last) {
            (4, Some(last)) => last <= 1 << 32,
            (_, last) => last.is_some(),
        };
        let own = self.options.base.is_none_or(|own| own == base);
        if !fits || !own || base & alignment.wrapping_sub(1) != 0 {
            return Err(refuse(ErrorKind::Base { base, alignment }));
        }
        let found = image.len() as u64;
        let size = usize::try_from(self.size()).ok();
        let image = size.and_then(|size| image.get_mut(..size));
        image.ok_or(refuse(ErrorKind::Image { found, needed: self.size() }))
    }

    /// Writes what a part has of the image.
    pub(super) fn write_part_of(&self, image: &mut ImagePart<'_>) -> Result<(), Error> {
        if LINKER_DEFINED {
            self.write_header(image);
            self.write_unwind_index(image)?;
        }
        let mut symbols = Symbols::new(self, 0, 0..self.symbols.len(), image.base);
        self.write_got(image, &symbols)?;
        symbols.is_stub = true;
        self.write_stubs(image, &symbols)?;
        self.write_sections(image, |_| true)
    }

    /// Writes what `__ehdr_start` means: an ELF header that names machine and ABI, without program headers. It is made of that of the
    /// first object, which has the same class.
    fn write_header(&self, image: &mut ImagePart<'_>) {
        let Some(((group, offset), file)) = self.found.header.zip(self.files.first()) else {
            return;
        };
        let size = header_size(A::ADDRESS_SIZE);
        let offset = self.spans.group(group).offset.wrapping_add(offset);
        let Some(place) = image.at(offset, size) else { return };
        let Some(own) = file.bytes().get(..place.len()) else { return };
        // e_ident to e_version; e_flags and e_ehsize are those of objects, too
        let flags = place.len().wrapping_sub(16);
        for kept in [0..24, flags..flags.wrapping_add(6)] {
            if let (Some(place), Some(own)) = (place.get_mut(kept.clone()), own.get(kept)) {
                place.copy_from_slice(own);
            }
        }
        let kind = if self.is_big_endian() { ET_DYN.to_be_bytes() } else { ET_DYN.to_le_bytes() };
        if let Some(place) = place.get_mut(16..18) {
            place.copy_from_slice(&kind);
        }
    }

    /// Copies sections and relocates them.
    fn write_sections(
        &self,
        image: &mut ImagePart<'_>,
        is_wanted: fn(&SectionSlot) -> bool,
    ) -> Result<(), Error> {
        // few objects have thread-local variables; where code is scarcer than time, all are gone through
        let has_none = |number: usize| {
            cfg!(target_pointer_width = "64") && !self.section_slots(number).iter().any(is_wanted)
        };
        for (number, file) in (0..usize::MAX).zip(self.files) {
            if has_none(number) {
                continue;
            }
            let first = self.objects.get(number).map_or(0, |object| object.first_section);
            let slots = self.sections.get(first..).unwrap_or_default();
            let mut slots = (0..u32::MAX).zip(slots);
            file.sections().try_for_each(|header| {
                let Some((index, slot)) = slots.next() else { return Ok(()) };
                // headers of what is elsewhere are not read
                let is_there = slot.size > 0 && is_wanted(slot);
                let Some(offset) = self.offset_of(slot).filter(|_| is_there) else {
                    return Ok(());
                };
                let Some(place) = image.at(offset, slot.size) else { return Ok(()) };
                if header.r#type == SHT_NOBITS {
                    return Ok(());
                }
                let data = file.section_data(&header).map_err(Error::elf(number, index))?;
                let edits = slot.edits::<A>(self.edits);
                if !edits.is_empty() {
                    edits.copy(data, place);
                } else if let Some(data) = data.get(..place.len()) {
                    // both have the section's size; asking for it again spares a check that could panic
                    place.copy_from_slice(data);
                }
                Ok(())
            })?;
        }
        let mut objects = (0..self.files.len()).filter(|number| !has_none(*number));
        objects.try_for_each(|number| self.relocate(number, image, is_wanted))
    }

    /// Applies all relocations of one object.
    fn relocate(
        &self,
        number: usize,
        image: &mut ImagePart<'_>,
        is_wanted: fn(&SectionSlot) -> bool,
    ) -> Result<(), Error> {
        let (Some(file), Some(object)) = (self.files.get(number), self.objects.get(number)) else {
            return Ok(());
        };
        let ids = object.first_symbol..object.first_symbol.saturating_add(object.symbol_count);
        let mut symbols = Symbols::new(self, number, ids, image.base);
        let big_endian = file.encoding().is_big_endian();
        let mut next = 0u32;
        file.sections().try_for_each(|header| {
            let index = next;
            next = index.wrapping_add(1);
            if !is_relocations(&header) {
                return Ok(());
            }
            if self.is_elsewhere(image, number, header.info) {
                return Ok(());
            }
            let Some(target) = target(number, index, &header, file, object, self.sections)? else {
                return Ok(());
            };
            let offset = self.offset_of(target.slot).filter(|_| is_wanted(target.slot));
            let Some(offset) = offset else { return Ok(()) };
            let base = image.base;
            let bytes = match target.slot.state {
                // its room is the next section's
                SectionState::Placed(Group::TlsZero) if THREAD_LOCAL => &mut [],
                _ => image.at(offset, target.slot.size).unwrap_or_default(),
            };
            let source = file.section(target.target).and_then(|header| file.section_data(&header));
            let source = source.map_err(Error::elf(number, target.target))?;
            symbols.is_unwinding = target.slot.unwinding;
            let mut pass = Write {
                section: SectionMut { bytes, address: base.wrapping_add(offset), big_endian },
                source,
                symbols: &symbols,
                number,
                index: target.target,
                edits: target.slot.edits::<A>(self.edits),
                flags: file.header().flags,
            };
            pass_over::<A>(&target.records, &mut pass)
        })
    }

    /// Fills the GOT.
    fn write_got(
        &self,
        image: &mut ImagePart<'_>,
        symbols: &Symbols<'_, '_, '_, A>,
    ) -> Result<(), Error> {
        let (base, (offset, size)) = (image.base, self.got());
        if size == 0 || !image.has(offset, size) {
            return Ok(());
        }
        for (id, slot) in self.special_definitions() {
            if INDIRECT_FUNCTIONS && slot.state == SymbolState::Replaceable {
                let offset = symbols.stub_entry(slot).wrapping_sub(base);
                self.store(image, offset, Slot::Address, [symbols.stub_target(slot), 0]);
            }
            for &(_, content) in GOT_SLOTS.iter().filter(|(need, _)| slot.needs.has(*need)) {
                let words = match content {
                    Slot::Address => symbols.pointer(slot).map(|address| [address, 0]),
                    content if THREAD_LOCAL => symbols.variable_entry(slot, content),
                    _ => None,
                };
                let words = words.ok_or_else(|| self.unresolved(id, content))?;
                if let Some(address) = symbols.got_entry(slot, content) {
                    self.store(image, address.wrapping_sub(base), content, words);
                }
            }
        }
        if THREAD_LOCAL && self.found.tls_module {
            let slot = SymbolSlot::default();
            let words = symbols.variable_entry(&slot, Slot::TlsLd);
            let words = words.ok_or_else(|| self.unresolved(0, Slot::TlsLd))?;
            self.store(image, self.got().0, Slot::TlsLd, words);
        }
        Ok(())
    }

    /// Stores a GOT entry of one or two words.
    fn store(&self, image: &mut ImagePart<'_>, offset: u64, content: Slot, words: [u64; 2]) {
        let size = content.entries().wrapping_mul(A::ADDRESS_SIZE);
        let Some(entry) = image.at(offset, size) else { return };
        let size = usize::try_from(A::ADDRESS_SIZE).unwrap_or(1).max(1);
        for (place, word) in entry.chunks_exact_mut(size).zip(words) {
            store_address(place, word, self.is_big_endian());
        }
    }

    /// Copies the stubs and points each at its symbol.
    fn write_stubs(
        &self,
        image: &mut ImagePart<'_>,
        symbols: &Symbols<'_, '_, '_, A>,
    ) -> Result<(), Error> {
        if self.stubs_size == 0 {
            return Ok(());
        }
        if let Some(call) = tls::call::<A>(&self.found) {
            symbols.runs(0).try_for_each(|at| self.write_stub(&call, 0, at, image, symbols))?;
        }
        for (id, slot) in self.special_definitions() {
            if !slot.needs.has(Needs::ANY_STUB) {
                continue;
            }
            for first in symbols.stub_runs(slot) {
                for (offset, stub) in stubs::of::<A>(slot.needs) {
                    self.write_stub(stub, id, first.wrapping_add(offset), image, symbols)?;
                }
            }
        }
        Ok(())
    }

    /// Copies a stub of symbol `id` to `address` and points it at the symbol.
    fn write_stub(
        &self,
        stub: &Stub,
        id: u32,
        address: u64,
        image: &mut ImagePart<'_>,
        symbols: &Symbols<'_, '_, '_, A>,
    ) -> Result<(), Error> {
        let offset = address.wrapping_sub(symbols.base);
        let Some(bytes) = image.at(offset, stub.size()) else { return Ok(()) };
        for (to, from) in bytes.iter_mut().zip(stub.code) {
            *to = *from;
        }
        let big_endian = self.is_big_endian();
        if A::HAS_STATES && big_endian && stub.unit > 0 {
            bytes.chunks_exact_mut(stub.unit).for_each(<[u8]>::reverse);
        }
        let mut section = SectionMut { bytes, address, big_endian };
        self.relocate_stub(stub, id, &mut section, symbols)
    }

    fn relocate_stub(
        &self,
        stub: &Stub,
        id: u32,
        section: &mut SectionMut<'_>,
        symbols: &Symbols<'_, '_, '_, A>,
    ) -> Result<(), Error> {
        let record = |it: &StubRelocation| Record {
            offset: it.offset,
            symbol: id,
            r#type: it.r#type,
            addend: Some(it.addend),
        };
        for relocation in stub.relocations {
            let labelled = |label| stub.relocations.iter().find(|it| it.offset == label);
            let partner = relocation.label.and_then(labelled).map(record);
            let record = record(relocation);
            let applied = match find(A::KINDS, record.r#type) {
                Some(kind) => apply_kind::<A>(kind, &record, partner.as_ref(), section, symbols),
                None => Err(ApplyError::new(&record, None, ApplyErrorKind::UnknownType)),
            };
            applied.map_err(|mut error| {
                let (object, symbol) = owner(self.objects, id).unwrap_or_default();
                error.symbol = symbol;
                Error::object(object, ErrorKind::Apply(error))
            })?;
        }
        Ok(())
    }

    /// Nobody knows what the GOT entry of a symbol would hold.
    #[cold]
    fn unresolved(&self, id: u32, content: Slot) -> Error {
        let (object, symbol) = owner(self.objects, id).unwrap_or_default();
        let kind = ApplyErrorKind::Unresolved(Role::Got(content));
        Error::object(
            object,
            ErrorKind::Apply(ApplyError { offset: 0, r#type: 0, name: None, symbol, kind }),
        )
    }
}

/// Stores an address of the place's size.
fn store_address(place: &mut [u8], value: u64, big_endian: bool) {
    let size = place.len();
    for (index, byte) in (0..usize::MAX).zip(place.iter_mut()) {
        let low = if big_endian { size.wrapping_sub(1).wrapping_sub(index) } else { index };
        *byte = value.unbounded_shr((low as u32).wrapping_mul(8)) as u8;
    }
}
