//! What a launch is, and the block that says so.

use super::{Field, Qmd, Version};
use crate::raw::error::Error;
use crate::raw::shared_memory::SharedMemory;

/// Number of constant banks that a block names.
pub const BANKS: usize = 8;

/// A constant bank: memory that kernels read as `c[i][..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank {
    /// Device address; a multiple of 64 on Hopper and later.
    pub address: u64,
    /// Bytes; rounded up to 16.
    pub size: u32,
}

/// A semaphore that is written when the grid is done: its payload and, in 16 bytes, a time stamp behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Device address of 16 bytes; a multiple of 16.
    pub address: u64,
    /// What is written.
    pub payload: u64,
}

/// A launch of a kernel whose code and constant banks are in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Device address of the kernel's first instruction; a multiple of 128.
    pub program: u64,
    /// Registers of a thread (`EIATTR_REGCOUNT`).
    pub registers: u32,
    /// Named barriers that are used (`EIATTR_NUM_BARRIERS`).
    pub barriers: u32,
    /// Shared memory of a block and of the SM.
    pub shared: SharedMemory,
    /// Local memory of a thread in bytes: what [`LocalMemory`](crate::raw::LocalMemory) gives it.
    pub local: u32,
    /// Blocks in each dimension.
    pub grid: [u32; 3],
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// Blocks of a cluster in each dimension, if it is launched in clusters.
    pub cluster: Option<[u32; 3]>,
    /// Constant banks by number.
    pub banks: [Option<ConstantBank>; BANKS],
    /// What is written when it is done.
    pub release: Option<Release>,
    /// Device address of the block that is launched when this one is done.
    pub next: Option<u64>,
}

/// `QMD_TYPE`: a grid of thread blocks.
const TYPE_GRID_CTA: u64 = 2;
/// `QMD_TYPE`: a grid of clusters in GPCs.
const TYPE_GRID_GPC_CGA: u64 = 3;
/// `STRUCTURE_SIZE`: two words of payload, two of time stamp.
const FOUR_WORDS: u64 = 0;

/// `CWD_MEMBAR_TYPE_L1_SYSMEMBAR`: what a grid has written is seen by all when it is done.
const L1_SYSTEM_MEMBAR: u64 = 1;
/// `DEPENDENT_QMD_ACTION_QMD_SCHEDULE`.
const SCHEDULE: u64 = 1;
/// Low bits of a block's address that are not stored.
const POINTER_SHIFT: u32 = 8;

impl Grid {
    /// The block of a version that launches this.
    ///
    /// # Errors
    /// [`Error::NoField`] and [`Error::DoesNotFit`] for what the version cannot say, [`Error::Misaligned`] for an address whose
    /// low bits it does not store.
    pub fn encode(&self, version: &'static Version) -> Result<Qmd, Error> {
        let mut qmd = Qmd::new(version)?;
        qmd.set(Field::ApiVisibleCallLimit, 1)?;
        if version.major > 3 {
            let of_clusters = self.cluster.is_some();
            qmd.set(Field::Type, if of_clusters { TYPE_GRID_GPC_CGA } else { TYPE_GRID_CTA })?;
        } else {
            qmd.set(Field::SmGlobalCaching, 1)?;
        }
        self.encode_program(&mut qmd)?;
        self.encode_shape(&mut qmd)?;
        self.encode_shared(&mut qmd)?;
        for (index, bank) in (0..).zip(&self.banks) {
            if let Some(bank) = bank {
                bank.encode(&mut qmd, index)?;
            }
        }
        if let Some(release) = &self.release {
            release.encode(&mut qmd)?;
        }
        if let Some(next) = self.next {
            let pointer = shifted(Field::DependentPointer, next, POINTER_SHIFT)?;
            qmd.set(Field::DependentPointer, pointer)?
                .set(Field::DependentAction, SCHEDULE)?
                .set(Field::DependentPrefetch, 1)?
                .set(Field::DependentEnable, 1)?;
        }
        Ok(qmd)
    }

    fn encode_program(&self, qmd: &mut Qmd) -> Result<(), Error> {
        let version = qmd.version();
        let program = shifted(Field::ProgramAddressLower, self.program, version.program_shift)?;
        qmd.set(Field::ProgramAddressLower, low(program))?
            .set(Field::ProgramAddressUpper, program >> 32)?
            .set(Field::RegisterCount, self.registers.into())?
            .set(Field::BarrierCount, self.barriers.into())?
            .set(Field::InvalidateInstructions, 1)?
            .set(Field::InvalidateConstants, 1)?
            .set(Field::InvalidateShaderData, 1)?
            .set(Field::MembarType, L1_SYSTEM_MEMBAR)?;
        let local = shifted(Field::LocalMemoryHigh, self.local.into(), version.local_shift)?;
        qmd.set(Field::LocalMemoryHigh, local)?;
        Ok(())
    }

