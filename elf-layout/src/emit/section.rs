//! A section while it is written: what is decided about each record.

use crate::emit::resolve::Symbols;
use crate::error::{Error, ErrorKind};
use crate::model::edits::{Edit, Edits, Spot, may_shrink};
use crate::model::features::THREAD_LOCAL;
use crate::model::relocations::label;
use crate::model::spans::Group;
use crate::model::storage::SymbolSlot;
use crate::model::surroundings::Surroundings;
use crate::model::tls;
use elf_core::{
    Addresses, ApplyError, ApplyErrorKind, Arch, Decision, Facts, GotLoad, Kind, Padding, Pass,
    Reach, Record, Rewrite, SectionMut, Special, apply_got_load, apply_kind, apply_rewrite,
};

/// Writes what is decided of a section of the file into the image.
pub(super) struct Write<'w, 'l, 'a, 's, 'm, A> {
    pub(super) section: SectionMut<'m>,
    /// The section's bytes in the file.
    pub(super) source: &'w [u8],
    pub(super) symbols: &'w Symbols<'l, 'a, 's, A>,
    /// The object.
    pub(super) number: usize,
    /// The section's index.
    pub(super) index: u32,
    pub(super) edits: Edits<'w>,
    /// `e_flags` of the object.
    pub(super) flags: u32,
}

impl<A: Arch> Facts for Write<'_, '_, '_, '_, '_, A> {
    #[inline]
    fn relaxes(&self) -> bool {
        self.symbols.layout.found.bounds.relaxes()
    }

    #[inline]
    fn reach(&self, record: &Record) -> Option<Reach> {
        let bounds = &self.symbols.layout.found.bounds;
        if !bounds.relaxes() {
            return None;
        }
        let slot = self.symbols.slots.get(record.symbol as usize)?;
        let place = self.place(record);
        let distance = self.symbols.address(slot).map(|address| address.wrapping_sub(place) as i64);
        bounds.reach_at::<A>(slot, distance)
    }

    fn addresses(&self, record: &Record) -> Option<Addresses> {
        if !may_shrink::<A>() || self.edits.is_empty() {
            return None;
        }
        let Symbols { layout, .. } = *self.symbols;
        let slot = self.symbols.slots.get(record.symbol as usize)?;
        let of = |slot: &SymbolSlot| self.symbols.bases.of(slot.group).wrapping_add(slot.value);
        let global_pointer = layout.global_pointer.and_then(|id| layout.symbols.get(id as usize));
        let block = layout.static_tls_block.filter(|_| layout.options.executable);
        let surroundings = Surroundings {
            objects: layout.objects,
            options: &layout.options,
            global_pointer: global_pointer.map(of),
            got: self.symbols.bases.of(Group::Got),
            block: block.and_then(|block| block.tp_offset),
            flags: self.flags,
        };
        let variable = layout.block_offset(slot);
        surroundings.addresses::<A>(slot, of(slot), variable, self.place(record))
    }

    fn may_go(&self, record: &Record) -> bool {
        may_shrink::<A>() && self.edits.at(record.offset).is_some_and(|edit| !edit.stays)
    }

    fn is_local_exec(&self, record: &Record) -> bool {
        let access = self.symbols.layout.options.thread_local;
        let slot = self.symbols.slots.get(record.symbol as usize);
        slot.is_some_and(|slot| tls::is_local_exec(slot, access))
    }

    fn is_thread_local(&self, record: &Record) -> bool {
        self.symbols.slots.get(record.symbol as usize).is_some_and(tls::is_variable)
    }

    fn label(&self, record: &Record) -> Option<u64> {
        let object = self.symbols.layout.objects.get(self.symbols.object)?;
        label(object, self.index, record)
    }
}

