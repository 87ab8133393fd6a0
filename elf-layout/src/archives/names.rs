//! Names by number: each is kept once.

use super::table::{Hash, HashTable};
use alloc::vec::Vec;
use elf_core::Name;

/// Names, numbered in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    text: Vec<u8>,
    /// Where each name ends in the text.
    ends: Vec<usize>,
    hashes: Vec<Hash>,
    /// Their numbers.
    table: HashTable,
}

impl Names {
    pub(super) const fn new() -> Self {
        Self { text: Vec::new(), ends: Vec::new(), hashes: Vec::new(), table: HashTable::new() }
    }

    /// Number of names.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// The name of a number; an empty one if there is none.
    pub(super) fn get(&self, number: u32) -> Name<'_> {
        name(&self.text, &self.ends, number)
    }

    /// The hash of that name.
    pub(super) fn hash(&self, number: u32) -> Hash {
        self.hashes.get(number as usize).copied().unwrap_or_default()
    }

    /// The number of the first name with this hash, which is most probably the only one. To ask for many at once is faster than for one at a
    /// time: what processors have to fetch for one does not wait for what they fetch for another.
    #[inline]
    pub(super) fn candidate(&self, hash: Hash) -> Option<u32> {
        self.table.candidate(hash)
    }

    /// The number of a name that has this hash, whose candidate that was: a new one if it has none yet.
    #[inline]
    pub(super) fn number_at(
        &mut self,
        candidate: Option<u32>,
        hash: Hash,
        wanted: Name<'_>,
    ) -> u32 {
        match candidate.filter(|number| self.get(*number) == wanted) {
            Some(number) => number,
            None => self.number_by(hash, wanted),
        }
    }

    /// The number of a name, a new one if it has none yet.
    pub(super) fn number(&mut self, wanted: Name<'_>) -> u32 {
        self.number_by(Hash::of(wanted), wanted)
    }

    /// The same of a name that has this hash.
    #[inline]
    pub(super) fn number_by(&mut self, hash: Hash, wanted: Name<'_>) -> u32 {
        let Self { text, ends, hashes, table } = self;
        let next = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        let number = table.find_or_insert(hash, next, |number| name(text, ends, number) == wanted);
        if number == next {
            text.extend_from_slice(wanted.as_bytes());
            ends.push(text.len());
            hashes.push(hash);
        }
        number
    }
}

fn name<'t>(text: &'t [u8], ends: &[usize], number: u32) -> Name<'t> {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(number).copied().unwrap_or(start);
    Name(text.get(start..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    extern crate std;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::new();
        for round in 0..2 {
            for number in 0..1000 {
                let name = format!("name{number}");
                assert_eq!(names.number(name.as_str().into()), number, "{round}");
            }
        }
        assert_eq!(names.len(), 1000);
        assert_eq!(names.get(7), "name7");
        assert!(names.get(1000).is_empty());
    }

    #[test]
    fn names_of_one_hash_are_told_apart() {
        let (mut names, hash) = (Names::new(), Hash::of("one".into()));
        assert_eq!(names.candidate(hash), None);
        assert_eq!(names.number_at(None, hash, "one".into()), 0);
        assert_eq!(names.candidate(hash), Some(0));
        assert_eq!(names.number_at(Some(0), hash, "another".into()), 1);
        assert_eq!(names.candidate(hash), Some(0));
        // the candidate of a name that has come meanwhile is nobody
        for candidate in [None, Some(0), Some(7)] {
            assert_eq!(names.number_at(candidate, hash, "one".into()), 0);
            assert_eq!(names.number_at(candidate, hash, "another".into()), 1);
        }
        assert_eq!(names.len(), 2);
    }
}
