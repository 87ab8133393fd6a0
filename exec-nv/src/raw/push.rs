//! Push buffers: words of methods that a channel reads, and the ring entries that point at them (`clc56f.h`, `clc86f.h`).

use super::error::Error;
use super::methods::{Method, channel};

/// Methods for the engines of one channel, in order.
///
/// ```
/// # use exec_nv::raw::{PushBuffer, methods::compute};
/// let mut push = PushBuffer::new();
/// push.methods(compute::SET_OBJECT, &[0xcbc0])?;
/// assert_eq!(push.words(), [0x2001_2000, 0xcbc0]);
/// # Ok::<(), exec_nv::raw::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushBuffer {
    words: Vec<u32>,
}

/// Each word goes to the method behind the one before.
const INCREMENTING: u32 = 1;
/// All words go to one method.
const NON_INCREMENTING: u32 = 3;
/// Count of a header: 13 bits.
const MAX_COUNT: usize = 0x1fff;

/// Payload of 64 bits.
const PAYLOAD_64: u32 = 1 << 24;
/// Give the channel's place away while it waits.
const SWITCH: u32 = 1 << 12;
/// Wait until the engine is idle.
const RELEASE_WFI: u32 = 1 << 20;
/// Write the time in nanoseconds behind the payload.
const RELEASE_TIMESTAMP: u32 = 1 << 25;
/// Write the payload.
const RELEASE: u32 = 1;
/// Wait until the value is the payload or was passed by it.
const ACQUIRE_CIRCULAR_GEQ: u32 = 3;

impl PushBuffer {
    /// Nothing to do.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// What the channel reads.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// `values` for `method` and those behind it.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than 8191 values.
    pub fn methods(&mut self, method: Method, values: &[u32]) -> Result<&mut Self, Error> {
        self.put(INCREMENTING, method, values)
    }

    /// `values` for `method`, one after the other.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than 8191 values.
    pub fn repeated(&mut self, method: Method, values: &[u32]) -> Result<&mut Self, Error> {
        self.put(NON_INCREMENTING, method, values)
    }

    /// Waits until the word of 8 bytes at `address` has come to `value`, modulo 2^64.
    ///
    /// # Errors
    /// [`Error::Address`] unless the address is a multiple of 8 below 2^57.
    pub fn acquire(&mut self, address: u64, value: u64) -> Result<&mut Self, Error> {
        self.semaphore(address, value, ACQUIRE_CIRCULAR_GEQ | SWITCH | PAYLOAD_64)
    }

    /// Writes `value` and the time to the 16 bytes at `address` when all before it is done.
    ///
    /// # Errors
    /// [`Error::Address`] unless the address is a multiple of 8 below 2^57.
    pub fn release(&mut self, address: u64, value: u64) -> Result<&mut Self, Error> {
        self.semaphore(address, value, RELEASE | RELEASE_WFI | PAYLOAD_64 | RELEASE_TIMESTAMP)
    }

    fn semaphore(&mut self, address: u64, value: u64, execute: u32) -> Result<&mut Self, Error> {
        check_address("semaphore", address, 1 << 57, 8)?;
        let [address_low, address_high] = halves(address);
        let [low, high] = halves(value);
        self.methods(channel::SEM_ADDR_LO, &[address_low, address_high, low, high, execute])
    }

    fn put(&mut self, opcode: u32, method: Method, values: &[u32]) -> Result<&mut Self, Error> {
        let too_long =
            Error::TooLong { what: "values of a method", count: values.len(), limit: MAX_COUNT };
        let count = u32::try_from(values.len()).ok().filter(|&count| count as usize <= MAX_COUNT);
        let count = count.ok_or(too_long)?;
        self.words.push(method.header(opcode, count));
        self.words.extend_from_slice(values);
        Ok(self)
    }
}

/// Low word first.
pub(super) const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

pub(super) const fn check_address(
    what: &'static str,
    address: u64,
    limit: u64,
    alignment: u64,
) -> Result<(), Error> {
    if address < limit && address.is_multiple_of(alignment) {
        Ok(())
    } else {
        Err(Error::Address { what, address, limit, alignment })
    }
}

/// A ring entry: `words` words of methods at a device address.
///
/// # Errors
/// [`Error::Address`] unless the address is a multiple of 4 below 2^40, [`Error::TooLong`] for 2^21 words or more.
pub fn gpfifo_entry(address: u64, words: usize) -> Result<u64, Error> {
    check_address("push buffer", address, 1 << 40, 4)?;
    let limit = (1 << 21) - 1;
    match u64::try_from(words) {
        Ok(length) if words <= limit => Ok(address | LEVEL_SUBROUTINE | length << 42),
        _ => Err(Error::TooLong { what: "words of a push buffer", count: words, limit }),
    }
}

/// The words are a subroutine of the ring.
const LEVEL_SUBROUTINE: u64 = 1 << 41;

#[cfg(test)]
mod tests {
    use super::super::methods::compute;
    use super::*;

    // Words as the kernel's own driver and open sources write them.
    #[test]
    fn headers() {
        let mut push = PushBuffer::new();
        push.methods(compute::SET_OBJECT, &[0xcbc0]).unwrap();
        push.repeated(compute::LOAD_INLINE_DATA, &[1, 2]).unwrap();
        // opcode << 29 | count << 16 | subchannel << 13 | method >> 2
        assert_eq!(push.words(), [0x2001_2000, 0xcbc0, 0x6002_206d, 1, 2]);
    }

    #[test]
    fn semaphores() {
        let mut push = PushBuffer::new();
        push.acquire(0x12_3456_7890, 5).unwrap().release(0x1000, 0x1_0000_0006).unwrap();
        assert_eq!(
            push.words(),
            [
                0x2005_0017,
                0x3456_7890,
                0x12,
                5,
                0,
                0x0100_1003, //
                0x2005_0017,
                0x1000,
                0,
                6,
                1,
                0x0310_0001,
            ]
        );
        let error = push.acquire(0x1004, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "semaphore at 0x1004: must be a multiple of 8 below 0x200000000000000"
        );
    }

    #[test]
    fn ring_entries() {
        assert_eq!(gpfifo_entry(0x12_3456_7890, 7), Ok(0x1e12_3456_7890));
        assert_eq!(gpfifo_entry(0xff_ffff_fffc, 0x1f_ffff), Ok(0x7fff_feff_ffff_fffc));
        assert!(gpfifo_entry(1 << 40, 1).is_err());
        assert!(gpfifo_entry(2, 1).is_err());
        assert!(gpfifo_entry(0, 1 << 21).is_err());
    }

    #[test]
    fn a_method_takes_what_a_header_counts() {
        let mut push = PushBuffer::new();
        assert!(push.methods(compute::SET_OBJECT, &[0; 0x1fff]).is_ok());
        let before = push.clone();
        let error = push.methods(compute::SET_OBJECT, &[0; 0x2000]).unwrap_err();
        assert_eq!(error.to_string(), "8192 values of a method: at most 8191");
        assert_eq!(push, before);
    }
}
