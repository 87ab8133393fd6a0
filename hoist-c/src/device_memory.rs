//! Memory of GPUs.

use crate::border::{Bytes, OutBuffer, changed, fallible, give, handle, infallible, place};
use crate::device::Device;
use crate::device_faults::{core as core_fault, nv};
use crate::error::{Error, Status};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_core::{Buffer, Device as _, LruAllocator, Spec};
use exec_nv::{NvAllocator, NvDevice};

/// Memory of a GPU. Free it with `hoist_device_memory_free`.
pub struct DeviceMemory(pub(crate) Buffer<LruAllocator<NvAllocator>>);

/// `size` bytes of memory of a device. What is in them is not said.
///
/// Errors: `MEMORY`, field `value`; `DEVICE`; `INVALID_ARGUMENT` for 0 bytes.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_new(
    device: Option<&Device>,
    size: u64,
    memory: Option<&mut MaybeUninit<*mut DeviceMemory>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let memory = place(memory, "memory")?;
        let device = &handle(device, "device")?.inner;
        let made = device.buffer(size, Spec::new()).map_err(|error| core_fault(&error))?;
        give(memory, DeviceMemory(made));
        Ok(())
    })
}

/// How many bytes there are; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_size(memory: Option<&DeviceMemory>) -> u64 {
    memory.map_or(0, |memory| memory.0.size())
}

/// The address on the device; 0 of NULL. Structures that kernels take may have it inside: then nobody but the caller keeps the memory
/// until the kernel is done.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_address(memory: Option<&DeviceMemory>) -> u64 {
    infallible(0, || memory.and_then(|memory| memory.0.address().ok()).unwrap_or(0))
}

/// Copies `size` bytes at `data` to byte `offset` of the memory and those behind it.
///
/// Errors: `OUT_OF_RANGE`; `BUSY` if a launch uses the memory that was not waited for (`hoist_device_synchronize`), or another copy;
/// `DEVICE`.
/// Threads: any number at once; two copies at once of one memory are answered `BUSY`, unless both only read.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_write(
    memory: Option<NonNull<DeviceMemory>>,
    offset: u64,
    data: Bytes,
    size: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let memory = &handle(changed(memory), "memory")?.0;
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        memory.copy_in(offset, bytes).map_err(|error| core_fault(&error))
    })
}

/// Copies `size` bytes from byte `offset` of the memory on to `data`, where zeros are after failure.
///
/// Errors: as for `hoist_device_memory_write`.
/// Threads: as for `hoist_device_memory_write`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_read(
    memory: Option<&DeviceMemory>,
    offset: u64,
    data: OutBuffer,
    size: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.zeroed(size, "data")? };
        let memory = &handle(memory, "memory")?.0;
        memory.copy_out(offset, bytes).map_err(|error| core_fault(&error))
    })
}

/// Copies `size` bytes from byte `from_offset` of one memory to byte `to_offset` of another, or of the same, behind all launches, and
/// waits for it. They may be of two devices.
///
/// Errors: `OUT_OF_RANGE`, `BUSY`, `DEVICE`; `INVALID_ARGUMENT` if source and target overlap, or of different devices one cannot
/// reach the other.
/// Threads: as for `hoist_device_memory_write`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_copy(
    from: Option<&DeviceMemory>,
    from_offset: u64,
    to: Option<NonNull<DeviceMemory>>,
    to_offset: u64,
    size: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (from, to) = (handle(from, "from")?, handle(changed(to), "to")?);
        let source = from.0.view(from_offset, size).map_err(|error| core_fault(&error))?;
        let target = to.0.view(to_offset, size).map_err(|error| core_fault(&error))?;
        if core::ptr::eq(from, to) && from_offset.abs_diff(to_offset) < size {
            return Err(Error::argument("source and target overlap"));
        }
        if size == 0 {
            return Ok(());
        }
        NvDevice::copy(&source, &target).map_err(|error| nv(&error))
    })
}

/// Frees memory; NULL is none. If a launch uses it, it goes when the launch is done.
///
/// Threads: nobody uses the handle any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_device_memory_free(memory: Option<Box<DeviceMemory>>) {
    infallible((), || drop(memory));
}
