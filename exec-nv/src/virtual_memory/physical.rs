//! Memory without an address.

use std::sync::Arc;

use cudarc::driver::sys::{
    CUmemAllocationHandleType as HandleType, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1 as AllocationFlags, CUmemAllocationType, CUmemLocation,
    CUmemLocationType,
};
use exec_core::Error as CoreError;

use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;

/// What sizes of memory and of what is mapped are multiples of, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// At least.
    pub minimum: u64,
    /// For speed.
    pub recommended: u64,
}

/// Memory of a device without an address, until it is dropped and mapped nowhere.
#[derive(Debug)]
pub struct PhysicalMemory {
    context: Arc<Context>,
    handle: u64,
    size: u64,
    granularity: u64,
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;

/// What the driver has no memory or addresses for, by the size that was asked for.
pub(super) fn sized<T>(outcome: Result<T, Error>, size: u64) -> Result<T, Error> {
    outcome.map_err(|error| match error {
        Error::Driver { code: OUT_OF_MEMORY, .. } => CoreError::OutOfMemory { size }.into(),
        error => error,
    })
}

/// As the driver wants sizes.
pub(super) fn bytes(size: u64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|_| CoreError::OutOfMemory { size }.into())
}

/// [`CoreError::Empty`] if it is nothing, of which the driver says no more than that a value is wrong.
pub(super) fn some(size: u64) -> Result<(), Error> {
    if size > 0 { Ok(()) } else { Err(CoreError::Empty.into()) }
}

/// [`Error::Multiple`] unless it is.
pub(super) const fn multiple(what: &'static str, value: u64, of: u64) -> Result<(), Error> {
    if of == 0 || value.is_multiple_of(of) {
        Ok(())
    } else {
        Err(Error::Multiple { what, value, of })
    }
}

/// A device as the driver wants it.
pub(super) fn location(context: &Context) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: context.device() }
}

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
#[cfg(unix)]
const DESCRIPTOR: u32 = 1;

fn properties(context: &Context, shareable: bool) -> CUmemAllocationProp {
    let none = HandleType::CU_MEM_HANDLE_TYPE_NONE;
    let shared = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: if shareable { shared } else { none },
        location: location(context),
        win32HandleMetaData: core::ptr::null_mut(),
        allocFlags: AllocationFlags {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

impl NvDevice {
    /// What sizes of this device's memory are multiples of; of memory that other processes can have it may be another.
    ///
    /// # Errors
    /// What the driver says.
    pub fn granularity(&self, shareable: bool) -> Result<Granularity, Error> {
        let recommended = self.multiples(shareable, 1)?;
        Ok(Granularity { minimum: self.minimum(shareable)?, recommended })
    }

    pub(super) fn minimum(&self, shareable: bool) -> Result<u64, Error> {
        self.multiples(shareable, 0)
    }

    fn multiples(&self, shareable: bool, option: u32) -> Result<u64, Error> {
        let (context, mut size) = (&self.shared().context, 0);
        let properties = properties(context, shareable);
        // SAFETY: the places are ours.
        context.run(|driver| unsafe {
            driver.cuMemGetAllocationGranularity(&raw mut size, &raw const properties, option)
        })?;
        Ok(size as u64)
    }

    /// Takes memory, which other processes can have if it is `shareable`.
    ///
    /// # Errors
    /// [`Error::Multiple`] if the size is none of the [`granularity`](Self::granularity); [`Error::Core`] if there is not so much; what the
    /// driver says.
    pub fn physical_memory(&self, size: u64, shareable: bool) -> Result<PhysicalMemory, Error> {
        let granularity = self.minimum(shareable)?;
        some(size)?;
        multiple("the size", size, granularity)?;
        let (context, mut handle, length) = (&self.shared().context, 0, bytes(size)?);
        let properties = properties(context, shareable);
        // SAFETY: the places are ours.
        let made = context.run(|driver| unsafe {
            driver.cuMemCreate(&raw mut handle, length, &raw const properties, 0)
        });
        sized(made, size)?;
        Ok(PhysicalMemory { context: Arc::clone(context), handle, size, granularity })
    }

    /// Memory of another process, of the size that it has there: see [`PhysicalMemory::share`].
    ///
    /// # Errors
    /// [`Error::Multiple`] if memory cannot have that size; what the driver says.
    #[cfg(unix)]
    pub fn import_memory(
        &self,
        file: std::os::fd::BorrowedFd<'_>,
        size: u64,
    ) -> Result<PhysicalMemory, Error> {
        use std::os::fd::AsRawFd as _;
        let granularity = self.minimum(true)?;
        some(size)?;
        multiple("the size", size, granularity)?;
        let (context, mut handle) = (&self.shared().context, 0);
        // the number itself stands where the pointer is
        let number = core::ptr::without_provenance_mut(file.as_raw_fd() as usize);
        // SAFETY: the place is ours, the file is open.
        context.run(|driver| unsafe {
            driver.cuMemImportFromShareableHandle(&raw mut handle, number, DESCRIPTOR)
        })?;
        Ok(PhysicalMemory { context: Arc::clone(context), handle, size, granularity })
    }
}

impl PhysicalMemory {
    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    pub(super) const fn granularity(&self) -> u64 {
        self.granularity
    }

    pub(super) const fn handle(&self) -> u64 {
        self.handle
    }

    /// The memory as a file, to be sent to another process (`SCM_RIGHTS`), which [imports](NvDevice::import_memory) it. It has to be
    /// `shareable`. The memory is there as long as one of the two has it.
    ///
    /// # Errors
    /// What the driver says.
    #[cfg(unix)]
    pub fn share(&self) -> Result<std::os::fd::OwnedFd, Error> {
        use std::os::fd::FromRawFd as _;
        let mut file: core::ffi::c_int = -1;
        let handle = self.handle;
        // SAFETY: the place is ours, and as large as a number of a file.
        self.context.run(|driver| unsafe {
            driver.cuMemExportToShareableHandle((&raw mut file).cast(), handle, DESCRIPTOR, 0)
        })?;
        // SAFETY: a new file, ours from now on.
        Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(file) })
    }
}

impl Drop for PhysicalMemory {
    /// Memory is the device's, not the context's: it is there after a reset, too.
    fn drop(&mut self) {
        // SAFETY: ours, and mapped nowhere.
        let _ = unsafe { self.context.driver().cuMemRelease(self.handle) };
    }
}
