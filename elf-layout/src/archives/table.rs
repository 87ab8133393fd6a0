//! Numbers of names, found by hash, in memory that grows with them.

use crate::hash;
use alloc::vec::Vec;
use elf_core::Name;

/// A hash of a name, of which no part but equality means anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hash(u32);

impl Hash {
    pub(super) fn of(name: Name<'_>) -> Self {
        Self(hash::hash(name.as_bytes()) as u32)
    }
}

/// Open addressing: a name that is not there is known by its hash alone, mostly.
#[derive(Clone, Debug, Default)]
pub(super) struct HashTable {
    /// A power of two of them, or none.
    cells: Vec<Cell>,
    count: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    hash: Hash,
    /// One more than the number; 0 of a free cell.
    number: u32,
}

impl HashTable {
    /// Of no names.
    pub(super) const fn new() -> Self {
        Self { cells: Vec::new(), count: 0 }
    }

    /// The number of a name with this hash of which `is` says that it stands for the name.
    #[inline]
    pub(super) fn find(&self, hash: Hash, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.cells.len().checked_sub(1)?;
        let mut at = hash.0 as usize & mask;
        loop {
            let cell = self.cells.get(at)?;
            let number = cell.number.checked_sub(1)?;
            if cell.hash == hash && is(number) {
                return Some(number);
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    /// The number of the first name with this hash.
    #[inline]
    pub(super) fn candidate(&self, hash: Hash) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The same, or else `number`, which is inserted.
    pub(super) fn find_or_insert(
        &mut self,
        hash: Hash,
        number: u32,
        is: impl Fn(u32) -> bool,
    ) -> u32 {
        if let Some(found) = self.find(hash, is) {
            return found;
        }
        // half of the cells are free: whoever looks comes to one
        if self.count.saturating_mul(2) >= self.cells.len() {
            let size = self.cells.len().saturating_mul(2).max(16);
            let before = core::mem::replace(&mut self.cells, alloc::vec![Cell::default(); size]);
            before.into_iter().filter(|cell| cell.number != 0).for_each(|cell| self.put(cell));
        }
        self.put(Cell { hash, number: number.saturating_add(1) });
        self.count = self.count.saturating_add(1);
        number
    }

    /// Takes the next free cell.
    fn put(&mut self, cell: Cell) {
        let mask = self.cells.len().wrapping_sub(1);
        let mut at = cell.hash.0 as usize & mask;
        while let Some(place) = self.cells.get_mut(at) {
            if place.number == 0 {
                *place = cell;
                return;
            }
            at = at.wrapping_add(1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;

    /// Hashes that are equal, or lead to one cell, are told apart.
    #[test]
    fn what_collides_is_found() {
        let mut table = HashTable::new();
        assert_eq!(table.find(Hash(5), |_| true), None);
        let hash =
            |number: u32| Hash(if number.is_multiple_of(2) { 5 } else { 5 + (number << 20) });
        for number in 0..1000 {
            assert_eq!(table.find(hash(number), |found| found == number), None);
            assert_eq!(table.find_or_insert(hash(number), number, |found| found == number), number);
        }
        for number in 0..1000 {
            assert_eq!(table.find(hash(number), |found| found == number), Some(number));
            assert_eq!(table.find_or_insert(hash(number), 7777, |found| found == number), number);
        }
        assert_eq!(table.find(Hash(6), |_| true), None);
        assert_eq!(table.find(Hash(5), |_| false), None);
    }
}
