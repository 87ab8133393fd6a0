//! A section whose edits are decided, record by record.

use crate::error::{Error, ErrorKind};
use crate::model::edits::Edit;
use crate::model::features::THREAD_LOCAL;
use crate::model::relocations::label;
use crate::model::spans::{Bases, Spans};
use crate::model::storage::{ObjectSlot, SymbolSlot};
use crate::model::surroundings::Surroundings;
use crate::model::tls;
use core::cell::Cell;
use core::marker::PhantomData;
use elf_core::{
    Addresses, ApplyError, ApplyErrorKind, Arch, Decision, Facts, Kind, Pass, Record, Special,
    find_of,
};

/// Which records are for places where bytes may go.
pub(super) struct Places<A> {
    /// Whether bytes go from more than padding.
    relaxes: bool,
    /// Whether code may count from the global pointer.
    by_global_pointer: bool,
    /// Whether bytes may go at the places of records, by the low 6 bits of their numbers.
    may_go: u64,
    arch: PhantomData<A>,
}

impl<A: Arch> Places<A> {
    pub(super) const fn new(relaxes: bool, by_global_pointer: bool) -> Self {
        let (mut rest, mut may_go) = (A::KINDS, 0);
        while let [kind, tail @ ..] = rest {
            if has_place(kind, relaxes, by_global_pointer) {
                may_go |= 1 << (kind.number & 63);
            }
            rest = tail;
        }
        Self { relaxes, by_global_pointer, may_go, arch: PhantomData }
    }

    /// The bytes at a record's place of which some may go, if any may.
    #[inline]
    pub(super) fn of(&self, record: &Record) -> Option<u64> {
        if self.may_go >> (record.r#type & 63) & 1 == 0 {
            return None;
        }
        let kind = find_of::<A>(record.r#type)?;
        let has_place = has_place(kind, self.relaxes, self.by_global_pointer);
        span(kind, record).filter(|_| has_place)
    }
}

/// Whether bytes may go at places of this kind.
const fn has_place(kind: &Kind, relaxes: bool, by_global_pointer: bool) -> bool {
    match kind.special {
        Special::Padding(_) => true,
        // nothing goes but where code may count from there
        Special::Shrink(shrink) if shrink.by_global_pointer && !by_global_pointer => false,
        _ => relaxes && kind.goes > 0,
    }
}

/// Bytes at the place of a record of this kind of which some may go, if any may.
fn span(kind: &Kind, record: &Record) -> Option<u64> {
    let size = match kind.special {
        Special::Padding(padding) => (padding.alignment)(record).padding,
        _ => kind.goes.into(),
    };
    (size > 0).then_some(size)
}

/// How edits may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settling {
    /// As the addresses want.
    Free,
    /// Code that was shorter and is not any more stays as long as it is.
    Longer,
    /// All code stays as long as it is; only padding goes.
    AsLongAsIs,
}

/// A section whose edits are decided.
pub(super) struct SectionPass<'p, 'a, A> {
    pub(super) number: usize,
    pub(super) object: &'p ObjectSlot<'a>,
    pub(super) section: u32,
    pub(super) source: &'a [u8],
    /// Of the section, after the last pass.
    pub(super) address: u64,
    pub(super) symbols: &'p [SymbolSlot],
    pub(super) spans: &'p Spans,
    pub(super) bases: &'p Bases<'p>,
    pub(super) surroundings: Surroundings<'p>,
    pub(super) edits: &'p mut [Edit],
    pub(super) settling: Settling,
    /// The first edit that is not decided.
    pub(super) next: Cell<usize>,
    /// Bytes that go before it.
    pub(super) gone: u32,
    pub(super) has_changed: bool,
    pub(super) arch: PhantomData<A>,
}

impl<A: Arch> SectionPass<'_, '_, A> {
    /// The slot of what defines a record's symbol.
    fn definition(&self, record: &Record) -> Option<&SymbolSlot> {
        let index = usize::try_from(record.symbol).ok()?;
        let index = Some(index).filter(|&index| index < self.object.symbol_count)?;
        let slot = self.symbols.get(self.object.first_symbol.checked_add(index)?)?;
        self.symbols.get(slot.definition as usize)
    }

