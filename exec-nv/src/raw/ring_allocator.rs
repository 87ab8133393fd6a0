//! Memory for what a channel reads: push buffers, launch blocks, constant banks. It is used in a circle, behind the channel.

use std::collections::VecDeque;

use super::error::Error;

/// Alignment of everything in it, which is that of launch blocks.
const ALIGNMENT: u64 = 256;

/// A stretch of memory that is given out in a circle.
#[derive(Debug)]
pub(super) struct RingAllocator {
    start: u64,
    size: u64,
    /// Offset of what is given out next.
    head: u64,
    /// What is not known to be read yet: its end, and the point of the channel after which it is.
    in_use: VecDeque<(u64, u64)>,
    /// Bytes that are given out, gaps included.
    used: u64,
}

/// What [`RingAllocator::allocate`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// Bytes from this offset on.
    At(u64),
    /// There is room when the channel has come to this point.
    After(u64),
}

impl RingAllocator {
    /// All of a stretch of memory.
    pub(super) const fn new(start: u64, size: u64) -> Self {
        Self { start, size, head: 0, in_use: VecDeque::new(), used: 0 }
    }

    /// Takes `size` bytes until the channel is past `point`, the one that it comes to next.
    pub(super) fn allocate(&mut self, size: u64, point: u64) -> Result<Allocation, Error> {
        let too_long = Error::TooLong {
            what: "bytes of one submission",
            count: usize::try_from(size).unwrap_or(usize::MAX),
            limit: usize::try_from(self.size).unwrap_or(usize::MAX),
        };
        let size =
            size.max(1).checked_next_multiple_of(ALIGNMENT).filter(|&size| size <= self.size);
        let size = size.ok_or(too_long.clone())?;
        let rest = self.size - self.head;
        // nothing goes over the end
        let gap = if size > rest { rest } else { 0 };
        if self.used + gap + size > self.size {
            return match self.in_use.front() {
                // what the same submission has taken is never read before it is made
                Some(&(_, first)) if first < point => Ok(Allocation::After(first)),
                _ => Err(too_long),
            };
        }
        let at = if gap > 0 { 0 } else { self.head };
        self.head = (at + size) % self.size;
        self.used += gap + size;
        self.in_use.push_back((gap + size, point));
        Ok(Allocation::At(self.start + at))
    }

    /// The channel has come to `point`.
    pub(super) fn reached(&mut self, point: u64) {
        while let Some(&(size, its)) = self.in_use.front()
            && its <= point
        {
            self.in_use.pop_front();
            self.used -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_round_behind_the_channel() {
        let mut ring = RingAllocator::new(0x1000, 0x400);
        assert_eq!(ring.allocate(0x101, 1), Ok(Allocation::At(0x1000)));
        assert_eq!(ring.allocate(0x80, 2), Ok(Allocation::At(0x1200)));
        // 0x100 are left at the end
        assert_eq!(ring.allocate(0x200, 3), Ok(Allocation::After(1)));
        ring.reached(1);
        assert_eq!(ring.allocate(0x200, 3), Ok(Allocation::At(0x1000)));
        assert_eq!(ring.allocate(1, 4), Ok(Allocation::After(2)));
        ring.reached(3);
        assert_eq!(ring.allocate(0x200, 4), Ok(Allocation::At(0x1200)));
        assert_eq!(ring.allocate(1, 4), Ok(Allocation::At(0x1000)));
        assert!(ring.allocate(0x401, 5).is_err());
        // one submission cannot wait for itself
        ring.reached(4);
        assert_eq!(ring.allocate(0x300, 5), Ok(Allocation::At(0x1100)));
        assert!(ring.allocate(0x300, 5).is_err());
    }
}
