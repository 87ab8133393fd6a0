//! Local memory: one buffer of the device for the stacks and spilled registers of all threads that can run at once.

use crate::raw::error::Error;

/// What of a GPU decides how large the buffer is (`NV2080_CTRL_CMD_GR_GET_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Graphics processing clusters.
    pub gpcs: u32,
    /// Texture processing clusters of each.
    pub tpcs_per_gpc: u32,
    /// Streaming multiprocessors of each of those.
    pub sms_per_tpc: u32,
    /// Warps that an SM holds.
    pub warps_per_sm: u32,
}

/// Sizes of local memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalMemory {
    /// Of a thread.
    pub thread: u32,
    /// Of a TPC: `SET_SHADER_LOCAL_MEMORY_NON_THROTTLED`.
    pub tpc: u64,
    /// Of the whole buffer.
    pub buffer: u64,
}

/// What the driver keeps at the end of a thread's stack: the stack pointer starts this far below 2^24.
pub const RESERVED: u32 = 0x240;

impl LocalMemory {
    /// What threads that use `stack` bytes (`EIATTR_MIN_STACK_SIZE`) need on a GPU of this shape.
    ///
    /// # Errors
    /// [`Error::LocalMemory`] if a size leaves the 24 bits that a thread's window has.
    pub fn new(shape: Shape, stack: u32) -> Result<Self, Error> {
        let too_much = || Error::LocalMemory { bytes: stack };
        let thread = stack
            .checked_add(RESERVED)
            .and_then(|bytes| bytes.checked_next_multiple_of(32))
            .filter(|&bytes| bytes < 1 << 24)
            .ok_or_else(too_much)?;
        let warp = (u64::from(thread) * 32).next_multiple_of(0x200);
        let tpc = warp
            .checked_mul(shape.warps_per_sm.into())
            .and_then(|bytes| bytes.checked_mul(shape.sms_per_tpc.into()))
            .and_then(|bytes| bytes.checked_next_multiple_of(0x8000))
            .ok_or_else(too_much)?;
        let buffer = tpc
            .checked_mul(shape.tpcs_per_gpc.into())
            .and_then(|bytes| bytes.checked_mul(shape.gpcs.into()))
            .and_then(|bytes| bytes.checked_next_multiple_of(0x20000))
            .ok_or_else(too_much)?;
        Ok(Self { thread, tpc, buffer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An H100 PCIe: 8 GPCs of 9 TPCs of 2 SMs of 64 warps.
    const H100: Shape = Shape { gpcs: 8, tpcs_per_gpc: 9, sms_per_tpc: 2, warps_per_sm: 64 };

    #[test]
    fn sizes_are_rounded_at_every_level() {
        let none = LocalMemory::new(H100, 0).unwrap();
        // 0x240 * 32 = 0x4800; * 128 warps = 0x240000
        assert_eq!(none, LocalMemory { thread: 0x240, tpc: 0x24_0000, buffer: 0x24_0000 * 72 });
        let odd = LocalMemory::new(H100, 1).unwrap();
        assert_eq!(odd.thread, 0x260);
        let small = Shape { gpcs: 1, tpcs_per_gpc: 1, sms_per_tpc: 1, warps_per_sm: 1 };
        let one = LocalMemory::new(small, 0).unwrap();
        assert_eq!((one.tpc, one.buffer), (0x8000, 0x20000));
    }

    #[test]
    fn a_stack_that_no_window_holds_is_refused() {
        assert!(LocalMemory::new(H100, (1 << 24) - RESERVED - 32).is_ok());
        assert_eq!(LocalMemory::new(H100, 1 << 24), Err(Error::LocalMemory { bytes: 1 << 24 }));
        assert!(LocalMemory::new(H100, u32::MAX).is_err());
    }
}