    fn encode_shape(&self, qmd: &mut Qmd) -> Result<(), Error> {
        let grid = [Field::GridWidth, Field::GridHeight, Field::GridDepth];
        let block = [Field::BlockWidth, Field::BlockHeight, Field::BlockDepth];
        let cluster = [Field::ClusterWidth, Field::ClusterHeight, Field::ClusterDepth];
        let dimensions =
            [(grid, Some(self.grid)), (block, Some(self.block)), (cluster, self.cluster)];
        for (fields, sizes) in dimensions {
            for (field, size) in fields.into_iter().zip(sizes.into_iter().flatten()) {
                qmd.set(field, size.into())?;
            }
        }
        Ok(())
    }

    fn encode_shared(&self, qmd: &mut Qmd) -> Result<(), Error> {
        let shift = qmd.version().shared_shift;
        let size = shifted(Field::SharedMemorySize, self.shared.block.into(), shift)?;
        qmd.set(Field::SharedMemorySize, size)?
            .set(Field::MinSmConfigSharedMemory, self.shared.least.into())?
            .set(Field::MaxSmConfigSharedMemory, self.shared.most.into())?
            .set(Field::TargetSmConfigSharedMemory, self.shared.target.into())?;
        Ok(())
    }
}

impl ConstantBank {
    fn encode(self, qmd: &mut Qmd, index: u32) -> Result<(), Error> {
        let shift = qmd.version().constant_shift;
        let address = shifted(Field::ConstantBankAddressLower, self.address, shift)?;
        qmd.set_at(Field::ConstantBankValid, index, 1)?
            .set_at(Field::ConstantBankInvalidate, index, 1)?
            .set_at(Field::ConstantBankAddressLower, index, low(address))?
            .set_at(Field::ConstantBankAddressUpper, index, address >> 32)?
            .set_at(Field::ConstantBankSize, index, u64::from(self.size).div_ceil(16))?;
        Ok(())
    }
}

impl Release {
    fn encode(self, qmd: &mut Qmd) -> Result<(), Error> {
        let address = shifted(Field::ReleaseAddressLower, self.address, 4)? << 4;
        qmd.set(Field::ReleaseEnable, 1)?
            .set(Field::ReleaseStructureSize, FOUR_WORDS)?
            .set(Field::ReleaseMembar, 1)?
            .set(Field::ReleasePayload64, 1)?
            .set(Field::ReleaseAddressLower, low(address))?
            .set(Field::ReleaseAddressUpper, address >> 32)?
            .set(Field::ReleasePayloadLower, low(self.payload))?
            .set(Field::ReleasePayloadUpper, self.payload >> 32)?;
        Ok(())
    }
}

const fn low(value: u64) -> u64 {
    value & 0xffff_ffff
}

