//! Device addresses: which of a range are free.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Addresses of memory that a process sees too, at the same place as the GPU: below 2^37, so that they fit everything that stores
/// addresses in fewer bits, and where Linux puts nothing by itself.
const SHARED: (u64, u64) = (0x10_0000_0000, 0x1c_0000_0000);
/// Addresses where the driver maps context buffers of channels.
pub(super) const CONTEXTS: (u64, u64) = (0x1c_0000_0000, 0x20_0000_0000);
/// Addresses that the GPU alone sees: below 2^40, as what launches take.
pub(super) const DEVICE: (u64, u64) = (0x20_0000_0000, 0x80_0000_0000);

/// Addresses of [`SHARED`] are the process's, of all its GPUs.
static OF_PROCESS: LazyLock<Mutex<Addresses>> =
    LazyLock::new(|| Mutex::new(Addresses::new(SHARED)));

/// Free stretches of a range, taken from the lowest address on.
#[derive(Debug)]
pub(super) struct Addresses {
    /// Start and end of what is free, apart from each other.
    free: BTreeMap<u64, u64>,
}

impl Addresses {
    /// All of a range, given by start and end, is free.
    pub(super) fn new((start, end): (u64, u64)) -> Self {
        Self { free: BTreeMap::from([(start, end)]) }
    }

    /// Takes `size` addresses at a multiple of `alignment`, a power of two; nothing if there are not so many in a row.
    pub(super) fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let fit = |(&start, &end): (&u64, &u64)| {
            let at = start.checked_next_multiple_of(alignment)?;
            (at.checked_add(size)? <= end).then_some((start, end, at))
        };
        let (start, end, at) = self.free.iter().find_map(fit)?;
        self.free.remove(&start);
        if start < at {
            self.free.insert(start, at);
        }
        if at + size < end {
            self.free.insert(at + size, end);
        }
        Some(at)
    }

    /// Gives back what was taken.
    pub(super) fn give(&mut self, start: u64, size: u64) {
        let (mut start, mut end) = (start, start.saturating_add(size));
        if let Some((&before, &its_end)) = self.free.range(..start).next_back()
            && its_end == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(its_end) = self.free.remove(&end) {
            end = its_end;
        }
        self.free.insert(start, end);
    }
}

/// Takes addresses that this process and a GPU are to see alike.
pub(super) fn take_shared(size: u64, alignment: u64) -> Option<u64> {
    OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner).take(size, alignment)
}

/// Gives back addresses of [`take_shared`].
pub(super) fn give_shared(start: u64, size: u64) {
    OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner).give(start, size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_whole_again() {
        let mut addresses = Addresses::new((0x1000, 0x9000));
        let taken: Vec<u64> = (0..4).map(|_| addresses.take(0x1000, 0x2000).unwrap()).collect();
        assert_eq!(taken, [0x2000, 0x4000, 0x6000, 0x8000]);
        assert_eq!(addresses.take(0x1000, 0x2000), None, "what is left is not aligned");
        assert_eq!(addresses.take(0x1000, 0x1000), Some(0x1000));
        for at in [0x4000, 0x8000, 0x1000, 0x2000, 0x6000] {
            addresses.give(at, 0x1000);
        }
        assert_eq!(addresses.free, BTreeMap::from([(0x1000, 0x9000)]));
        assert_eq!(addresses.take(0x8000, 1), Some(0x1000));
        assert_eq!(addresses.take(1, 1), None);
        assert_eq!(addresses.take(u64::MAX, 1), None);
    }
}
