//! NVIDIA GPUs, through the CUDA driver.

use crate::border::{Rows, changed, fallible, give, handle, infallible, place, row};
use crate::device_faults::{core, nv};
use crate::error::{Error, Status, c_string};
use core::ffi::c_char;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_core::Device as _;
use exec_nv::{DeviceProperties, Driver, NvDevice, NvOptions};
use std::ffi::CString;
use std::sync::Arc;

/// A GPU. Free it with `hoist_device_free`.
pub struct Device {
    pub(crate) inner: NvDevice,
    info: Rows<DeviceInfo>,
    #[expect(dead_code, reason = "what a pointer of the row leads to")]
    name: CString,
}

/// What a GPU is, and what it can do at most. Memory in bytes. Pointers are good as long as the device.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeviceInfo {
    /// What the maker calls it.
    pub name: *const c_char,
    /// Its memory.
    pub memory: u64,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// The number of its architecture: 90 for `sm_90`.
    pub sm: u32,
    /// The version of CUDA that the driver has.
    pub driver_major: u32,
    /// As above.
    pub driver_minor: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Blocks of a grid, by x, y and z.
    pub max_grid: [u32; 3],
    /// Threads of a block, by x, y and z.
    pub max_block: [u32; 3],
    /// Threads of a block.
    pub max_threads: u32,
    /// Registers of a block.
    pub max_registers: u32,
    /// Shared memory of a block, static and dynamic together.
    pub max_shared: u32,
    /// Level 2 cache.
    pub l2_cache: u32,
    /// PCI domain, bus and device.
    pub pci: [u32; 3],
    /// Whether blocks can form clusters.
    pub has_clusters: bool,
    /// Whether all blocks of a grid can wait for each other.
    pub has_cooperative_launches: bool,
}

impl Device {
    fn new(inner: NvDevice) -> Self {
        let all: &DeviceProperties = inner.properties();
        let name = c_string(all.name.as_str());
        let info = DeviceInfo {
            name: name.as_ptr(),
            memory: all.memory,
            uuid: all.uuid,
            sm: all.sm,
            driver_major: all.driver.major.into(),
            driver_minor: all.driver.minor.into(),
            multiprocessors: all.sm_count,
            warp_size: all.warp,
            max_grid: all.max_grid,
            max_block: all.max_block,
            max_threads: all.max_threads,
            max_registers: all.max_registers,
            max_shared: all.shared_opt_in.max(all.shared),
            l2_cache: all.l2_cache,
            pci: all.pci,
            has_clusters: all.cluster_launch,
            has_cooperative_launches: all.cooperative_launch,
        };
        Self { inner, info: Rows(vec![info]), name }
    }
}

/// How many GPUs there are, by the CUDA driver, which is looked for as `libcuda.so.1`.
///
/// Errors: `NO_DEVICE` without a driver, or without a GPU; `DEVICE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_count(
    count: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let count = place(count, "count")?;
        let driver = Driver::open().map_err(|error| nv(&error))?;
        *count = driver.device_count().map_err(|error| nv(&error))?;
        Ok(())
    })
}

/// GPU `ordinal`, as the driver counts them from 0. Its context is the primary one, which others in the process may use, too.
///
/// Errors: `NO_DEVICE` without a driver (CUDA 12.0 or newer), without a GPU, or if there are not so many; `DEVICE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_open(
    ordinal: u32,
    device: Option<&mut MaybeUninit<*mut Device>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let device = place(device, "device")?;
        let opened = Driver::open()
            .and_then(|driver| NvDevice::open(&Arc::new(driver), ordinal, NvOptions::default()));
        give(device, Device::new(opened.map_err(|error| nv(&error))?));
        Ok(())
    })
}

/// What the device is.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_get_info(
    device: Option<&Device>,
    info: Option<&mut MaybeUninit<DeviceInfo>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let info = place(info, "info")?;
        *info = *row(&handle(device, "device")?.info.0, 0, "device")?;
        Ok(())
    })
}

/// Waits for all launches that were made on the device by this handle.
///
/// Errors: `DEVICE`, of a kernel that has failed, too.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_synchronize(
    device: Option<&Device>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || handle(device, "device")?.inner.synchronize().map_err(|error| core(&error)))
}

/// Makes the device usable again after a kernel has failed: until then, everything on it is answered `DEVICE`. All memory and code on
/// it is gone, that of other users in the process, too; handles of it can be freed only. Does nothing if no kernel has failed.
///
/// Errors: `DEVICE` if it is not usable again.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_reset(
    device: Option<NonNull<Device>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let device = &handle(changed(device), "device")?.inner;
        // what it was reset after was told by the call that failed
        let _ = device.reset();
        device.fault().map_or(Ok(()), |error| Err(core(&error)))
    })
}

/// Frees a device; NULL is none. What was made on it stays until it is freed itself.
///
/// Threads: nobody uses the handle any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_free(device: Option<Box<Device>>) {
    infallible((), || drop(device));
}
