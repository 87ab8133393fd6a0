//! A hash table of names in lent storage: open addressing over numbers of symbols and sections.

use elf_core::Name;

/// What a cell names: its number plus one. Names of groups and of symbols are kept apart by the key's kind.
pub(crate) struct NameTable<'s> {
    cells: &'s mut [u32],
}

impl<'s> NameTable<'s> {
    /// A table over zeroed cells, whose number is a power of two and more than the names that will come.
    pub(crate) const fn new(cells: &'s mut [u32]) -> Self {
        Self { cells }
    }

    /// The number that was inserted first under this name, or else `number`, inserted now.
    ///
    /// `is` tells whether a number stands for the same key. `None` if the table is full.
    pub(crate) fn find_or_insert(
        &mut self,
        name: Name<'_>,
        number: u32,
        is: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mask = self.cells.len().checked_sub(1)?;
        let mut at = hash(name.as_bytes()) as usize & mask;
        for _ in 0..self.cells.len() {
            let cell = self.cells.get_mut(at)?;
            match cell.checked_sub(1) {
                None => {
                    *cell = number.checked_add(1)?;
                    return Some(number);
                }
                Some(found) if is(found) => return Some(found),
                Some(_) => at = at.wrapping_add(1) & mask,
            }
        }
        None
    }
}

/// Multiplicative, eight bytes at a time, mixed at the end so that low bits depend on all.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let (words, tail) = bytes.as_chunks::<8>();
    let start = 0xcbf2_9ce4_8422_2325u64 ^ bytes.len() as u64;
    let hash = words.iter().fold(start, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
    let hash = tail.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    mix(hash)
}

/// Spreads every bit over the whole word.
const fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}
