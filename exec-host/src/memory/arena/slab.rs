//! A run of pages of one permission, and which of its bytes are whose.

use crate::free_ranges::FreeRanges;
use elf_core::SegmentFlags;

/// Bytes of a slab. Code that comes or goes has a slab copied; each takes a mapping, of which a process has 65,530.
pub(crate) const SIZE: u32 = 16 << 10;

/// What parts are multiples of.
const GRAIN: u32 = 16;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Code.
    Code,
    /// Data that are not written once they are relocated.
    ReadOnly,
    /// Other data.
    Writable,
}

impl Kind {
    /// That of a segment.
    pub(super) fn of(flags: SegmentFlags) -> Self {
        if flags.contains(SegmentFlags::EXECUTE) {
            Self::Code
        } else if flags.contains(SegmentFlags::WRITE) {
            Self::Writable
        } else {
            Self::ReadOnly
        }
    }
}

/// Which bytes of a slab are free.
#[derive(Debug)]
pub(super) struct Slab {
    pub(super) kind: Kind,
    free: FreeRanges,
    /// Bytes that are taken.
    pub(super) taken: u32,
    /// Size of the largest free part, or more.
    largest: u64,
    /// Code was written to it.
    pub(super) has_code: bool,
}

impl Slab {
    pub(super) fn new(kind: Kind) -> Self {
        let free = FreeRanges::of(SIZE.into());
        Self { kind, free, taken: 0, largest: SIZE.into(), has_code: false }
    }

    /// Takes a part, and gives its offset.
    pub(super) fn take(&mut self, size: u32, alignment: u32) -> Option<u32> {
        let size = round(size)?;
        if u64::from(size) > self.largest {
            return None;
        }
        let Some(start) = self.free.take(size.into(), alignment.into(), 0) else {
            self.largest = self.free.largest();
            return None;
        };
        self.taken = self.taken.saturating_add(size);
        u32::try_from(start).ok()
    }

    /// Makes a part free again that was taken with this size.
    pub(super) fn give(&mut self, start: u32, size: u32) {
        let Some(size) = round(size) else { return };
        let joined = self.free.give(start.into()..start.saturating_add(size).into());
        self.largest = self.largest.max(joined);
        self.taken = self.taken.saturating_sub(size);
    }

    /// First offset behind which nothing is taken.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.free.end_of_taken(SIZE.into())).unwrap_or(SIZE)
    }
}

/// The bytes that a part of this size takes.
fn round(size: u32) -> Option<u32> {
    size.max(1).checked_next_multiple_of(GRAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_and_go() {
        let mut slab = Slab::new(Kind::Code);
        let parts = [(100, 16), (1, 64), (5000, 4096)]
            .map(|(size, alignment)| (slab.take(size, alignment).unwrap(), size));
        assert_eq!(parts.map(|(start, _)| start), [0, 128, 4096]);
        assert_eq!((slab.taken, slab.end()), (112 + 16 + 5008, 9104));
        assert_eq!(slab.take(3900, 16), Some(144), "in between");
        assert_eq!(slab.take(SIZE, 16), None);
        slab.give(144, 3900);
        for (start, size) in parts {
            slab.give(start, size);
        }
        assert_eq!((slab.taken, slab.end()), (0, 0));
        assert_eq!(slab.take(SIZE, 4096), Some(0));
    }
}
