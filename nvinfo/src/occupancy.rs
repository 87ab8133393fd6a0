//! How many blocks of a kernel an SM runs at a time: a table of limits per architecture, and the sum.
//!
//! The limits are those of the toolkit's `cuda_occupancy.h` (of 13.5, where older ones know less) and, from `sm_50` on, of its
//! `cuda/__device/arch_traits.h`; those of `sm_35`, `sm_37`, `sm_72` and `sm_101`, which the latter does not have, are of the
//! *CUDA C++ Programming Guide, Compute Capabilities*. SMs are taken to give as much of their memory as they can to shared memory.

/// What an SM of one architecture has. Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmLimits {
    /// Number of the architecture.
    pub sm: u32,
    /// Warps that it holds.
    pub warps: u32,
    /// Blocks that it holds.
    pub blocks: u32,
    /// Registers that it has.
    pub registers: u32,
    /// Registers that one block may have.
    pub block_registers: u32,
    /// Registers that one thread may have.
    pub thread_registers: u32,
    /// Parts that the registers are divided into; a warp is in one.
    pub partitions: u32,
    /// Shared memory that it has.
    pub shared: u64,
    /// Shared memory that one block may have, if a program asks for more than 48 KiB.
    pub block_shared: u64,
    /// Shared memory is given in multiples of this.
    pub shared_unit: u64,
    /// Shared memory that the system takes of each block.
    pub reserved_shared: u64,
    /// Named barriers that it has; `None` if their number is no limit.
    pub barriers: Option<u32>,
    /// Virtual resources that it has; `None` if there are none.
    pub virtual_resources: Option<u32>,
}

/// Threads of a warp.
const WARP: u32 = 32;
/// Registers are given to a warp in multiples of this.
const REGISTER_UNIT: u32 = 256;
/// Threads of a block at most.
const BLOCK_THREADS: u32 = 1024;

/// The limits of this architecture, if they are known.
#[must_use]
pub fn limits(sm: u32) -> Option<&'static SmLimits> {
    LIMITS.iter().find(|limits| limits.sm == sm)
}

/// What a block asks of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Demand {
    /// Threads of the block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory, static and dynamic, without what the system takes.
    pub shared: u64,
    /// Named barriers.
    pub barriers: u32,
    /// Virtual resources.
    pub virtual_resources: u32,
}

/// What keeps an SM from running more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limiter {
    /// The number of warps.
    Warps,
    /// The number of blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
    /// Named barriers.
    Barriers,
    /// Virtual resources.
    VirtualResources,
}

impl Limiter {
    /// What it is, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warps => "warps",
            Self::Blocks => "blocks",
            Self::Registers => "registers",
            Self::Shared => "shared memory",
            Self::Barriers => "barriers",
            Self::VirtualResources => "virtual resources",
        }
    }
}

/// How many blocks an SM runs at a time. None if one block alone is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// Warps that the SM could hold.
    pub of_warps: u32,
    /// What keeps it from running more.
    pub limiter: Limiter,
}

impl SmLimits {
    /// How many blocks that ask for this an SM runs at a time.
    #[must_use]
    pub fn occupancy(&self, demand: &Demand) -> Occupancy {
        let warps = demand.threads.div_ceil(WARP).max(1);
        let by_warps = if demand.threads > BLOCK_THREADS {
            0
        } else {
            self.warps.checked_div(warps).unwrap_or(0)
        };
        let limits = [
            (Limiter::Warps, by_warps),
            (Limiter::Blocks, self.blocks),
            (Limiter::Registers, self.by_registers(demand.registers, warps)),
            (Limiter::Shared, self.by_shared(demand.shared)),
            (Limiter::Barriers, Self::by(self.barriers, demand.barriers)),
            (Limiter::VirtualResources, Self::by(self.virtual_resources, demand.virtual_resources)),
        ];
        let least = limits.into_iter().min_by_key(|limit| limit.1);
        let (limiter, blocks) = least.unwrap_or((Limiter::Blocks, self.blocks));
        Occupancy { blocks, warps: blocks.saturating_mul(warps), of_warps: self.warps, limiter }
    }

