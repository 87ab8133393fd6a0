//! What a channel is told to do: set up, launch, copy.

use super::error::Error;
use super::local_memory::{LocalMemory, Shape};
use super::methods::{compute, copy};
use super::push::{PushBuffer, check_address, halves};
use super::qmd;

/// Where kernels see local memory: a window of 4 GiB that hides what lies there.
pub const LOCAL_WINDOW: u64 = 0x7293_0000_0000;
/// Where kernels see shared memory: likewise. Hopper wants a multiple of 4 GiB.
pub const SHARED_WINDOW: u64 = 0x7294_0000_0000;

/// Instruction (bit 0), global data (4) and constant (12) caches.
const ALL_SHADER_CACHES: u32 = 0x1011;
/// `SEND_SIGNALING_PCAS2_B`: how the scheduler takes a block.
const INVALIDATE_COPY_SCHEDULE: u32 = 3;

/// `LAUNCH_DMA` of the copy engine: not pipelined, both sides by pitch.
const PLAIN_COPY: u32 = 0x182;
/// Bytes of a line that the copy engine takes at once.
const MAX_LINE: u64 = 1 << 31;

impl PushBuffer {
    /// Binds a compute class and places its windows: once for a channel.
    ///
    /// # Errors
    /// None with these constants.
    pub fn set_up_compute(&mut self, class: u32) -> Result<&mut Self, Error> {
        let high_first = |address| {
            let [low, high] = halves(address);
            [high, low]
        };
        self.methods(compute::SET_OBJECT, &[class])?
            .methods(compute::SET_SHADER_LOCAL_MEMORY_WINDOW_A, &high_first(LOCAL_WINDOW))?
            .methods(compute::SET_SHADER_SHARED_MEMORY_WINDOW_A, &high_first(SHARED_WINDOW))
    }

    /// Binds a copy class: once for a channel.
    ///
    /// # Errors
    /// None.
    pub fn set_up_copy(&mut self, class: u32) -> Result<&mut Self, Error> {
        self.methods(copy::SET_OBJECT, &[class])
    }

    /// Gives all threads local memory at a device address, when all that runs is done: that uses another one.
    ///
    /// # Errors
    /// [`Error::Address`] unless the buffer is a multiple of 256 below 2^49.
    pub fn set_local_memory(
        &mut self,
        address: u64,
        size: LocalMemory,
    ) -> Result<&mut Self, Error> {
        check_address("local memory", address, 1 << 49, 0x100)?;
        let [low, high] = halves(address);
        let [tpc_low, tpc_high] = halves(size.tpc);
        let non_throttled = compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A;
        self.methods(compute::WAIT_FOR_IDLE, &[0])?
            .methods(compute::SET_SHADER_LOCAL_MEMORY_A, &[high, low])?
            .methods(non_throttled, &[tpc_high, tpc_low, 0xff])
    }

    /// Launches the block at a device address: Ampere and later.
    ///
    /// # Errors
    /// [`Error::Address`] unless it is a multiple of 256 below 2^40.
    pub fn launch(&mut self, block: u64) -> Result<&mut Self, Error> {
        check_address("QMD", block, 1 << 40, qmd::ALIGNMENT)?;
        let [shifted, _] = halves(block >> 8);
        self.methods(compute::INVALIDATE_SHADER_CACHES_NO_WFI, &[ALL_SHADER_CACHES])?
            .methods(compute::SEND_PCAS_A, &[shifted])?
            .methods(compute::SEND_SIGNALING_PCAS2_B, &[INVALIDATE_COPY_SCHEDULE])
    }

    /// Copies `size` bytes between device addresses with the copy engine.
    ///
    /// # Errors
    /// [`Error::Address`] for an address of 2^57 or more.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<&mut Self, Error> {
        let end = |address: u64| address.saturating_add(size).saturating_sub(1);
        check_address("end of the copy's source", end(from), 1 << 57, 1)?;
        check_address("end of the copy's destination", end(to), 1 << 57, 1)?;
        let mut done = 0;
        while done < size {
            let part = (size - done).min(MAX_LINE);
            let [in_low, in_high] = halves(from + done);
            let [out_low, out_high] = halves(to + done);
            let [length, _] = halves(part);
            self.methods(copy::OFFSET_IN_UPPER, &[in_high, in_low, out_high, out_low])?
                .methods(copy::LINE_LENGTH_IN, &[length, 1])?
                .methods(copy::LAUNCH_DMA, &[PLAIN_COPY])?;
            done += part;
        }
        Ok(self)
    }
}

impl Shape {
    /// How many SMs there are.
    #[must_use]
    pub const fn sms(self) -> u64 {
        self.gpcs as u64 * self.tpcs_per_gpc as u64 * self.sms_per_tpc as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_is_set_up_once() {
        let mut push = PushBuffer::new();
        push.set_up_compute(0xcbc0).unwrap();
        assert_eq!(
            push.words(),
            [0x2001_2000, 0xcbc0, 0x2002_21ec, 0x7293, 0, 0x2002_20a8, 0x7294, 0]
        );
    }

    #[test]
    fn a_launch_names_the_block_without_its_low_bits() {
        let mut push = PushBuffer::new();
        push.launch(0xff_ffff_ff00).unwrap();
        assert_eq!(push.words(), [0x2001_25a6, 0x1011, 0x2001_20ad, 0xffff_ffff, 0x2001_20b0, 3]);
        assert!(push.launch(0x80).is_err());
        assert!(push.launch(1 << 40).is_err());
    }

    #[test]
    fn copies_are_cut_where_a_line_ends() {
        let mut push = PushBuffer::new();
        push.copy(0x2_0000_0000, 0x1_0000_0000, MAX_LINE + 4).unwrap();
        let one = |from: u64, to: u64, size: u32| {
            let ([from_low, from_high], [to_low, to_high]) = (halves(from), halves(to));
            let line = [0x2002_8106, size, 1, 0x2001_80c0, 0x182];
            [[0x2004_8100, from_high, from_low, to_high, to_low], line].concat()
        };
        let second = one(0x1_8000_0000, 0x2_8000_0000, 4);
        assert_eq!(push.words(), [one(0x1_0000_0000, 0x2_0000_0000, 1 << 31), second].concat());
        assert_eq!(PushBuffer::new().copy(0, 0, 0).unwrap().words(), []);
        assert!(PushBuffer::new().copy(u64::MAX, 0, 2).is_err());
        assert!(PushBuffer::new().copy(0, 1 << 57, 2).is_err());
    }

    #[test]
    fn local_memory_by_tpc() {
        let shape = Shape { gpcs: 8, tpcs_per_gpc: 9, sms_per_tpc: 2, warps_per_sm: 64 };
        let mut push = PushBuffer::new();
        let size = LocalMemory::new(shape, 0).unwrap();
        push.set_local_memory(0x10_0000_0000, size).unwrap();
        assert_eq!(push.words()[..2], [0x2001_2044, 0]);
        assert_eq!(push.words()[2..], [0x2002_21e4, 0x10, 0, 0x2003_20b9, 0, 0x24_0000, 0xff]);
        assert_eq!(shape.sms(), 144);
    }
}