impl<A: Arch> Pass for Write<'_, '_, '_, '_, '_, A> {
    type Error = Error;

    #[cold]
    fn failed(&self, error: ApplyError) -> Error {
        Error { object: self.number, section: self.index, kind: ErrorKind::Apply(error) }
    }

    #[inline]
    fn bytes(&self) -> Result<&[u8], Error> {
        Ok(self.source)
    }

    #[inline]
    fn decided(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), Error> {
        let written = if self.is_edited() {
            self.write_edited(kind, record, &decision)
        } else {
            self.write(kind, record, &decision)
        };
        written.map_err(|error| self.failed(error))
    }

    #[inline(always)]
    fn applied(&mut self, kind: &'static Kind, record: &Record) -> Result<(), Error> {
        // a marker is seen here where there is room for code, else with all that a decision can be
        if cfg!(target_pointer_width = "64") && kind.is_marker() {
            return Ok(());
        }
        // small machines have one way for all
        if cfg!(not(target_pointer_width = "64")) {
            return self.decided(kind, record, Decision::Apply);
        }
        let written = if self.is_edited() {
            self.apply_edited(kind, record, None)
        } else {
            apply_kind::<A>(kind, record, None, &mut self.section, self.symbols)
        };
        written.map_err(|error| self.failed(error))
    }

    #[inline(always)]
    fn loaded(&mut self, record: &Record, load: &GotLoad) -> Result<bool, Error> {
        // small machines have one way for all
        if cfg!(not(target_pointer_width = "64")) || self.is_edited() {
            return Ok(false);
        }
        let bounds = &self.symbols.layout.found.bounds;
        let slot = self.symbols.slots.get(record.symbol as usize);
        let reach = slot.and_then(|slot| bounds.reach_at::<A>(slot, None));
        if !reach.is_some_and(|reach| reach.near) {
            return Ok(false);
        }
        let written = apply_got_load::<A>(load, record, &mut self.section, self.symbols);
        written.map(|()| true).map_err(|error| self.failed(error))
    }

    #[inline(always)]
    fn rewritten(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        rewrite: &Rewrite,
    ) -> Result<(), Error> {
        // small machines have one way for all
        if cfg!(not(target_pointer_width = "64")) {
            return self.decided(kind, record, Decision::Rewrite(*rewrite));
        }
        let written = if self.is_edited() {
            self.rewrite_edited(kind, record, rewrite)
        } else {
            apply_rewrite::<A>(rewrite, &mut self.section, self.symbols)
        };
        written.map_err(|error| self.failed(error))
    }
}

impl<A: Arch> Write<'_, '_, '_, '_, '_, A> {
    /// Whether bytes of the section may be gone.
    #[inline]
    const fn is_edited(&self) -> bool {
        may_shrink::<A>() && !self.edits.is_empty()
    }

    /// P: the address of the place of a record.
    #[inline]
    fn place(&self, record: &Record) -> u64 {
        let offset =
            if may_shrink::<A>() { self.edits.moved(record.offset) } else { record.offset };
        self.section.address.wrapping_add(offset)
    }

    /// Writes what is decided about a record, whose offset is that of its place in the image.
    #[inline]
    fn write(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: &Decision,
    ) -> Result<(), ApplyError> {
        let (section, symbols) = (&mut self.section, self.symbols);
        match decision {
            Decision::Pair(pairing) => {
                apply_kind::<A>(kind, record, Some(&pairing.partner), section, symbols)
            }
            // nothing is known that code would be rewritten for without the feature
            Decision::Rewrite(rewrite) if cfg!(feature = "relax") => {
                apply_rewrite::<A>(rewrite, section, symbols)
            }
            Decision::Transition { transition, call, partner, .. } if THREAD_LOCAL => {
                let record = match partner {
                    None => *record,
                    Some(partner) => Record { offset: record.offset, ..*partner },
                };
                symbols.transition(transition, kind, &record, call.as_ref(), section)
            }
            _ => apply_kind::<A>(kind, record, None, section, symbols),
        }
    }
}

