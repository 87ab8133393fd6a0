//! A table by names, of which there may be hundreds of thousands: their texts lie behind each other, in memory of one piece.

use core::ffi::CStr;
use core::hash::BuildHasher as _;
use foldhash::fast::RandomState;

/// Values by names.
#[derive(Debug)]
pub(crate) struct NameTable<T> {
    /// The names, a NUL behind each.
    texts: Vec<u8>,
    entries: Vec<Entry<T>>,
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    hashing: RandomState,
}

#[derive(Debug)]
struct Entry<T> {
    /// Where the text is.
    start: usize,
    end: usize,
    value: T,
}

/// A part of a name's hash, by which the slot is found, and one more than the number of the entry; 0 if there is none.
type Slot = (u32, u32);

impl<T> Default for NameTable<T> {
    fn default() -> Self {
        let (texts, entries, slots) = (Vec::new(), Vec::new(), Vec::new());
        Self { texts, entries, slots, hashing: RandomState::default() }
    }
}

impl<T> NameTable<T> {
    /// The value of a name, which gets this one if it has none; `None` if there are too many names.
    pub(crate) fn entry(&mut self, name: &[u8], value: T) -> Option<&mut T> {
        if self.slots.len() / 2 <= self.entries.len() {
            self.grow();
        }
        let hash = self.hash(name);
        let (slot, known) = self.find(name, hash)?;
        let number = known.unwrap_or(self.entries.len());
        if known.is_none() {
            *self.slots.get_mut(slot)? = (hash, u32::try_from(number).ok()?.checked_add(1)?);
            let start = self.texts.len();
            self.texts.extend_from_slice(name);
            let end = self.texts.len();
            self.texts.push(0);
            self.entries.push(Entry { start, end, value });
        }
        self.entries.get_mut(number).map(|entry| &mut entry.value)
    }

    /// The value of a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        let (_, number) = self.find(name, self.hash(name))?;
        self.entries.get(number?).map(|entry| &entry.value)
    }

    /// All values, in the order in which they came.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    /// The name of this number.
    pub(crate) fn name(&self, number: usize) -> Option<&CStr> {
        let entry = self.entries.get(number)?;
        CStr::from_bytes_with_nul(self.texts.get(entry.start..=entry.end)?).ok()
    }

    fn hash(&self, name: &[u8]) -> u32 {
        self.hashing.hash_one(name) as u32
    }

    /// The slot that a name has, or would get, and the number of its entry.
    fn find(&self, name: &[u8], hash: u32) -> Option<(usize, Option<usize>)> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & last;
        loop {
            let &(known, number) = self.slots.get(at)?;
            let Some(number) = number.checked_sub(1) else { return Some((at, None)) };
            let number = number as usize;
            let entry = self.entries.get(number).filter(|_| known == hash);
            if entry.and_then(|it| self.texts.get(it.start..it.end)) == Some(name) {
                return Some((at, Some(number)));
            }
            at = at.wrapping_add(1) & last;
        }
    }

    /// Makes room for as many names again.
    fn grow(&mut self) {
        const LEAST: usize = 16;
        let count = self.slots.len().saturating_mul(2).max(LEAST);
        let old = core::mem::replace(&mut self.slots, vec![(0, 0); count]);
        let last = count.wrapping_sub(1);
        for (hash, number) in old.into_iter().filter(|(_, number)| *number != 0) {
            let mut at = hash as usize & last;
            // half of them are free
            while self.slots.get(at).is_some_and(|(_, number)| *number != 0) {
                at = at.wrapping_add(1) & last;
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = (hash, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_while_the_table_grows() {
        let mut table = NameTable::default();
        assert_eq!(table.get(b"none"), None);
        let name = |number: usize| format!("name{number}").into_bytes();
        for number in 0..1000 {
            assert_eq!(table.entry(&name(number), number), Some(&mut number.clone()));
            // the first value stays
            assert_eq!(table.entry(&name(number / 2), 5000), Some(&mut (number / 2)));
        }
        for number in 0..1000 {
            assert_eq!(table.get(&name(number)), Some(&number));
            assert_eq!(table.name(number).map(CStr::to_bytes), Some(&*name(number)));
        }
        assert_eq!(table.get(&name(1000)), None);
        assert_eq!(table.get(b""), None);
        assert!(table.values().copied().eq(0..1000));
    }
}
