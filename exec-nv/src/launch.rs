//! How a kernel is launched, and whether that can be: before the driver is asked.

mod attributes;
mod error;

pub use attributes::{ClusterPolicy, LaunchAttributes};
pub use error::LaunchError;

use nvinfo::{Resources, occupancy};

use crate::properties::DeviceProperties;

/// How often a kernel runs, and what its blocks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLaunch {
    /// Blocks, by dimension.
    pub grid: [u32; 3],
    /// Threads of a block, by dimension.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block beside what the kernel declares.
    pub dynamic_shared: u32,
    /// Blocks of a cluster, by dimension.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks run at the same time, so that they can wait for each other.
    pub cooperative: bool,
    /// Whether to wait until it is done, and say how long it took.
    pub wait: bool,
    /// What else a launch can be asked for.
    pub attributes: LaunchAttributes,
}

impl From<exec_core::Launch> for NvLaunch {
    fn from(launch: exec_core::Launch) -> Self {
        let exec_core::Launch { grid, block, wait } = launch;
        Self { grid, block, wait, ..Self::new(1, 1) }
    }
}

impl NvLaunch {
    /// So many blocks of so many threads, in one dimension.
    #[must_use]
    pub const fn new(grid: u32, block: u32) -> Self {
        Self {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            dynamic_shared: 0,
            cluster: None,
            cooperative: false,
            wait: false,
            attributes: LaunchAttributes::NONE,
        }
    }

    /// Threads of a block.
    #[must_use]
    pub const fn threads(&self) -> u64 {
        product(self.block)
    }

    /// Blocks of the grid.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        product(self.grid)
    }
}

const fn product([x, y, z]: [u32; 3]) -> u64 {
    (x as u64).saturating_mul(y as u64).saturating_mul(z as u64)
}

/// Blocks of a cluster that every device with clusters has.
const PORTABLE_CLUSTER: u64 = 8;
/// Blocks of a cluster that a kernel can be allowed to have (`CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`).
const LARGEST_CLUSTER: u64 = 16;

impl NvLaunch {
    /// Whether the device can launch a kernel of these needs so. `None` for a kernel whose needs are not known.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(
        &self,
        device: &DeviceProperties,
        kernel: Option<&Resources>,
    ) -> Result<(), LaunchError> {
        dimension("grid", self.grid, device.max_grid)?;
        dimension("block", self.block, device.max_block)?;
        let found = self.threads();
        threads(found, device.max_threads.into(), "the device")?;
        if let Some(kernel) = kernel {
            self.check_block(device, kernel)?;
        }
        let declared = kernel.map_or(0, |kernel| kernel.shared);
        let limit = u64::from(device.shared_opt_in.max(device.shared));
        let dynamic = u64::from(self.dynamic_shared);
        if declared.saturating_add(dynamic) > limit {
            return Err(LaunchError::Shared { declared, dynamic, limit });
        }
        self.attributes.check(device)?;
        self.check_cluster(device, kernel)?;
        self.check_cooperation(device, kernel)
    }

    fn check_block(
        &self,
        device: &DeviceProperties,
        kernel: &Resources,
    ) -> Result<(), LaunchError> {
        if let Some(expected) = kernel.required_threads
            && expected != self.block
        {
            return Err(LaunchError::Block { found: self.block, expected });
        }
        let found = self.threads();
        if let Some(most) = kernel.max_threads {
            threads(found, product(most), "the kernel")?;
        }
        // registers go to warps of 32 threads in pieces of 256
        let warp = u64::from(kernel.registers.unwrap_or(0)).saturating_mul(32);
        if let Some(per_warp) = warp.checked_next_multiple_of(256).filter(|&size| size > 0) {
            let warps = u64::from(device.max_registers).checked_div(per_warp).unwrap_or(0);
            let limit = warps.saturating_mul(32);
            if found > limit {
                let (registers, of_block) = (kernel.registers.unwrap_or(0), device.max_registers);
                return Err(LaunchError::Registers { found, limit, registers, of_block });
            }
        }
        Ok(())
    }

    fn check_cluster(
        &self,
        device: &DeviceProperties,
        kernel: Option<&Resources>,
    ) -> Result<(), LaunchError> {
        let fixed = kernel.and_then(|kernel| kernel.cluster);
        match (fixed, self.cluster) {
            // a cluster of zeros says that the launch has one
            (Some(expected), Some(found)) if product(expected) > 0 && expected != found => {
                return Err(LaunchError::Cluster { found: Some(found), expected });
            }
            _ => {}
        }
        let fixed = fixed.filter(|&fixed| product(fixed) > 0);
        let most = kernel.and_then(|kernel| kernel.max_cluster_rank).filter(|&most| most > 0);
        let limit = most.map_or(LARGEST_CLUSTER, u64::from).min(LARGEST_CLUSTER);
        let Some(cluster) = self.cluster.or(fixed) else {
            return match kernel {
                Some(kernel) if kernel.explicit_cluster => {
                    Err(LaunchError::ClusterNeeded { limit })
                }
                _ => Ok(()),
            };
        };
        if !device.cluster_launch {
            return Err(LaunchError::NoClusters { sm: device.sm, cluster });
        }
        let found = product(cluster);
        if found == 0 || found > limit {
            return Err(LaunchError::ClusterSize { found, limit });
        }
        let divides = self.grid.iter().zip(cluster).all(|(grid, by)| grid.is_multiple_of(by));
        if !divides && !kernel.is_some_and(|kernel| kernel.blocks_are_clusters) {
            return Err(LaunchError::ClusterGrid { grid: self.grid, cluster });
        }
        Ok(())
    }

    fn check_cooperation(
        &self,
        device: &DeviceProperties,
        kernel: Option<&Resources>,
    ) -> Result<(), LaunchError> {
        if !self.cooperative {
            return Ok(());
        }
        if !device.cooperative_launch {
            return Err(LaunchError::NoCooperation { sm: device.sm, blocks: self.blocks() });
        }
        let (Some(kernel), Some(limits)) = (kernel, occupancy::limits(device.sm)) else {
            return Ok(());
        };
        let demand = kernel.demand(self.threads() as u32, self.dynamic_shared.into());
        let per_sm = u64::from(limits.occupancy(&demand).blocks);
        let limit = per_sm.saturating_mul(device.sm_count.into());
        let found = self.blocks();
        if found > limit {
            return Err(LaunchError::Cooperation { found, limit });
        }
        Ok(())
    }

    /// Whether the kernel must be allowed to have clusters of more than 8 blocks.
    #[must_use]
    pub const fn is_beyond_portable(&self) -> bool {
        match self.cluster {
            Some(cluster) => is_beyond_portable(cluster),
            None => false,
        }
    }
}

/// Whether a cluster has more blocks than every device with clusters allows.
pub(crate) const fn is_beyond_portable(cluster: [u32; 3]) -> bool {
    product(cluster) > PORTABLE_CLUSTER
}

fn dimension(what: &'static str, found: [u32; 3], limit: [u32; 3]) -> Result<(), LaunchError> {
    if found.iter().zip(limit).all(|(&found, limit)| (1..=limit).contains(&found)) {
        Ok(())
    } else {
        Err(LaunchError::Dimension { what, found, limit })
    }
}

const fn threads(found: u64, limit: u64, by: &'static str) -> Result<(), LaunchError> {
    if found <= limit { Ok(()) } else { Err(LaunchError::Threads { found, limit, by }) }
}
