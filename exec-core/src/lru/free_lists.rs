//! Pieces of memory in two orders at once: all by age, and those of one sort by age.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::class::SizeClass;
use super::limits::Limits;
use crate::spec::Spec;

/// What pieces must have in common to stand for each other: their class, and of the spec what memory keeps when it changes
/// hands. One number, as it is moved and compared more often than it is looked into: the alignment as a power of two and two
/// flags in the higher byte, 1 more than the class in the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolKey(NonZeroU16);

/// Pieces. Adding one, taking the newest of a sort and taking the oldest of all are a few steps each.
pub(crate) struct FreeLists<M> {
    /// The newest of all, which is in no list yet: whoever asks next often asks for the like.
    latest: Option<M>,
    /// Its sort. Apart, as a pair in an option is moved in odd pieces, which processors are slow to put together again.
    latest_sort: Option<PoolKey>,
    /// Pieces, and gaps where some were.
    slots: Vec<Slot<M>>,
    gaps: Vec<usize>,
    free_lists: Vec<FreeList>,
    newest: Option<usize>,
    oldest: Option<usize>,
    bytes: u64,
    number: usize,
}

struct Slot<M> {
    memory: Option<M>,
    list: usize,
    class: SizeClass,
    all: Neighbors,
    /// Among the pieces of its sort.
    own: Neighbors,
}

#[derive(Clone, Copy, Default)]
struct Neighbors {
    newer: Option<usize>,
    older: Option<usize>,
}

/// The newest piece of each class. There are few free lists.
struct FreeList {
    name: u8,
    newest: Box<[Option<usize>; SizeClass::COUNT]>,
}

impl PoolKey {
    /// The sort of memory for `size` bytes; nothing if it is not to be kept.
    pub(crate) const fn of(size: u64, spec: Spec) -> Option<Self> {
        if !spec.kept || !spec.alignment.is_power_of_two() {
            return None;
        }
        let Some(class) = SizeClass::of(size) else { return None };
        // not by whether it was zeroed once
        let flags = (spec.host_visible as u16) << 14 | (spec.uncached as u16) << 15;
        let list = (spec.alignment.trailing_zeros() as u16) << 8 | flags;
        Some(Self(NonZeroU16::MIN.saturating_add(list | class.index() as u16)))
    }

    /// Bytes of a piece.
    pub(crate) const fn bytes(self) -> u64 {
        self.class().bytes()
    }

    const fn class(self) -> SizeClass {
        SizeClass::at(self.0.get() as u8 - 1)
    }

    const fn list(self) -> u8 {
        (self.0.get() >> 8) as u8
    }
}

impl<M> FreeLists<M> {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self {
            latest: None,
            latest_sort: None,
            slots: Vec::new(),
            gaps: Vec::new(),
            free_lists: Vec::new(),
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

    /// Whether one more piece is within the limits.
    #[inline]
    pub(crate) const fn have_room(&self, bytes: u64, limits: Limits) -> bool {
        self.bytes.saturating_add(bytes) <= limits.bytes && self.number < limits.number
    }

    /// Adds a piece of so many bytes: the newest.
    #[inline]
    pub(crate) fn push(&mut self, sort: PoolKey, bytes: u64, memory: M) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.number = self.number.saturating_add(1);
        let before = self.latest.replace(memory);
        if let (Some(sort), Some(memory)) = (self.latest_sort.replace(sort), before) {
            self.insert(sort, memory);
        }
    }

    /// Takes the newest piece of this sort, which has so many bytes.
    #[inline]
    pub(crate) fn pop_newest(&mut self, sort: PoolKey, bytes: u64) -> Option<M> {
        let memory = if self.latest_sort == Some(sort) {
            self.latest_sort = None;
            self.latest.take()?
        } else {
            self.find(sort)?
        };
        self.took(bytes);
        Some(memory)
    }

    /// Takes the oldest piece of all, with its size in bytes.
    pub(crate) fn pop_oldest(&mut self) -> Option<(M, u64)> {
        let (memory, bytes) = match self.oldest {
            Some(oldest) => self.take(oldest)?,
            None => (self.latest.take()?, self.latest_sort.take()?.bytes()),
        };
        self.took(bytes);
        Some((memory, bytes))
    }

    fn took(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.number = self.number.saturating_sub(1);
    }

    /// Puts a piece into the lists, as the newest there.
    #[inline(never)]
    fn insert(&mut self, sort: PoolKey, memory: M) {
        let (name, class) = (sort.list(), sort.class());
        let list = self.list(name).unwrap_or_else(|| {
            self.free_lists.push(FreeList { name, newest: Box::new([None; SizeClass::COUNT]) });
            self.free_lists.len() - 1
        });
        let older = self.head(list, class).and_then(|head| *head);
        let slot = Slot {
            memory: Some(memory),
            list,
            class,
            all: Neighbors { newer: None, older: self.newest },
            own: Neighbors { newer: None, older },
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
        if let Some(head) = self.head(list, class) {
            *head = Some(index);
        }
        self.newest = Some(index);
        self.oldest.get_or_insert(index);
    }

    /// Takes the newest piece of this sort out of the lists.
    fn find(&mut self, sort: PoolKey) -> Option<M> {
        let list = self.list(sort.list())?;
        let index = (*self.head(list, sort.class())?)?;
        self.take(index).map(|(memory, _)| memory)
    }

    fn list(&self, name: u8) -> Option<usize> {
        self.free_lists.iter().position(|list| list.name == name)
    }

    fn head(&mut self, list: usize, class: SizeClass) -> Option<&mut Option<usize>> {
        self.free_lists.get_mut(list)?.newest.get_mut(class.index())
    }

    /// Takes a piece out of both orders, with its size in bytes.
    fn take(&mut self, index: usize) -> Option<(M, u64)> {
        let slot = self.slots.get_mut(index)?;
        let memory = slot.memory.take()?;
        let (all, own, list, class) = (slot.all, slot.own, slot.list, slot.class);
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
                if let Some(head) = self.head(list, class) {
                    *head = own.older;
                }
            }
        }
        if let Some(older) = own.older.and_then(|older| self.slots.get_mut(older)) {
            older.own.newer = own.newer;
        }
        self.gaps.push(index);
        Some((memory, class.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sort_is_class_alignment_and_flags() {
        let largest = (7 << 61) - 1;
        for size in [1, 257, 1 << 20, largest] {
            for alignment in [1, 64, 1 << 63] {
                let spec = Spec::new().aligned(alignment);
                let sort = PoolKey::of(size, spec).unwrap();
                assert_eq!((Some(sort.class()), sort.bytes() >= size), (SizeClass::of(size), true));
                assert_eq!(Some(sort), PoolKey::of(size, spec.zeroed()));
                for other in [spec.host_visible(), spec.uncached(), spec.aligned(2)] {
                    assert_ne!(Some(sort), PoolKey::of(size, other));
                }
            }
        }
        assert_eq!(PoolKey::of(1, Spec::new().not_kept()), None);
        assert_eq!(PoolKey::of(1, Spec::new().aligned(48)), None);
        assert_eq!(PoolKey::of(u64::MAX, Spec::new()), None);
    }
}
