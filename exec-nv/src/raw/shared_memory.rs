//! Shared memory: how much of an SM's memory a launch asks for.

use crate::raw::error::Error;

/// What a launch says of shared memory. Configurations are (KiB / 4) + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Bytes of a block, static and dynamic and what the system reserves.
    pub block: u32,
    /// Smallest configuration that the SM must have.
    pub least: u32,
    /// Largest configuration that it may have.
    pub most: u32,
    /// Configuration that it should have.
    pub target: u32,
}

/// Configurations of an SM in KiB, rising (NVK; CUDA programming guide, "Compute capabilities").
const CONFIGURATIONS: &[(&[u32], &[u32])] = &[
    (&[75], &[32, 64]),
    (&[80, 87], &[0, 8, 16, 32, 64, 100, 132, 164]),
    (&[86, 89, 120, 121], &[0, 8, 16, 32, 64, 100]),
    (&[90, 100, 103], &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
];

/// A block's shared memory is allocated in steps of this many bytes.
const GRANULE: u32 = 128;

impl SharedMemory {
    /// What a launch with `bytes` of shared memory a block asks for on an SM of this number (90 for sm_90).
    ///
    /// # Errors
    /// [`Error::UnknownSm`]; [`Error::SharedMemory`] if no configuration holds a block.
    pub fn new(sm: u32, bytes: u32) -> Result<Self, Error> {
        let (_, configurations) = CONFIGURATIONS
            .iter()
            .find(|(sms, _)| sms.contains(&sm))
            .ok_or(Error::UnknownSm { sm })?;
        let most = configurations.last().copied().unwrap_or(0);
        let too_much = || Error::SharedMemory { sm, bytes, limit: most << 10 };
        let block = bytes.checked_next_multiple_of(GRANULE).ok_or_else(too_much)?;
        let least =
            configurations.iter().copied().find(|&kib| block <= kib << 10).ok_or_else(too_much)?;
        let code = |kib: u32| kib / 4 + 1;
        Ok(Self { block, least: code(least), most: code(most), target: code(least) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_configuration_that_holds_a_block() {
        let none = SharedMemory::new(90, 0).unwrap();
        assert_eq!(none, SharedMemory { block: 0, least: 1, most: 0x3a, target: 1 });
        let some = SharedMemory::new(90, 1025).unwrap();
        assert_eq!(some, SharedMemory { block: 1152, least: 3, most: 0x3a, target: 3 });
        assert_eq!(SharedMemory::new(89, 100 << 10).unwrap().most, 0x1a);
        assert_eq!(SharedMemory::new(90, 228 << 10).unwrap().least, 0x3a);
    }

    #[test]
    fn too_much_and_unknown_are_said() {
        assert_eq!(
            SharedMemory::new(86, 100 * 1024 + 1).unwrap_err().to_string(),
            "a block of 102401 bytes of shared memory: sm_86 has 102400"
        );
        assert!(SharedMemory::new(90, u32::MAX).is_err());
        assert_eq!(SharedMemory::new(42, 0), Err(Error::UnknownSm { sm: 42 }));
    }
}
