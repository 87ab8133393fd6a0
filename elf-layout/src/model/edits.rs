//! Bytes that go from sections, since shorter code does, and where that leaves the rest.

use core::cell::Cell;
use elf_core::Arch;

/// Whether code of this architecture may become shorter.
pub(crate) const fn may_shrink<A: Arch>() -> bool {
    // found out once, not at every record
    const { cfg!(feature = "edits") && elf_core::shrinks(A::KINDS) }
}

/// A place where code may become shorter: padding, or instructions for which shorter ones may do. Offsets are those of the file, in bytes
/// from the start of the section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit {
    pub(crate) place: u32,
    /// Index of the record that is for it.
    pub(crate) record: u32,
    /// Bytes from the place to those that go.
    pub(crate) kept: u32,
    /// Bytes that go.
    pub(crate) deleted: u32,
    /// Bytes that go before the place.
    pub(crate) before: u32,
    /// All stays: what has once become longer again does not become shorter any more.
    pub(crate) stays: bool,
}

impl Edit {
    /// Offset of the first byte that goes.
    const fn start(&self) -> u64 {
        (self.place as u64).wrapping_add(self.kept as u64)
    }

    /// Offset of the first byte behind those that go.
    const fn end(&self) -> u64 {
        self.start().wrapping_add(self.deleted as u64)
    }
}

/// Where the edits of a section stand among all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EditRange {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl EditRange {
    pub(crate) fn of(self, edits: &[Edit]) -> Edits<'_> {
        let rest = edits.get(self.first as usize..).unwrap_or_default();
        Edits::new(rest.get(..self.count as usize).unwrap_or_default())
    }

    pub(crate) fn of_mut(self, edits: &mut [Edit]) -> &mut [Edit] {
        let rest = edits.get_mut(self.first as usize..).unwrap_or_default();
        rest.get_mut(..self.count as usize).unwrap_or_default()
    }
}

/// The edits of one section, by rising place, of which those that were asked for last are found sooner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits<'e> {
    edits: &'e [Edit],
    /// How many were before the offset that was asked for last.
    near: Cell<usize>,
}

impl<'e> Edits<'e> {
    pub(crate) const fn new(edits: &'e [Edit]) -> Self {
        Self { edits, near: Cell::new(0) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Bytes that go from the whole section.
    pub(crate) fn deleted(&self) -> u64 {
        self.edits.last().map_or(0, |last| u64::from(last.before).wrapping_add(last.deleted.into()))
    }

    /// How many edits have their place before `offset`.
    fn before(&self, offset: u64) -> usize {
        let is_before = |edit: &Edit| u64::from(edit.place) < offset;
        let mut count = self.near.get();
        let reached = count.checked_sub(1).and_then(|last| self.edits.get(last));
        if reached.is_none_or(is_before) {
            // records stand in order
            for _ in 0..8 {
                if !self.edits.get(count).is_some_and(is_before) {
                    self.near.set(count);
                    return count;
                }
                count = count.wrapping_add(1);
            }
        }
        let count = self.edits.partition_point(is_before);
        self.near.set(count);
        count
    }

    /// Where `offset` is among the edits.
    // a part of every search where there is room for code, else one function for all
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn spot(&self, offset: u64) -> Spot<'e> {
        Spot { edits: self.edits, offset, before: self.before(offset) }
    }

    /// Where byte `offset` of the file's section is now, or where those are that followed it, if it is gone.
    // as above
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) fn moved(&self, offset: u64) -> u64 {
        self.spot(offset).moved()
    }

