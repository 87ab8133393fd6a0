//! What a range of the new file consists of, piece by piece, and at which address.

use std::ops::Range;

use crate::edits::With;

/// Pieces one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The address of the first.
    address: u64,
    size: u64,
    parts: Vec<With>,
}

impl Content {
    /// Nothing yet, at an address.
    pub(super) const fn at(address: u64) -> Self {
        Self { address, size: 0, parts: Vec::new() }
    }

    /// Bytes up to now.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The address behind all up to now.
    pub(super) const fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// Adds zeros up to a size.
    pub(super) fn fill(&mut self, size: u64) {
        if size > self.size {
            self.parts.push(With::Zeros(size.saturating_sub(self.size)));
            self.size = size;
        }
    }

    /// Adds zeros up to an aligned address, and then something; gives its address.
    pub(super) fn push(&mut self, alignment: u64, with: With) -> u64 {
        let at = self.end().next_multiple_of(alignment.max(1));
        self.fill(at.saturating_sub(self.address));
        self.size = self.size.saturating_add(with.size());
        self.parts.push(with);
        at
    }

    /// Adds something at an address that agrees with `old` by multiples of `unit`; gives its address.
    pub(super) fn push_as(&mut self, old: u64, unit: u64, with: With) -> u64 {
        let less = self.end().wrapping_sub(old).checked_rem(unit).unwrap_or(0);
        let more = if less == 0 { 0 } else { unit.saturating_sub(less) };
        self.fill(self.size.saturating_add(more));
        self.push(1, with)
    }

    /// The pieces, with `bytes` where the file's range `kept` would be.
    pub(super) fn into_parts(self, kept: Option<(&Range<u64>, &[u8])>) -> Vec<With> {
        let put = |with| match (with, kept) {
            (With::Kept(range), Some((kept, bytes))) if range == *kept => {
                With::Made(bytes.to_vec())
            }
            (with, _) => with,
        };
        self.parts.into_iter().map(put).collect()
    }
}
