//! Where is noted what relocations need.

use crate::model::scan_result::ScanResult;
use crate::model::storage::{Needs, SymbolSlot};
#[cfg(all(feature = "alloc", feature = "parts"))]
use alloc::vec::Vec;
use core::cell::Cell;

/// Takes notes of what relocations need.
pub(crate) trait Findings {
    /// Where the slot of a symbol is.
    type Place;

    /// The slot there.
    fn slot(place: &Self::Place) -> SymbolSlot;

    /// What is needed beside what symbols are.
    fn result(&self) -> &ScanResult;

    /// The same, to be changed.
    fn result_mut(&mut self) -> &mut ScanResult;

    /// Notes what is needed of symbol `id`, whose slot is at `place`.
    fn note(&mut self, place: &Self::Place, id: u32, needs: Needs);
}

/// Notes of one thread, which has all slots for itself.
impl Findings for ScanResult {
    type Place = Cell<SymbolSlot>;

    #[inline(always)]
    fn slot(place: &Cell<SymbolSlot>) -> SymbolSlot {
        place.get()
    }

    #[inline(always)]
    fn result(&self) -> &ScanResult {
        self
    }

    #[inline(always)]
    fn result_mut(&mut self) -> &mut ScanResult {
        self
    }

    #[inline]
    fn note(&mut self, place: &Cell<SymbolSlot>, id: u32, needs: Needs) {
        let slot = place.get();
        let needs = slot.needs.with(needs);
        if needs != slot.needs {
            place.set(SymbolSlot { needs, ..slot });
            self.special.include(id as usize);
        }
    }
}

/// Notes beside the slots, which others read at the same time.
#[cfg(all(feature = "alloc", feature = "parts"))]
pub(crate) struct Notes {
    result: ScanResult,
    /// Symbols, and what is needed of them.
    needs: Vec<(u32, Needs)>,
    /// What was noted last of symbols with the same last digits: most symbols are used again soon.
    last: [(u32, Needs); LAST],
}

/// A power of two: of this many symbols it is known what was noted last.
#[cfg(all(feature = "alloc", feature = "parts"))]
const LAST: usize = 64;

#[cfg(all(feature = "alloc", feature = "parts"))]
impl Notes {
    /// None yet beside what is known before.
    pub(crate) const fn new(result: ScanResult) -> Self {
        Self { result, needs: Vec::new(), last: [(0, Needs::NONE); LAST] }
    }

    /// Notes the same in the slots and in the result of all.
    pub(crate) fn enter(&self, symbols: &[Cell<SymbolSlot>], found: &mut ScanResult) {
        found.add(&self.result);
        for &(id, needs) in &self.needs {
            if let Some(place) = symbols.get(id as usize) {
                found.note(place, id, needs);
            }
        }
    }
}

#[cfg(all(feature = "alloc", feature = "parts"))]
impl Findings for Notes {
    type Place = SymbolSlot;

    #[inline(always)]
    fn slot(place: &SymbolSlot) -> SymbolSlot {
        *place
    }

    #[inline(always)]
    fn result(&self) -> &ScanResult {
        &self.result
    }

    #[inline(always)]
    fn result_mut(&mut self) -> &mut ScanResult {
        &mut self.result
    }

    fn note(&mut self, slot: &SymbolSlot, id: u32, needs: Needs) {
        let Some(last) = self.last.get_mut(id as usize % LAST) else { return };
        let noted = if last.0 == id { last.1 } else { Needs::NONE };
        let known = slot.needs.with(noted);
        let all = known.with(needs);
        if all != known {
            *last = (id, all);
            self.needs.push((id, needs));
        }
    }
}

#[cfg(all(test, feature = "alloc", feature = "parts"))]
mod tests {
    use super::*;

    /// A note is taken if there is something new in it: beside what the slot has, and what was noted last.
    #[test]
    fn what_is_known_is_not_noted_again() {
        let mut notes = Notes::new(ScanResult::default());
        let slot = SymbolSlot { needs: Needs::GOT, ..SymbolSlot::default() };
        assert_eq!(Notes::slot(&slot).needs, Needs::GOT);
        let (got, stub, both) = (Needs::GOT, Needs::STUB, Needs::GOT.with(Needs::STUB));
        for (id, needs) in [(0, got), (0, stub), (0, stub), (0, both), (7, both), (7, stub)] {
            notes.note(&slot, id, needs);
        }
        assert_eq!(notes.needs, [(0, stub), (7, both)]);
        // another one of the same digits
        notes.note(&slot, 7 + LAST as u32, stub);
        notes.note(&slot, 7, Needs::COPY);
        notes.note(&slot, 7, Needs::COPY);
        notes.note(&slot, 7, stub);
        notes.note(&slot, 7, Needs::COPY.with(stub));
        assert_eq!(notes.needs[2..], [(7 + LAST as u32, stub), (7, Needs::COPY), (7, stub)]);
    }

    #[test]
    fn notes_are_entered() {
        let mut notes = Notes::new(ScanResult::default());
        let mut slots = [SymbolSlot::default(); 4];
        let mut found = ScanResult::default();
        notes.result_mut().threads = true;
        for (id, needs) in [(2, Needs::GOT), (1, Needs::STUB), (2, Needs::COPY), (9, Needs::GOT)] {
            notes.note(&slots[0], id, needs);
        }
        notes.enter(Cell::from_mut(&mut slots[..]).as_slice_of_cells(), &mut found);
        let needs = slots.map(|slot| slot.needs);
        assert_eq!(needs, [Needs::NONE, Needs::STUB, Needs::GOT.with(Needs::COPY), Needs::NONE]);
        assert!(found.threads);
        assert_eq!(found.special.numbers(), 1..3);
    }
}