    /// Registers go to warps, each warp has them from one partition.
    fn by_registers(&self, registers: u32, warps: u32) -> u32 {
        let units = u64::from(registers).saturating_mul(WARP.into()).div_ceil(REGISTER_UNIT.into());
        let per_warp = units.saturating_mul(REGISTER_UNIT.into());
        // the hardware checks a block as if it took the same from each of four partitions, even where there are two
        let rounded = u64::from(warps).div_ceil(4).saturating_mul(4);
        if registers > self.thread_registers
            || per_warp.saturating_mul(rounded) > self.block_registers.into()
        {
            return 0;
        }
        let partition = self.registers.checked_div(self.partitions).unwrap_or(0);
        match u64::from(partition).checked_div(per_warp) {
            None => u32::MAX,
            Some(held) => {
                let blocks = held
                    .saturating_mul(self.partitions.into())
                    .checked_div(warps.into())
                    .unwrap_or(0);
                u32::try_from(blocks).unwrap_or(u32::MAX)
            }
        }
    }

    fn by_shared(&self, shared: u64) -> u32 {
        let asked = shared.saturating_add(self.reserved_shared);
        let given = asked.checked_next_multiple_of(self.shared_unit).unwrap_or(u64::MAX);
        if given > self.block_shared.saturating_add(self.reserved_shared) {
            return 0;
        }
        self.shared
            .checked_div(given)
            .map_or(u32::MAX, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX))
    }

    fn by(have: Option<u32>, asked: u32) -> u32 {
        have.and_then(|have| have.checked_div(asked)).unwrap_or(u32::MAX)
    }
}

const KIB: u64 = 1024;

const fn row(sm: u32, warps: u32, blocks: u32, shared: u64, block_shared: u64) -> SmLimits {
    SmLimits {
        sm,
        warps,
        blocks,
        registers: 65536,
        block_registers: 65536,
        thread_registers: if sm < 70 { 255 } else { 256 },
        partitions: 4,
        shared: shared * KIB,
        block_shared: block_shared * KIB,
        shared_unit: if sm < 80 { 256 } else { 128 },
        reserved_shared: if sm < 80 { 0 } else { KIB },
        barriers: None,
        virtual_resources: if sm < 100 { None } else { Some(128) },
    }
}

const fn barriers(per_block: u32, limits: SmLimits) -> SmLimits {
    SmLimits { barriers: Some(limits.blocks * per_block), ..limits }
}

