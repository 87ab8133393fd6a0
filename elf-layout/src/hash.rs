//! A hash table of names in lent storage: open addressing over numbers of symbols and sections.

use elf_core::Name;

/// A cell holds the number of a symbol or a group plus one, and above it, as far as there is room, a part of the name's hash: a name that
/// another one's cell is asked for is mostly known by that to be another.
pub(crate) struct NameTable<'s> {
    cells: &'s mut [u32],
    /// The bits of a number.
    mask: u32,
}

/// Set in a number that stands for a section group, not a symbol: of one name, those are different.
pub(crate) const GROUP: u32 = 1 << 31;

impl<'s> NameTable<'s> {
    /// A table over zeroed cells, whose number is a power of two and more than the names that will come; numbers are below `count`.
    pub(crate) const fn new(cells: &'s mut [u32], count: usize) -> Self {
        // code is scarcer than time on a machine of 32 bits
        let is_large = cfg!(target_pointer_width = "64") && count < 1 << 31;
        let mask =
            if is_large { u32::MAX.unbounded_shr((count as u32).leading_zeros()) } else { !GROUP };
        Self { cells, mask }
    }

    /// How many cells there are.
    pub(crate) const fn len(&self) -> usize {
        self.cells.len()
    }

    /// The number that was inserted first in a cell of its own, or else `number`, inserted now. `None` if there is no such cell.
    #[inline]
    pub(crate) fn at_or_insert(&mut self, cell: usize, number: u32) -> Option<u32> {
        let cell = self.cells.get_mut(cell)?;
        if *cell == 0 {
            *cell = number.checked_add(1)?;
        }
        cell.checked_sub(1)
    }

    /// The number that was inserted first under this name, or else `number`, inserted now. It stands for a group if `number` does.
    ///
    /// `is` tells whether a number stands for the same name. `None` if the table is full.
    pub(crate) fn find_or_insert(
        &mut self,
        name: Name<'_>,
        number: u32,
        is: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let last = self.cells.len().checked_sub(1)?;
        let hash = hash(name.as_bytes());
        let tag = !(self.mask | GROUP) & (hash >> 32) as u32 | number & GROUP;
        let mut at = hash as usize & last;
        for _ in 0..self.cells.len() {
            let cell = self.cells.get_mut(at)?;
            if *cell == 0 {
                *cell = tag | (number & self.mask).checked_add(1)?;
                return Some(number);
            }
            let found = (*cell & self.mask).wrapping_sub(1) | number & GROUP;
            if *cell & !self.mask == tag && is(found) {
                return Some(found);
            }
            at = at.wrapping_add(1) & last;
        }
        None
    }
}

/// Multiplicative, eight bytes at a time, mixed at the end so that low bits depend on all.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(START, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
    let tail = tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    end(hash, tail, bytes.len())
}

/// The hash of what has no bytes yet.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of so many bytes, of which the last, up to seven, are in `tail`.
pub(crate) const fn end(hash: u64, tail: u64, length: usize) -> u64 {
    mix(mix(hash ^ tail) ^ length as u64)
}

/// Spreads every bit over the whole word.
pub(crate) const fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;

    #[test]
    fn a_group_is_no_symbol_of_its_name() {
        for count in [8, usize::MAX] {
            let mut cells = [0; 16];
            let mut table = NameTable::new(&mut cells, count);
            let mut insert = |number| table.find_or_insert("both".into(), number, |_| true);
            assert_eq!(insert(GROUP | 7), Some(GROUP | 7));
            assert_eq!(insert(3), Some(3));
            assert_eq!(insert(5), Some(3));
            assert_eq!(insert(GROUP | 5), Some(GROUP | 7));
        }
    }

    /// Small machines look at the names.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_cell_tells_most_names_apart() {
        let mut cells = [0; 256];
        let mut table = NameTable::new(&mut cells, 128);
        for number in 0..128 {
            let name = std::format!("name{number}");
            let is = |other| panic!("{other} is not called {name}");
            assert_eq!(table.find_or_insert(name.as_str().into(), number, is), Some(number));
        }
    }
}
