//! The ring of a channel: entries that point at push buffers, a control page, a doorbell.

use super::error::Error;
use super::push::{gpfifo_entry, halves};
use super::system::Mapping;

/// Offset of the doorbell in a usermode region.
pub const DOORBELL: u64 = 0x90;
/// `GPGet` of the control page: the next entry that the GPU will read.
const GP_GET: u64 = 0x88;
/// `GPPut` of the control page: the first entry that is not to be read yet.
const GP_PUT: u64 = 0x8c;

/// A ring of entries and its control page, both in one mapping.
#[derive(Debug)]
pub struct Ring {
    /// Offset of the first entry in the mapping.
    pub entries_at: u64,
    /// Number of entries, a power of two.
    pub entries: u32,
    /// Offset of the control page.
    pub control_at: u64,
    /// What the doorbell is rung with.
    pub token: u32,
    put: u32,
}

impl Ring {
    /// A ring that nothing was submitted to.
    ///
    /// # Errors
    /// [`Error::TooLong`] unless `entries` is a power of two up to 2^20.
    pub const fn new(
        entries_at: u64,
        entries: u32,
        control_at: u64,
        token: u32,
    ) -> Result<Self, Error> {
        let limit = 1 << 20;
        if entries.is_power_of_two() && entries <= limit {
            Ok(Self { entries_at, entries, control_at, token, put: 0 })
        } else {
            let (count, limit) = (entries as usize, limit as usize);
            Err(Error::TooLong { what: "entries of a ring", count, limit })
        }
    }

    /// Whether the GPU has to read an entry before another one can be submitted.
    ///
    /// # Errors
    /// [`Error::NotSeen`] if the ring does not lie in the mapping.
    pub fn is_full(&self, memory: &impl Mapping) -> Result<bool, Error> {
        let get = memory.read(self.control_at + GP_GET).ok_or(Error::NotSeen)?;
        Ok(self.put.wrapping_add(1) & (self.entries - 1) == get)
    }

    /// Has the GPU read `words` words of methods at a device address. Those must have been written before.
    ///
    /// # Errors
    /// As [`gpfifo_entry`]; [`Error::TooLong`] if the ring is full or does not lie in the mapping. Nothing is submitted then.
    pub fn submit(
        &mut self,
        memory: &impl Mapping,
        doorbell: &impl Mapping,
        address: u64,
        words: usize,
    ) -> Result<(), Error> {
        let entry = gpfifo_entry(address, words)?;
        let full = Error::TooLong {
            what: "entries in flight",
            count: self.entries as usize,
            limit: self.entries.saturating_sub(1) as usize,
        };
        let next = self.put.wrapping_add(1) & (self.entries - 1);
        let get = memory.read(self.control_at + GP_GET).ok_or(full.clone())?;
        let at = self.entries_at + u64::from(self.put) * 8;
        if next == get || !memory.write(at, &halves(entry)) {
            return Err(full);
        }
        memory.fence();
        if !memory.write(self.control_at + GP_PUT, &[next]) {
            return Err(full);
        }
        memory.fence();
        self.put = next;
        if !doorbell.write(DOORBELL, &[self.token]) {
            return Err(full);
        }
        // the ring leaves the processor now, not when something else is written
        doorbell.fence();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Memory;
    use super::*;

    #[test]
    fn an_entry_a_fence_the_control_page_a_fence_the_doorbell_a_fence() {
        let (memory, doorbell) = (Memory::new(0x100), Memory::new(0x100));
        let mut ring = Ring::new(0x10, 4, 0x40, 0x77).unwrap();
        ring.submit(&memory, &doorbell, 0x1000, 2).unwrap();
        assert_eq!(memory.take_log(), ["0x10: 0x1000 0xa00", "fence", "0xcc: 0x1", "fence"]);
        assert_eq!(doorbell.take_log(), ["0x90: 0x77", "fence"]);
    }

    #[test]
    fn a_full_ring_is_said_and_goes_on_when_the_gpu_has_read() {
        let (memory, doorbell) = (Memory::new(0x100), Memory::new(0x100));
        let mut ring = Ring::new(0x10, 4, 0x40, 0x77).unwrap();
        for _ in 0..3 {
            ring.submit(&memory, &doorbell, 0x1000, 2).unwrap();
        }
        memory.take_log();
        let error = ring.submit(&memory, &doorbell, 0x1000, 2).unwrap_err();
        assert_eq!(error.to_string(), "4 entries in flight: at most 3");
        assert!(memory.take_log().is_empty());
        assert!(memory.write(0x40 + GP_GET, &[2]));
        memory.take_log();
        ring.submit(&memory, &doorbell, 0x2000, 1).unwrap();
        assert_eq!(memory.take_log()[..3], ["0x28: 0x2000 0x600", "fence", "0xcc: 0x0"]);
    }

    #[test]
    fn rings_are_powers_of_two() {
        assert!(Ring::new(0, 3, 0, 0).is_err());
        assert!(Ring::new(0, 0, 0, 0).is_err());
        assert!(Ring::new(0, 1 << 21, 0, 0).is_err());
    }
}