#[rustfmt::skip]
static LIMITS: &[SmLimits] = &[
    //           sm  warps blocks  shared, of a block in KiB
                 row( 35, 64, 16,   48,  48),
    SmLimits { registers: 131072,
              ..row( 37, 64, 16,  112,  48) },
                 row( 50, 64, 32,   64,  48),
                 row( 52, 64, 32,   96,  48),
    SmLimits { block_registers: 32768,
              ..row( 53, 64, 32,   64,  48) },
    SmLimits { partitions: 2,
              ..row( 60, 64, 32,   64,  48) },
                 row( 61, 64, 32,   96,  48),
    SmLimits { block_registers: 32768,
              ..row( 62, 64, 32,   64,  48) },
                 row( 70, 64, 32,   96,  96),
                 row( 72, 64, 32,   96,  96),
                 row( 75, 32, 16,   64,  64),
                 row( 80, 64, 32,  164, 163),
                 row( 86, 48, 16,  100,  99),
                 row( 87, 48, 16,  164, 163),
                 row( 88, 48, 16,  100,  99),
                 row( 89, 48, 24,  100,  99),
    barriers(2,  row( 90, 64, 32,  228, 227)),
    barriers(2,  row(100, 64, 32,  228, 227)),
    barriers(1,  row(101, 48, 24,  228, 227)),
    barriers(1,  row(103, 64, 32,  228, 227)),
    barriers(1,  row(107, 32, 16,  228, 227)),
    barriers(1,  row(110, 48, 24,  228, 227)),
    barriers(1,  row(120, 48, 24,  100,  99)),
    barriers(1,  row(121, 48, 24,  100,  99)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(sm: u32, threads: u32, registers: u32, shared: u64) -> (u32, Limiter) {
        let demand = Demand { threads, registers, shared, ..Demand::default() };
        let found = limits(sm).unwrap().occupancy(&demand);
        (found.blocks, found.limiter)
    }

    #[test]
    fn each_limit_by_hand() {
        assert_eq!(blocks(90, 1024, 32, 0), (2, Limiter::Warps));
        assert_eq!(blocks(90, 32, 16, 0), (32, Limiter::Blocks));
        assert_eq!(blocks(90, 256, 255, 0), (1, Limiter::Registers));
        assert_eq!(blocks(90, 512, 255, 0), (0, Limiter::Registers));
        assert_eq!(blocks(90, 128, 32, 100 * 1024), (2, Limiter::Shared));
        assert_eq!(blocks(90, 128, 32, 227 * 1024), (1, Limiter::Shared));
        assert_eq!(blocks(90, 128, 32, 227 * 1024 + 1), (0, Limiter::Shared));
        assert_eq!(blocks(75, 1025, 32, 0), (0, Limiter::Warps));
        let demand = Demand { threads: 32, barriers: 16, ..Demand::default() };
        assert_eq!(limits(90).unwrap().occupancy(&demand).limiter, Limiter::Barriers);
    }

    /// Blocks as `cuda_occupancy.h` 13.5 gives them for the numbers of `arch_traits.h`: threads, registers, shared memory, barriers.
    #[test]
    fn cuda_occupancy_h_says_the_same() {
        const DEMANDS: [(u32, u32, u64, u32); 9] = [
            (128, 32, 0, 1),
            (1024, 64, 0, 1),
            (1000, 65, 0, 2),
            (96, 255, 4096, 1),
            (256, 40, 20001, 3),
            (32, 16, 0, 16),
            (512, 128, 49152, 1),
            (64, 24, 66000, 0),
            (192, 168, 101_375, 1),
        ];
        #[rustfmt::skip]
        const BLOCKS: [(u32, [u32; 9]); 24] = [
            ( 35, [16, 1, 0, 2, 2, 16, 1, 0, 0]),
            ( 37, [16, 2, 0, 5, 5, 16, 2, 0, 0]),
            ( 50, [16, 1, 0, 2, 3, 32, 1, 0, 0]),
            ( 52, [16, 1, 0, 2, 4, 32, 1, 0, 0]),
            ( 53, [16, 0, 0, 2, 3, 32, 0, 0, 0]),
            ( 60, [16, 1, 0, 2, 3, 32, 1, 0, 0]),
            ( 61, [16, 1, 0, 2, 4, 32, 1, 0, 0]),
            ( 62, [16, 0, 0, 2, 3, 32, 0, 0, 0]),
            ( 70, [16, 1, 0, 2, 4, 32, 1, 1, 0]),
            ( 72, [16, 1, 0, 2, 4, 32, 1, 1, 0]),
            ( 75, [ 8, 1, 0, 2, 3, 16, 1, 0, 0]),
            ( 80, [16, 1, 0, 2, 6, 32, 1, 2, 1]),
            ( 86, [12, 1, 0, 2, 4, 16, 1, 1, 1]),
            ( 87, [12, 1, 0, 2, 6, 16, 1, 2, 1]),
            ( 88, [12, 1, 0, 2, 4, 16, 1, 1, 1]),
            ( 89, [12, 1, 0, 2, 4, 24, 1, 1, 1]),
            ( 90, [16, 1, 0, 2, 6,  4, 1, 3, 2]),
            (100, [16, 1, 0, 2, 6,  4, 1, 3, 2]),
            (101, [12, 1, 0, 2, 6,  1, 1, 3, 2]),
            (103, [16, 1, 0, 2, 6,  2, 1, 3, 2]),
            (107, [ 8, 1, 0, 2, 4,  1, 1, 3, 2]),
            (110, [12, 1, 0, 2, 6,  1, 1, 3, 2]),
            (120, [12, 1, 0, 2, 4,  1, 1, 1, 1]),
            (121, [12, 1, 0, 2, 4,  1, 1, 1, 1]),
        ];
        assert_eq!(
            BLOCKS.map(|row| row.0).as_slice(),
            LIMITS.iter().map(|row| row.sm).collect::<std::vec::Vec<_>>()
        );
        for (sm, expected) in BLOCKS {
            for ((threads, registers, shared, barriers), expected) in
                DEMANDS.into_iter().zip(expected)
            {
                let demand = Demand { threads, registers, shared, barriers, virtual_resources: 0 };
                assert_eq!(
                    limits(sm).unwrap().occupancy(&demand).blocks,
                    expected,
                    "sm_{sm} {demand:?}"
                );
            }
        }
    }

    #[test]
    fn no_demand_overflows() {
        let most = Demand {
            threads: u32::MAX,
            registers: u32::MAX,
            shared: u64::MAX,
            barriers: u32::MAX,
            virtual_resources: u32::MAX,
        };
        for limits in LIMITS {
            assert_eq!(limits.occupancy(&most).blocks, 0);
            assert!(limits.occupancy(&Demand::default()).blocks > 0);
        }
        assert_eq!(limits(999), None);
    }
}
