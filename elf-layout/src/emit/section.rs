//! A section while it is written: what is decided about each record.

use crate::emit::resolve::Symbols;
use crate::error::{Error, ErrorKind};
use crate::model::edits::{Edits, may_shrink};
use crate::model::features::THREAD_LOCAL;
use crate::model::relocations::label;
use crate::model::spans::Group;
use crate::model::storage::SymbolSlot;
use crate::model::surroundings::Surroundings;
use crate::model::tls;
use elf_core::{
    Addresses, ApplyError, ApplyErrorKind, Arch, Decision, Facts, Kind, Pass, Reach, Record,
    Rewrite, SectionMut, Special, apply_kind, apply_rewrite,
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
        let written = if !may_shrink::<A>() || self.edits.is_empty() {
            self.write(kind, record, decision)
        } else {
            self.write_edited(kind, record, decision)
        };
        written.map_err(|error| self.failed(error))
    }

    #[inline(always)]
    fn applied(&mut self, kind: &'static Kind, record: &Record) -> Result<(), Error> {
        if cfg!(target_pointer_width = "64") && kind.is_marker() {
            return Ok(());
        }
        if cfg!(not(target_pointer_width = "64")) || may_shrink::<A>() && !self.edits.is_empty() {
            return self.decided(kind, record, Decision::Apply);
        }
        let written = apply_kind::<A>(kind, record, None, &mut self.section, self.symbols);
        written.map_err(|error| self.failed(error))
    }

    #[inline(always)]
    fn rewritten(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        rewrite: &Rewrite,
    ) -> Result<(), Error> {
        if cfg!(not(target_pointer_width = "64")) || may_shrink::<A>() && !self.edits.is_empty() {
            return self.decided(kind, record, Decision::Rewrite(*rewrite));
        }
        let written = apply_rewrite::<A>(rewrite, &mut self.section, self.symbols);
        written.map_err(|error| self.failed(error))
    }
}

impl<A: Arch> Write<'_, '_, '_, '_, '_, A> {
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
        decision: Decision,
    ) -> Result<(), ApplyError> {
        let (section, symbols) = (&mut self.section, self.symbols);
        match decision {
            Decision::Pair(pairing) => {
                apply_kind::<A>(kind, record, Some(&pairing.partner), section, symbols)
            }
            // nothing is known that code would be rewritten for without the feature
            Decision::Rewrite(rewrite) if cfg!(feature = "relax") => {
                apply_rewrite::<A>(&rewrite, section, symbols)
            }
            Decision::Transition { transition, call, partner, .. } if THREAD_LOCAL => {
                let record = match partner {
                    None => *record,
                    Some(partner) => Record { offset: record.offset, ..partner },
                };
                symbols.transition(&transition, kind, &record, call.as_ref(), section)
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
        decision: Decision,
    ) -> Result<(), ApplyError> {
        let fail = |error| ApplyError::new(record, Some(kind.name), error);
        let may_go = kind.goes > 0 || matches!(kind.special, Special::Padding(_));
        let edit = if may_go { self.edits.at(record.offset) } else { None };
        let moved = Record { offset: self.edits.moved(record.offset), ..*record };
        if let (Special::Padding(padding), Some(edit)) = (kind.special, edit) {
            let place = self.section.address.wrapping_add(moved.offset);
            let wanted = (padding.alignment)(record);
            if wanted.kept(place) != Some(edit.kept.into()) {
                let value = place.wrapping_add(edit.kept.into());
                let alignment = wanted.alignment;
                return Err(fail(ApplyErrorKind::Misaligned { value, alignment }));
            }
            if edit.deleted == 0 {
                return Ok(());
            }
            let start = usize::try_from(moved.offset).unwrap_or(usize::MAX);
            let room = self.section.bytes.get_mut(start..);
            let room = room.and_then(|rest| rest.get_mut(..edit.kept as usize));
            padding.fill(room.unwrap_or_default());
            return Ok(());
        }
        let deleted = edit.map_or(0, |edit| u64::from(edit.deleted));
        let mut written = (record.offset, kind.field.bytes as u64);
        let decision = match decision {
            Decision::Rewrite(rewrite) if rewrite.deletes == deleted => {
                written = (rewrite.offset, rewrite.size as u64);
                Decision::Rewrite(self.moved(&rewrite))
            }
            Decision::Transition { goes: true, .. } if deleted == kind.goes => return Ok(()),
            // by other addresses than those that the layout was made for
            Decision::Rewrite(_) => return Err(fail(ApplyErrorKind::Sequence)),
            _ if deleted > 0 => return Err(fail(ApplyErrorKind::Sequence)),
            // the instruction that this one completes is gone
            Decision::Pair(pairing) if !self.edits.keeps(pairing.partner.offset, 1) => {
                return Err(fail(ApplyErrorKind::Sequence));
            }
            Decision::Pair(pairing) => {
                let offset = self.edits.moved(pairing.partner.offset);
                let partner = Record { offset, ..pairing.partner };
                Decision::Pair(pairing.with_partner(partner))
            }
            decision => decision,
        };
        // bytes that others stand for, or that are gone
        if !self.edits.keeps(written.0, written.1) {
            return Err(fail(ApplyErrorKind::Sequence));
        }
        let written = self.write(kind, &moved, decision);
        written.map_err(|error| ApplyError { offset: record.offset, ..error })
    }

    fn moved(&self, rewrite: &Rewrite) -> Rewrite {
        let mut rewrite = *rewrite;
        rewrite.offset = self.edits.moved(rewrite.offset);
        for record in rewrite.records.iter_mut().flatten() {
            record.offset = self.edits.moved(record.offset);
        }
        rewrite
    }
}
