//! Pieces of memory in two orders at once: all by age, and those of one spec and class by age.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::class::Class;
use crate::spec::Spec;

/// Pieces. Adding one, taking the newest of a class and taking the oldest of all are a few steps each.
pub(crate) struct Shelves<M> {
    /// Pieces, and gaps where some were.
    slots: Vec<Slot<M>>,
    gaps: Vec<usize>,
    shelves: Vec<Shelf>,
    newest: Option<usize>,
    oldest: Option<usize>,
    bytes: u64,
    number: usize,
}

struct Slot<M> {
    memory: Option<M>,
    shelf: usize,
    class: Class,
    all: Links,
    /// Among the pieces of its class.
    own: Links,
}

#[derive(Clone, Copy, Default)]
struct Links {
    newer: Option<usize>,
    older: Option<usize>,
}

/// The newest piece of each class. There are few specs.
struct Shelf {
    spec: Spec,
    newest: Box<[Option<usize>; Class::COUNT]>,
}

impl<M> Shelves<M> {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            gaps: Vec::new(),
            shelves: Vec::new(),
            newest: None,
            oldest: None,
            bytes: 0,
            number: 0,
        }
    }

    /// Bytes of all pieces.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of pieces.
    pub(crate) const fn len(&self) -> usize {
        self.number
    }

    /// Adds a piece: the newest.
    pub(crate) fn push(&mut self, spec: Spec, class: Class, memory: M) {
        let shelf = self.shelf(spec).unwrap_or_else(|| {
            self.shelves.push(Shelf { spec, newest: Box::new([None; Class::COUNT]) });
            self.shelves.len() - 1
        });
        let older = self.head(shelf, class).and_then(|head| *head);
        let slot = Slot {
            memory: Some(memory),
            shelf,
            class,
            all: Links { newer: None, older: self.newest },
            own: Links { newer: None, older },
        };
        let index = self.gaps.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(index) {
            Some(gap) => *gap = slot,
            None => self.slots.push(slot),
        }
        if let Some(before) = self.newest.and_then(|before| self.slots.get_mut(before)) {
            before.all.newer = Some(index);
        }
        if let Some(before) = older.and_then(|before| self.slots.get_mut(before)) {
            before.own.newer = Some(index);
        }
        if let Some(head) = self.head(shelf, class) {
            *head = Some(index);
        }
        self.newest = Some(index);
        self.oldest.get_or_insert(index);
        self.bytes = self.bytes.saturating_add(class.bytes());
        self.number = self.number.saturating_add(1);
    }

    /// Takes the newest piece of this kind.
    pub(crate) fn pop_newest(&mut self, spec: Spec, class: Class) -> Option<M> {
        let shelf = self.shelf(spec)?;
        let index = (*self.head(shelf, class)?)?;
        self.take(index).map(|(memory, _)| memory)
    }

    /// Takes the oldest piece of all, with its size in bytes.
    pub(crate) fn pop_oldest(&mut self) -> Option<(M, u64)> {
        self.take(self.oldest?)
    }

    fn shelf(&self, spec: Spec) -> Option<usize> {
        self.shelves.iter().position(|shelf| shelf.spec == spec)
    }

    fn head(&mut self, shelf: usize, class: Class) -> Option<&mut Option<usize>> {
        self.shelves.get_mut(shelf)?.newest.get_mut(class.index())
    }

    /// Takes a piece out of both orders.
    fn take(&mut self, index: usize) -> Option<(M, u64)> {
        let slot = self.slots.get_mut(index)?;
        let memory = slot.memory.take()?;
        let (all, own, shelf, class) = (slot.all, slot.own, slot.shelf, slot.class);
        match all.newer.and_then(|newer| self.slots.get_mut(newer)) {
            Some(newer) => newer.all.older = all.older,
            None => self.newest = all.older,
        }
        match all.older.and_then(|older| self.slots.get_mut(older)) {
            Some(older) => older.all.newer = all.newer,
            None => self.oldest = all.newer,
        }
        match own.newer.and_then(|newer| self.slots.get_mut(newer)) {
            Some(newer) => newer.own.older = own.older,
            None => {
                if let Some(head) = self.head(shelf, class) {
                    *head = own.older;
                }
            }
        }
        if let Some(older) = own.older.and_then(|older| self.slots.get_mut(older)) {
            older.own.newer = own.newer;
        }
        self.gaps.push(index);
        self.bytes = self.bytes.saturating_sub(class.bytes());
        self.number = self.number.saturating_sub(1);
        Some((memory, class.bytes()))
    }
}