/// `value` without its low `shift` bits, which must be zero.
fn shifted(field: Field, value: u64, shift: u32) -> Result<u64, Error> {
    if value & ((1 << shift) - 1) == 0 {
        Ok(value >> shift)
    } else {
        Err(Error::Misaligned { field, value, alignment: 1 << shift })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{V3, V4, V5};
    use super::*;
    use crate::raw::shared_memory::SharedMemory;

    fn grid() -> Grid {
        let mut banks = [None; BANKS];
        banks[0] = Some(ConstantBank { address: 0x10_2030_4040, size: 0x228 });
        Grid {
            program: 0x10_0000_2080,
            registers: 32,
            barriers: 1,
            shared: SharedMemory { block: 1024, least: 3, most: 0x3a, target: 3 },
            local: 0x240,
            grid: [70000, 3, 2],
            block: [256, 2, 1],
            cluster: None,
            banks,
            release: None,
            next: None,
        }
    }

    fn word(qmd: &Qmd, index: usize) -> u32 {
        let bytes = qmd.bytes()[index * 4..index * 4 + 4].try_into().unwrap();
        u32::from_le_bytes(bytes)
    }

    // Words counted by hand from the bit numbers of the headers.
    #[test]
    fn hopper() {
        let qmd = grid().encode(&V4).unwrap();
        assert_eq!(word(&qmd, 0), 2 << 23);
        assert_eq!(word(&qmd, 13), 1 | 1 << 3); // bank 0 valid, invalidate
        assert_eq!(word(&qmd, 17), 0x240 | 1 << 24); // local memory; no check of calls
        // version 4 at 580, shared memory at 584; shader data, instructions, constants at 605..=607
        assert_eq!(word(&qmd, 18), 4 << 4 | 1024 << 8 | 1 << 29 | 1 << 30 | 1 << 31);
        assert_eq!(word(&qmd, 19), 3 | 0x3a << 6 | 3 << 12);
        assert_eq!((word(&qmd, 32), word(&qmd, 33), word(&qmd, 34)), (70000, 3, 2));
        assert_eq!((word(&qmd, 36), word(&qmd, 37)), (256 | 2 << 16, 1 | 32 << 16 | 1 << 27));
        assert_eq!((word(&qmd, 38), word(&qmd, 39)), (0x2080, 0x10));
        let bank = 0x10_2030_4040_u64 >> 6;
        assert_eq!(
            (word(&qmd, 48), word(&qmd, 49)),
            (bank as u32, (bank >> 32) as u32 | 0x23 << 19)
        );
        let set: Vec<usize> = (0..96).filter(|&index| word(&qmd, index) != 0).collect();
        assert_eq!(word(&qmd, 35), 1 << 16); // barrier at the end
        assert_eq!(set, [0, 13, 17, 18, 19, 32, 33, 34, 35, 36, 37, 38, 39, 48, 49]);
    }

    #[test]
    fn ampere() {
        let qmd = grid().encode(&V3).unwrap();
        assert_eq!(word(&qmd, 4), 1 << 6); // global memory cached in the SM
        assert_eq!((word(&qmd, 12), word(&qmd, 13), word(&qmd, 14)), (70000, 3, 2));
        assert_eq!(word(&qmd, 17), 1024 | 3 << 18 | 0x3a << 25);
        assert_eq!(word(&qmd, 18), 3 << 4 | 256 << 16);
        assert_eq!((word(&qmd, 32), word(&qmd, 33)), (0x2030_4040, 0x10 | 1 << 18 | 0x23 << 19));
        assert_eq!((word(&qmd, 48), word(&qmd, 49)), (0x2080, 0x10));
        assert_eq!(word(&qmd, 50), 0x240);
    }

    #[test]
    fn blackwell_stores_sizes_and_addresses_without_their_low_bits() {
        let qmd = grid().encode(&V5).unwrap();
        assert_eq!((word(&qmd, 32), word(&qmd, 33)), (0x208 | 0x1_0000_0000_u64 as u32, 0x1));
        assert_eq!(qmd.get(Field::SharedMemorySize, 0), Ok(8));
        assert_eq!(qmd.get(Field::LocalMemoryHigh, 0), Ok(0x24));
        assert_eq!((word(&qmd, 39), word(&qmd, 40), word(&qmd, 41)), (70000, 3, 2));
    }

    #[test]
    fn clusters_and_releases() {
        let release = Release { address: 0x10_0000_0010, payload: 0x1_0000_0002 };
        let with = Grid { cluster: Some([2, 1, 1]), release: Some(release), ..grid() };
        let qmd = with.encode(&V4).unwrap();
        assert_eq!(word(&qmd, 0), 3 << 23);
        assert_eq!(word(&qmd, 67), 2 | 1 << 8 | 1 << 16);
        assert_eq!(word(&qmd, 10), 1 | 1 << 3 | 1 << 12);
        assert_eq!([20, 21, 22, 23].map(|index| word(&qmd, index)), [0x10, 0x10, 2, 1]);
        let error = with.encode(&V3).unwrap_err();
        assert_eq!(error.to_string(), "QMD version 3 has no field ClusterWidth[0]");
    }

    #[test]
    fn one_after_the_other() {
        let first = Grid { next: Some(0x10_0000_0100), ..grid() };
        // word by word: pointer, and enable, action and prefetch
        for (version, pointer, at, low) in [(&V3, 15, 16, 0), (&V4, 14, 11, 16), (&V5, 12, 10, 16)]
        {
            let qmd = first.encode(version).unwrap();
            assert_eq!(word(&qmd, pointer), 0x1000_0001, "{version:?}");
            assert_eq!(word(&qmd, at) >> low & 0x1f, 1 | 1 << 1 | 1 << 4, "{version:?}");
        }
        let odd = Grid { next: Some(0x80), ..grid() };
        assert_eq!(
            odd.encode(&V4).unwrap_err().to_string(),
            "DependentPointer is stored in units of 256, and 0x80 is none"
        );
        let far = Grid { next: Some(1 << 40), ..grid() };
        assert!(far.encode(&V4).is_err());
    }

    #[test]
    fn what_the_block_cannot_say_is_refused() {
        let wide = Grid { grid: [1, 70000, 1], ..grid() };
        assert_eq!(
            wide.encode(&V4).unwrap_err().to_string(),
            "GridHeight takes 16 bits, and 70000 does not fit"
        );
        let mut odd = grid();
        odd.banks[3] = Some(ConstantBank { address: 0x1010, size: 16 });
        assert_eq!(
            odd.encode(&V4).unwrap_err().to_string(),
            "ConstantBankAddressLower is stored in units of 64, and 0x1010 is none"
        );
        assert!(odd.encode(&V3).is_ok());
    }
}
