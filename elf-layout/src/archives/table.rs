//! Numbers of names, found by hash, in memory that grows with them.

use super::string::HashedString;
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

impl From<HashedString> for Hash {
    fn from(string: HashedString) -> Self {
        Self(string.hash as u32)
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

/// Which hashes a table may have: most that it has not are known here, in little memory and at the first look.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// A power of two of them, or none.
    words: Vec<u64>,
}

impl Filter {
    /// Of a table as it is.
    pub(super) fn of(table: &HashTable) -> Self {
        // eight bits for each cell, half of which are free
        let mut words = alloc::vec![0u64; table.cells.len().div_ceil(8)];
        for cell in table.cells.iter().filter(|cell| cell.number != 0) {
            let (at, bit) = place(words.len(), cell.hash);
            if let Some(word) = words.get_mut(at) {
                *word |= bit;
            }
        }
        Self { words }
    }

    /// Whether the table may have this hash.
    #[inline]
    pub(super) fn may_have(&self, hash: Hash) -> bool {
        let (at, bit) = place(self.words.len(), hash);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }
}

/// Which of so many words a hash has a bit in, and that bit.
#[inline]
const fn place(words: usize, Hash(hash): Hash) -> (usize, u64) {
    ((hash >> 6) as usize & words.wrapping_sub(1), 1u64.unbounded_shl(hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;

    #[test]
    fn filters_know_most_of_what_is_not_there() {
        let hash = |number: u32| Hash::of(Name(&number.to_le_bytes()));
        assert!(!Filter::default().may_have(hash(1)));
        for count in [0, 1, 20, 3000] {
            let mut table = HashTable::new();
            for number in 0..count {
                table.find_or_insert(hash(number), number, |_| false);
            }
            let filter = Filter::of(&table);
            assert!((0..count).all(|number| filter.may_have(hash(number))));
            let others = (10_000..20_000).filter(|number| filter.may_have(hash(*number))).count();
            assert!(others < 1000, "{others} of {count}");
        }
    }

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
