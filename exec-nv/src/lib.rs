//! Runs cubins on NVIDIA GPUs.
//!
//! Nothing of CUDA is needed to build it, and nothing to ask whether there is a GPU:
//!
//! ```
//! # #[cfg(feature = "driver")] {
//! match exec_nv::Driver::open() {
//!     Ok(driver) => println!("CUDA {}, {} devices", driver.version(), driver.device_count()?),
//!     Err(error) => println!("no GPU: {error}"), // one line that says what is missing
//! }
//! # }
//! # Ok::<(), exec_nv::Error>(())
//! ```
//!
//! | to do | see |
//! |---|---|
//! | ask what there is | [`Driver`], [`DeviceProperties`] |
//! | memory, queues | [`NvDevice`], [`NvAllocator`], [`MemoryKind`], [`NvQueue`] |
//! | code for the device out of any file | [`KernelImage`], [`NvImage`], [`CubinLoader`] |
//! | launch | [`NvProgram`], [`NvLaunch`], [`LaunchAttributes`], [`Argument`] |
//! | launch many things as one | [`NvGraph`], [`NvGraphExec`] |
//! | kernels that copy boxes of tensors | [`TensorMap`], [`TensorLayout`] |
//! | memory: pools, addresses apart from it, where managed memory is wanted, other processes', other GPUs' | [`NvMemoryPool`], [`AddressRange`], [`PhysicalMemory`], [`ManagedAdvice`], [`IpcMemory`], [`PeerAttributes`] |
//! | code once for all GPUs; out of CUDA C++ | [`NvLibrary`], [`Nvrtc`] |
//! | how well a GPU is used | [`NvOccupancy`], [`ProfilerRange`] |
//! | code into memory without the driver's loader | [`own`] |
//! | GPUs without CUDA, from the kernel driver up | `raw` (feature `raw`) |
//!
//! [`NvDevice`] is a [`Device`](exec_core::Device) of `exec-core`, whose buffers, allocators and errors it shares with the other
//! executors. Whatever is not there - library, driver function, GPU, image for the architecture - is an [`Error`] that names it.
//! Nothing here has run on a GPU yet: `README.md` of the crate has the list of what the first run is to show.
#![cfg_attr(
    not(feature = "driver"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "most of what there is to see comes with the driver"
    )
)]

#[cfg(all(feature = "driver", not(target_pointer_width = "64")))]
compile_error!("GPUs and processes share addresses of 64 bits");

#[cfg(feature = "driver")]
mod api;
#[cfg(any(feature = "driver", feature = "raw"))]
mod arguments;
#[cfg(all(doctest, feature = "driver"))]
mod compile_fail;
#[cfg(feature = "driver")]
mod config;
#[cfg(feature = "driver")]
mod context;
#[cfg(feature = "driver")]
mod device;
#[cfg(feature = "driver")]
mod driver;
mod error;
#[cfg(feature = "driver")]
mod functions;
#[cfg(feature = "driver")]
mod graph;
mod image;
#[cfg(feature = "driver")]
mod ipc;
mod kernel;
mod launch;
#[cfg(feature = "driver")]
mod library;
#[cfg(feature = "driver")]
mod limits;
#[cfg(feature = "driver")]
mod loaded;
#[cfg(feature = "driver")]
mod loader;
#[cfg(feature = "driver")]
mod managed;
#[cfg(feature = "driver")]
mod memory;
#[cfg(feature = "driver")]
mod module;
#[cfg(feature = "driver")]
mod nvrtc;
#[cfg(feature = "driver")]
mod nvtx;
#[cfg(feature = "driver")]
mod occupancy;
pub mod own;
#[cfg(feature = "driver")]
mod peer;
#[cfg(feature = "driver")]
mod pending;
#[cfg(feature = "driver")]
mod pool;
#[cfg(feature = "driver")]
mod program;
mod properties;
#[cfg(feature = "driver")]
mod queue;
#[cfg(feature = "raw")]
pub mod raw;
#[cfg(feature = "driver")]
mod shared;
#[cfg(any(feature = "driver", feature = "raw"))]
mod sides;
#[cfg(feature = "driver")]
mod stream;
#[cfg(feature = "driver")]
mod tensor_map;
#[cfg(feature = "driver")]
mod virtual_memory;

#[cfg(feature = "driver")]
pub use {
    arguments::NvArgument as Argument,
    device::{NvDevice, NvOptions},
    driver::Driver,
    functions::UpdateOutcome,
    graph::{NvGraph, NvGraphExec, NvGraphNode},
    ipc::{IpcEventHandle, IpcMemory, IpcMemoryHandle},
    library::NvLibrary,
    limits::NvLimit,
    loaded::NvImage,
    loader::CubinLoader,
    managed::{ManagedAdvice, ManagedPlace},
    memory::{MemoryKind, NvAllocator, NvMemory},
    module::FunctionAttributes,
    nvrtc::{Compile, Nvrtc, NvrtcOutput},
    nvtx::ProfilerRange,
    occupancy::NvOccupancy,
    peer::PeerAttributes,
    pool::{NvMemoryPool, PoolStatistics},
    program::NvProgram,
    queue::NvQueue,
    stream::{NvEvent, QueueOptions},
    tensor_map::{
        Im2colBox, Im2colWideBox, Interleave, L2Promotion, OutOfBounds, Swizzle, TensorLayout,
        TensorMap, TensorMapError, TensorType,
    },
    virtual_memory::{Access, AddressRange, Granularity, PhysicalMemory},
};
pub use {
    error::{Error, KernelFault},
    image::KernelImage,
    kernel::{Kernel, ParameterSlot},
    launch::{ClusterPolicy, LaunchAttributes, LaunchError, NvLaunch},
    properties::DeviceProperties,
};

/// The example of `README.md`, as a test.
#[cfg(all(doctest, feature = "driver"))]
#[doc = include_str!("../README.md")]
mod readme {}