impl<A: Arch> Write<'_, '_, '_, '_, '_, A> {
    /// Writes what is decided about a record of the file to where its place is now.
    fn write_edited(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: &Decision,
    ) -> Result<(), ApplyError> {
        match decision {
            Decision::Apply => self.apply_edited(kind, record, None),
            Decision::Pair(pairing) => self.apply_edited(kind, record, Some(&pairing.partner)),
            Decision::Rewrite(rewrite) => self.rewrite_edited(kind, record, rewrite),
            Decision::Transition { goes, .. } => {
                let place = EditedPlace::of(&self.edits, kind, record);
                if *goes && place.deleted() == u64::from(kind.goes) {
                    return Ok(());
                }
                place.check_kept(kind)?;
                let written = self.write(kind, &place.moved(), decision);
                written.map_err(|error| ApplyError { offset: record.offset, ..error })
            }
            _ => Err(ApplyError::new(record, Some(kind.name), ApplyErrorKind::Sequence)),
        }
    }

    /// Applies a record of the file where its place is now.
    fn apply_edited(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        partner: Option<&Record>,
    ) -> Result<(), ApplyError> {
        let place = EditedPlace::of(&self.edits, kind, record);
        if let (Special::Padding(padding), Some(edit)) = (&kind.special, place.edit) {
            return self.fill(kind, padding, &place, edit);
        }
        place.check_kept(kind)?;
        // the instruction that this one completes may be gone
        let partner = match partner.map(|partner| (partner, self.edits.spot(partner.offset))) {
            Some((_, spot)) if !spot.keeps(1) => return Err(place.changed(kind)),
            partner => partner.map(|(partner, spot)| Record { offset: spot.moved(), ..*partner }),
        };
        let (section, symbols) = (&mut self.section, self.symbols);
        let written = apply_kind::<A>(kind, &place.moved(), partner.as_ref(), section, symbols);
        written.map_err(|error| ApplyError { offset: record.offset, ..error })
    }

    /// Fills what is left of the padding at a place.
    fn fill(
        &mut self,
        kind: &'static Kind,
        padding: &Padding,
        place: &EditedPlace<'_>,
        edit: &Edit,
    ) -> Result<(), ApplyError> {
        let offset = place.spot.moved();
        let wanted = (padding.alignment)(place.record);
        let address = self.section.address.wrapping_add(offset);
        if wanted.kept(address) != Some(edit.kept.into()) {
            let value = address.wrapping_add(edit.kept.into());
            let error = ApplyErrorKind::Misaligned { value, alignment: wanted.alignment };
            return Err(ApplyError::new(place.record, Some(kind.name), error));
        }
        if edit.deleted == 0 {
            return Ok(());
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let room = self.section.bytes.get_mut(start..);
        let room = room.and_then(|rest| rest.get_mut(..edit.kept as usize));
        padding.fill(room.unwrap_or_default());
        Ok(())
    }

    /// Writes instructions, which may be shorter, to where the place of a record of the file is now.
    fn rewrite_edited(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        rewrite: &Rewrite,
    ) -> Result<(), ApplyError> {
        let place = EditedPlace::of(&self.edits, kind, record);
        let spot = match rewrite.offset == record.offset {
            true => place.spot,
            false => self.edits.spot(rewrite.offset),
        };
        // by other addresses than those that the layout was made for
        if rewrite.deletes != place.deleted() || !spot.keeps(rewrite.size as u64) {
            return Err(place.changed(kind));
        }
        let mut moved = *rewrite;
        moved.offset = spot.moved();
        for record in moved.records.iter_mut().flatten() {
            record.offset = self.edits.moved(record.offset);
        }
        let written = apply_rewrite::<A>(&moved, &mut self.section, self.symbols);
        written.map_err(|error| ApplyError { offset: record.offset, ..error })
    }
}

/// The place of a record in a section of which bytes may be gone.
struct EditedPlace<'e> {
    record: &'e Record,
    spot: Spot<'e>,
    /// The edit that is for it.
    edit: Option<&'e Edit>,
}

impl<'e> EditedPlace<'e> {
    // a part of the loop where there is room for code, else one function for all
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn of(edits: &Edits<'e>, kind: &'static Kind, record: &'e Record) -> Self {
        let spot = edits.spot(record.offset);
        let may_go = kind.goes > 0 || matches!(kind.special, Special::Padding(_));
        Self { record, spot, edit: if may_go { spot.edit() } else { None } }
    }

    /// Bytes that go from there.
    fn deleted(&self) -> u64 {
        self.edit.map_or(0, |edit| u64::from(edit.deleted))
    }

    /// The record where its place is now.
    // as above
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn moved(&self) -> Record {
        Record { offset: self.spot.moved(), ..*self.record }
    }

    /// Whether the bytes that the kind is for are still there, and no others stand for them.
    // as above
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn check_kept(&self, kind: &'static Kind) -> Result<(), ApplyError> {
        match self.deleted() == 0 && self.spot.keeps(kind.field.bytes() as u64) {
            true => Ok(()),
            false => Err(self.changed(kind)),
        }
    }

    /// Code is not as the layout has it.
    #[cold]
    fn changed(&self, kind: &'static Kind) -> ApplyError {
        ApplyError::new(self.record, Some(kind.name), ApplyErrorKind::Sequence)
    }
}
