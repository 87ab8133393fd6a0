//! Constant bank 0: what compiled code finds in front of its parameters, where the driver is to put it.
//!
//! Offsets were read out of code that ptxas 12.9 made for each architecture; the parameters' own offset is in the cubin
//! (`EIATTR_PARAM_CBANK`).

use super::error::Error;
use super::work::{LOCAL_WINDOW, SHARED_WINDOW};

/// Offsets in bank 0 of an architecture, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Threads of a block: three words.
    pub block: u16,
    /// Blocks of the grid: three words.
    pub grid: u16,
    /// Window of shared memory: 8 bytes.
    pub shared_window: u16,
    /// Window of local memory: 8 bytes.
    pub local_window: u16,
    /// Stack pointer at the start.
    pub stack_pointer: u16,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u16,
    /// Number of SMs.
    pub sms: u16,
    /// First parameter of a kernel.
    pub parameters: u16,
}

const VOLTA_TO_ADA: Offsets = Offsets {
    block: 0x00,
    grid: 0x0c,
    shared_window: 0x18,
    local_window: 0x20,
    stack_pointer: 0x28,
    dynamic_shared: 0x2c,
    sms: 0x10c,
    parameters: 0x160,
};
const HOPPER: Offsets = Offsets { parameters: 0x210, ..VOLTA_TO_ADA };
const BLACKWELL: Offsets = Offsets {
    block: 0x360,
    grid: 0x370,
    shared_window: 0x2f0,
    local_window: 0x2f8,
    stack_pointer: 0x37c,
    dynamic_shared: 0x2ac,
    sms: 0x2d0,
    parameters: 0x380,
};

/// What code of a launch finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// SMs of the device.
    pub sms: u32,
}

/// First stack pointer of a thread: what the driver keeps lies above.
const STACK_POINTER: u32 = (1 << 24) - super::local_memory::RESERVED;

impl Offsets {
    /// Those of an architecture (90 for sm_90).
    ///
    /// # Errors
    /// [`Error::UnknownSm`].
    pub const fn of(sm: u32) -> Result<Self, Error> {
        match sm {
            75..=89 => Ok(VOLTA_TO_ADA),
            90 => Ok(HOPPER),
            100..=121 => Ok(BLACKWELL),
            _ => Err(Error::UnknownSm { sm }),
        }
    }

    /// Writes what precedes the parameters into a bank, which is as large as the kernel's `.nv.constant0`; the rest stays.
    ///
    /// # Errors
    /// [`Error::TooLong`] if the bank ends before the parameters; nothing is written then.
    pub fn fill(&self, bank: &mut [u8], launch: &Launch) -> Result<(), Error> {
        let limit = bank.len();
        let too_long = Error::TooLong {
            what: "bytes before the parameters",
            count: self.parameters.into(),
            limit,
        };
        let head = bank.get_mut(..self.parameters.into()).ok_or(too_long)?;
        let mut put = |offset: u16, bytes: &[u8]| {
            let rest = head.get_mut(offset.into()..);
            if let Some(place) = rest.and_then(|rest| rest.get_mut(..bytes.len())) {
                place.copy_from_slice(bytes);
            }
        };
        for (at, sizes) in [(self.block, launch.block), (self.grid, launch.grid)] {
            for (index, size) in (0..).zip(sizes) {
                put(at + index * 4, &size.to_le_bytes());
            }
        }
        put(self.shared_window, &SHARED_WINDOW.to_le_bytes());
        put(self.local_window, &LOCAL_WINDOW.to_le_bytes());
        put(self.stack_pointer, &STACK_POINTER.to_le_bytes());
        put(self.dynamic_shared, &launch.dynamic_shared.to_le_bytes());
        put(self.sms, &launch.sms.to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: Launch =
        Launch { block: [256, 2, 1], grid: [7, 8, 9], dynamic_shared: 0x1_8000, sms: 132 };

    fn word(bank: &[u8], offset: usize) -> u32 {
        u32::from_le_bytes(bank[offset..offset + 4].try_into().unwrap())
    }

    #[test]
    fn everything_lies_before_the_parameters_and_apart() {
        for sm in [75, 80, 86, 89, 90, 100, 103, 120, 121] {
            let offsets = Offsets::of(sm).unwrap();
            let mut taken: Vec<(u16, u16)> = vec![
                (offsets.block, 12),
                (offsets.grid, 12),
                (offsets.shared_window, 8),
                (offsets.local_window, 8),
                (offsets.stack_pointer, 4),
                (offsets.dynamic_shared, 4),
                (offsets.sms, 4),
                (offsets.parameters, 0),
            ];
            taken.sort_unstable();
            assert!(taken.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "sm_{sm}");
        }
        assert_eq!(Offsets::of(70), Err(Error::UnknownSm { sm: 70 }));
    }

    #[test]
    fn hopper_and_blackwell() {
        let mut bank = vec![0; 0x228];
        Offsets::of(90).unwrap().fill(&mut bank, &LAUNCH).unwrap();
        assert_eq!([0, 4, 8, 0xc, 0x10, 0x14].map(|at| word(&bank, at)), [256, 2, 1, 7, 8, 9]);
        assert_eq!((word(&bank, 0x28), word(&bank, 0x2c)), (0x00ff_fdc0, 0x1_8000));
        assert_eq!((word(&bank, 0x1c), word(&bank, 0x24)), (0x7294, 0x7293));
        assert_eq!(word(&bank, 0x208), 0, "the memory descriptor of sm_90 reads as zero");
        let mut bank = vec![0; 0x398];
        Offsets::of(100).unwrap().fill(&mut bank, &LAUNCH).unwrap();
        assert_eq!([0x360, 0x370, 0x37c].map(|at| word(&bank, at)), [256, 7, 0x00ff_fdc0]);
    }

    #[test]
    fn a_bank_without_room_stays_as_it_is() {
        let mut bank = vec![7; 0x20f];
        let error = Offsets::of(90).unwrap().fill(&mut bank, &LAUNCH).unwrap_err();
        assert_eq!(error.to_string(), "528 bytes before the parameters: at most 527");
        assert!(bank.iter().all(|&byte| byte == 7));
    }
}