    /// The edit whose place is `offset`.
    pub(crate) fn at(&self, offset: u64) -> Option<&'e Edit> {
        self.spot(offset).edit()
    }

    /// The runs of bytes that stay, of `size` in the file: start, size, and where they are now.
    pub(crate) fn runs(&self, size: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<'e> {
        let starts =
            core::iter::once((0, 0)).chain(self.edits.iter().map(|edit| {
                (edit.end(), u64::from(edit.before).wrapping_add(edit.deleted.into()))
            }));
        let ends = self.edits.iter().map(Edit::start).chain(core::iter::once(size));
        starts.zip(ends).map(|((start, gone), end)| {
            (start, end.saturating_sub(start), start.wrapping_sub(gone))
        })
    }

    /// Copies the runs of `data` that stay.
    pub(crate) fn copy(&self, data: &[u8], image: &mut [u8]) {
        for (start, size, at) in self.runs(data.len() as u64) {
            let bytes = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let from = data.get(bytes(start)..).and_then(|rest| rest.get(..bytes(size)));
            let to = image.get_mut(bytes(at)..).and_then(|rest| rest.get_mut(..bytes(size)));
            for (to, from) in to.unwrap_or_default().iter_mut().zip(from.unwrap_or_default()) {
                *to = *from;
            }
        }
    }
}

/// An offset of the file's section, and the edits around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'e> {
    edits: &'e [Edit],
    offset: u64,
    /// How many edits have their place before it.
    before: usize,
}

impl<'e> Spot<'e> {
    /// The last edit whose place is before it.
    #[inline]
    fn last(&self) -> Option<&'e Edit> {
        self.edits.get(self.before.checked_sub(1)?)
    }

    /// Where the byte is now, or where those are that followed it, if it is gone.
    // as above
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn moved(&self) -> u64 {
        self.last().map_or(self.offset, |edit| {
            let gone = self.offset.saturating_sub(edit.start()).min(edit.deleted.into());
            self.offset.wrapping_sub(edit.before.into()).wrapping_sub(gone)
        })
    }

    /// The edit whose place it is.
    #[inline]
    pub(crate) fn edit(&self) -> Option<&'e Edit> {
        let edit = self.edits.get(self.before)?;
        (u64::from(edit.place) == self.offset).then_some(edit)
    }

    /// Whether all of `size` bytes stay, and stay together.
    // as above
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn keeps(&self, size: u64) -> bool {
        let end = self.offset.saturating_add(size);
        let cuts = |edit: &Edit| edit.deleted > 0 && edit.start() < end && edit.end() > self.offset;
        let around = self.edits.get(self.before.saturating_sub(1)..).unwrap_or_default();
        !around.iter().take_while(|edit| u64::from(edit.place) < end).any(cuts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `c.j` for 8 bytes at 4, nothing for 4 bytes at 16, 2 of 6 bytes of padding at 24.
    const EDITS: [Edit; 3] = [
        Edit { place: 4, record: 0, kept: 2, deleted: 6, before: 0, stays: false },
        Edit { place: 16, record: 0, kept: 0, deleted: 4, before: 6, stays: false },
        Edit { place: 24, record: 0, kept: 4, deleted: 2, before: 10, stays: false },
    ];

    #[test]
    fn offsets_move() {
        let edits = Edits::new(&EDITS);
        let moved = [
            (0, 0),
            (4, 4),
            (5, 5),
            (6, 6),
            (8, 6),
            (12, 6),
            (14, 8),
            (16, 10),
            (18, 10),
            (20, 10),
            (24, 14),
            (28, 18),
            (30, 18),
            (32, 20),
        ];
        for (offset, at) in moved {
            assert_eq!(edits.moved(offset), at, "{offset}");
        }
        // in any order
        for (offset, at) in moved.into_iter().rev() {
            assert_eq!(edits.moved(offset), at, "{offset}");
        }
        assert_eq!(edits.deleted(), 12);
    }

    #[test]
    fn what_stays_together() {
        let edits = Edits::new(&EDITS);
        for (offset, size, keeps) in [
            (0, 6, true),
            (0, 7, false),
            (11, 1, false),
            (12, 4, true),
            (16, 1, false),
            (20, 8, true),
            (29, 1, false),
            (30, 100, true),
            (12, 8, false),
            // over all three
            (0, 40, false),
            (15, 14, false),
        ] {
            assert_eq!(edits.spot(offset).keeps(size), keeps, "{offset} {size}");
        }
        // over the end of one of which nothing goes
        let whole = [Edit { kept: 8, ..Edit::default() }];
        assert!(Edits::new(&whole).spot(4).keeps(8));
        let runs = [(0, 6, 0), (12, 4, 6), (20, 8, 10), (30, 10, 18)];
        assert!(edits.runs(40).eq(runs));
    }
}
