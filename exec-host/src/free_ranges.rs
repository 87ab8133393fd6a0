//! Which parts of a stretch nobody has.

use core::ops::Range;

/// Free parts, by rising offset, no two beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeRanges(Vec<Range<u64>>);

impl FreeRanges {
    /// A stretch of which nobody has anything.
    pub(crate) fn of(size: u64) -> Self {
        Self(core::iter::once(0..size).collect())
    }

    /// Takes the first part that fits, and gives its offset: `size` bytes, at an address that is a multiple of `alignment`, a power of
    /// two, where the stretch starts at `base`.
    pub(crate) fn take(&mut self, size: u64, alignment: u64, base: u64) -> Option<u64> {
        let (index, free, part) = self.0.iter().enumerate().find_map(|(index, free)| {
            let address = base.wrapping_add(free.start);
            let start = free.start.checked_add(address.wrapping_neg().checked_rem(alignment)?)?;
            let end = start.checked_add(size).filter(|&end| end <= free.end)?;
            Some((index, free.clone(), start..end))
        })?;
        let rest = [free.start..part.start, part.end..free.end];
        self.0.splice(index..=index, rest.into_iter().filter(|rest| !rest.is_empty()));
        Some(part.start)
    }

    /// Makes a part free again that was taken. Gives the size of the free part that it is in then.
    pub(crate) fn give(&mut self, mut part: Range<u64>) -> u64 {
        let index = self.0.partition_point(|free| free.start < part.start);
        let mut replaced = index..index;
        if let Some(after) = self.0.get(index).filter(|after| after.start == part.end) {
            part.end = after.end;
            replaced.end = index.saturating_add(1);
        }
        let before = index.checked_sub(1).and_then(|before| self.0.get(before));
        if let Some(before) = before.filter(|before| before.end == part.start) {
            part.start = before.start;
            replaced.start = index.saturating_sub(1);
        }
        let size = part.end.saturating_sub(part.start);
        self.0.splice(replaced, [part]);
        size
    }

    /// Size of the largest part, 0 if there is none.
    pub(crate) fn largest(&self) -> u64 {
        self.0.iter().map(|free| free.end.saturating_sub(free.start)).max().unwrap_or(0)
    }

    /// The offset behind which nothing of a stretch of `size` bytes is taken.
    pub(crate) fn end_of_taken(&self, size: u64) -> u64 {
        self.0.last().filter(|last| last.end == size).map_or(size, |last| last.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_again() {
        // the stretch starts 64 bytes below an address that is a multiple of 64
        let base = 64u64.wrapping_neg();
        let mut free = FreeRanges::of(64);
        let taken = [(4, 4), (8, 16), (32, 32)];
        let taken = taken.map(|(size, alignment)| free.take(size, alignment, base).unwrap());
        assert_eq!(taken, [0, 16, 32]);
        assert_eq!(free, FreeRanges(vec![4..16, 24..32]));
        assert_eq!((free.take(16, 1, base), free.largest(), free.end_of_taken(64)), (None, 12, 64));
        assert_eq!([16..24, 0..4, 32..64].map(|part| free.give(part)), [28, 32, 64]);
        assert_eq!((&free, free.end_of_taken(64)), (&FreeRanges::of(64), 0));
    }

    #[test]
    fn addresses_are_aligned_not_offsets() {
        let mut free = FreeRanges::of(64);
        assert_eq!(free.take(8, 16, 8), Some(8));
        assert_eq!(free.take(8, 0, 0), None, "no alignment");
        assert_eq!(free, FreeRanges(vec![0..8, 16..64]));
        assert_eq!(free.take(u64::MAX, 1, 0), None);
    }
}
