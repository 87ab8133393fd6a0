//! Things that are known by number: numbers are given here only, so that each names something.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// A number in an [`Arena`].
pub(super) struct Id<K>(u32, PhantomData<K>);

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// All things of a kind, in the order in which they came. `K` tells numbers of one arena from those of another.
pub(super) struct Arena<K, T>(Vec<T>, PhantomData<K>);

impl<K, T> Arena<K, T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new(), PhantomData)
    }

    pub(super) fn push(&mut self, item: T) -> Id<K> {
        let id = Id(u32::try_from(self.0.len()).unwrap_or(u32::MAX), PhantomData);
        self.0.push(item);
        id
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (Id<K>, &T)> {
        self.0.iter().enumerate().map(|(index, item)| (Id(index as u32, PhantomData), item))
    }
}

impl<K, T> Index<Id<K>> for Arena<K, T> {
    type Output = T;

    #[expect(
        clippy::indexing_slicing,
        reason = "`push` alone gives numbers, and nothing is removed"
    )]
    fn index(&self, id: Id<K>) -> &T {
        &self.0[id.0 as usize]
    }
}

impl<K, T> IndexMut<Id<K>> for Arena<K, T> {
    #[expect(
        clippy::indexing_slicing,
        reason = "`push` alone gives numbers, and nothing is removed"
    )]
    fn index_mut(&mut self, id: Id<K>) -> &mut T {
        &mut self.0[id.0 as usize]
    }
}
