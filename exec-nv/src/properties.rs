//! What a device is, and what it can do at most.

use fatbin::CudaVersion;

/// What a device is, and what it can do at most. Memory in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// What the maker calls it.
    pub name: String,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// Number of its architecture: 90 for `sm_90`.
    pub sm: u32,
    /// The version of CUDA that the driver has.
    pub driver: CudaVersion,
    /// Its memory.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Threads of a warp.
    pub warp: u32,
    /// Blocks of a grid at most, by dimension.
    pub max_grid: [u32; 3],
    /// Threads of a block at most, by dimension.
    pub max_block: [u32; 3],
    /// Threads of a block at most.
    pub max_threads: u32,
    /// Registers of a block at most.
    pub max_registers: u32,
    /// Shared memory of a block at most, if a program asks for no more.
    pub shared: u32,
    /// Shared memory of a block at most, if a program asks for it.
    pub shared_opt_in: u32,
    /// Shared memory of an SM.
    pub shared_per_sm: u32,
    /// Shared memory that the system takes of each block.
    pub shared_reserved: u32,
    /// Level 2 cache.
    pub l2_cache: u32,
    /// PCI domain, bus and device.
    pub pci: [u32; 3],
    /// Whether all blocks of a grid can wait for each other.
    pub cooperative_launch: bool,
    /// Whether blocks can form clusters.
    pub cluster_launch: bool,
    /// Whether memory can be allocated in the order of a stream.
    pub memory_pools: bool,
    /// Whether memory can move between host and device by itself.
    pub managed_memory: bool,
}

#[cfg(feature = "driver")]
mod ask;