    /// Decides about the next edit: `kept` bytes stay, `deleted` go.
    fn decide(&mut self, index: usize, kept: u64, deleted: u64, is_padding: bool) {
        let Some(edit) = self.edits.get_mut(index) else { return };
        let (kept, deleted) = (kept as u32, deleted as u32);
        let all = edit.kept.wrapping_add(edit.deleted);
        if edit.before != self.gone {
            edit.before = self.gone;
            self.has_changed = true;
        }
        if !is_padding && !edit.stays {
            edit.stays = match self.settling {
                Settling::Free => false,
                Settling::Longer => deleted != edit.deleted,
                Settling::AsLongAsIs => true,
            };
        }
        let (kept, deleted) = if edit.stays { (all, 0) } else { (kept, deleted) };
        if edit.deleted != deleted {
            (edit.kept, edit.deleted) = (kept, deleted);
            self.has_changed = true;
        }
        self.gone = self.gone.saturating_add(deleted);
    }

    /// Decides about what no record has come for.
    pub(super) fn finish(&mut self) {
        self.pass_over(u64::MAX);
    }

    /// Decides that what no record has come for stays as long as it is: edits at places before `place`.
    fn pass_over(&mut self, place: u64) {
        while let Some(edit) = self.edits.get_mut(self.next.get())
            && u64::from(edit.place) < place
        {
            edit.stays = true;
            let all = edit.kept.wrapping_add(edit.deleted);
            self.decide(self.next.get(), all.into(), 0, false);
            self.next.set(self.next.get().wrapping_add(1));
        }
    }

    /// The first record from `from` on that an undecided edit is for.
    pub(super) fn next_record(&self, from: usize) -> Option<usize> {
        let rest = self.edits.get(self.next.get()..).unwrap_or_default();
        rest.iter().map(|edit| edit.record as usize).find(|record| *record >= from)
    }

    /// Decides about the edit at the place of a record, if there is one: bytes that stay, and those that go, if any do.
    fn edit(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        (kept, deleted): (u64, u64),
    ) -> Result<(), Error> {
        let Some(size) = span(kind, record) else { return Ok(()) };
        self.pass_over(record.offset);
        let index = self.next.get();
        let is_next = |edit: &Edit| u64::from(edit.place) == record.offset;
        if !self.edits.get(index).is_some_and(is_next) {
            return Ok(());
        }
        let mut is_padding = false;
        let (kept, deleted) = match kind.special {
            Special::Padding(padding) => {
                is_padding = true;
                let wanted = (padding.alignment)(record);
                let place = self.place(record);
                let Some(kept) = wanted.kept(place) else {
                    let value = place.wrapping_add(wanted.padding);
                    let alignment = wanted.alignment;
                    let error = ApplyErrorKind::Misaligned { value, alignment };
                    return Err(self.failed(ApplyError::new(record, Some(kind.name), error)));
                };
                (kept, size.saturating_sub(kept))
            }
            _ if deleted > 0 => (kept, deleted),
            _ => (size, 0),
        };
        self.decide(index, kept, deleted, is_padding);
        self.next.set(index.wrapping_add(1));
        Ok(())
    }

    /// Where the place of a record is, by what is decided so far.
    fn place(&self, record: &Record) -> u64 {
        self.address.wrapping_add(record.offset).wrapping_sub(self.gone.into())
    }
}

impl<A: Arch> Facts for SectionPass<'_, '_, A> {
    fn addresses(&self, record: &Record) -> Option<Addresses> {
        let slot = self.definition(record)?;
        let address = self.bases.of(slot.group).wrapping_add(slot.value);
        let variable = tls::block_offset(self.spans, slot);
        self.surroundings.addresses::<A>(slot, address, variable, self.place(record))
    }

    // what may not has no edit that could be decided
    fn may_go(&self, _: &Record) -> bool {
        true
    }

    fn is_local_exec(&self, record: &Record) -> bool {
        let access = self.surroundings.options.thread_local;
        THREAD_LOCAL && self.definition(record).is_some_and(|slot| tls::is_local_exec(slot, access))
    }

    fn label(&self, record: &Record) -> Option<u64> {
        label(self.object, self.section, record)
    }
}

impl<A: Arch> Pass for SectionPass<'_, '_, A> {
    type Error = Error;

    #[cold]
    fn failed(&self, error: ApplyError) -> Error {
        Error { object: self.number, section: self.section, kind: ErrorKind::Apply(error) }
    }

    fn bytes(&self) -> Result<&[u8], Error> {
        Ok(self.source)
    }

    fn decided(
        &mut self,
        kind: &'static Kind,
        record: &Record,
        decision: Decision,
    ) -> Result<(), Error> {
        let goes = match decision {
            Decision::Rewrite(rewrite) => (rewrite.size as u64, rewrite.deletes),
            Decision::Transition { goes: true, .. } => (0, kind.goes.into()),
            _ => (0, 0),
        };
        self.edit(kind, record, goes)
    }
}
