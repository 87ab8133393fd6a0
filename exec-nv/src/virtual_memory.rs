//! Addresses and memory apart: ranges of addresses that are reserved, memory that is mapped there, by whom it may be used.

mod physical;

pub use physical::{Granularity, PhysicalMemory};

use std::sync::Arc;

use cudarc::driver::sys::{CUmemAccess_flags as Flags, CUmemAccessDesc};
use exec_core::Error as CoreError;

use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;
use physical::{bytes, location, multiple, sized, some};

/// What a device may do with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

/// Addresses that are reserved, with the memory that is mapped there. Dropped, it gives all of it back: nothing on a device uses it then.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use exec_nv::{Access, NvDevice};
/// # fn grow(device: &NvDevice) -> Result<(), exec_nv::Error> {
/// let piece = device.granularity(false)?.minimum;
/// let mut range = device.reserve(64 * piece, 0)?;
/// // an array that grows without being copied
/// for index in 0..4 {
///     let memory = Arc::new(device.physical_memory(piece, false)?);
///     range.map(index * piece, &memory)?;
///     range.set_access(index * piece, piece, &[(device, Access::ReadWrite)])?;
/// }
/// println!("{:#x}", range.address());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AddressRange {
    context: Arc<Context>,
    address: u64,
    size: u64,
    /// Where what begins, in their order.
    mapped: Vec<(u64, Arc<PhysicalMemory>)>,
}

impl NvDevice {
    /// Reserves addresses, at a multiple of `alignment`, a power of two, or, if that is 0, as the driver likes. No memory is there.
    ///
    /// # Errors
    /// [`Error::Multiple`] if the size is none of what memory is given in; [`Error::Core`] if it is 0, or the alignment is no power of two; what the driver
    /// says.
    pub fn reserve(&self, size: u64, alignment: u64) -> Result<AddressRange, Error> {
        some(size)?;
        multiple("the size", size, self.minimum(false)?)?;
        if alignment > 0 && !alignment.is_power_of_two() {
            return Err(CoreError::Alignment { alignment }.into());
        }
        let (context, mut address) = (&self.shared().context, 0);
        let (length, alignment) = (bytes(size)?, bytes(alignment)?);
        // SAFETY: the place is ours.
        let reserved = context.run(|driver| unsafe {
            driver.cuMemAddressReserve(&raw mut address, length, alignment, 0, 0)
        });
        sized(reserved, size)?;
        Ok(AddressRange { context: Arc::clone(context), address, size, mapped: Vec::new() })
    }
}

impl AddressRange {
    /// The first address.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The address of what is in the range.
    fn place(&self, at: u64, size: u64) -> Result<u64, Error> {
        match at.checked_add(size) {
            Some(end) if end <= self.size && size > 0 => Ok(self.address.wrapping_add(at)),
            _ => Err(CoreError::Outside { offset: at, size, available: self.size }.into()),
        }
    }

    /// Puts memory at an offset. Nobody may use it before [`set_access`](Self::set_access).
    ///
    /// # Errors
    /// [`Error::Core`] if it goes beyond the range, [`Error::Mapped`] if something is there, [`Error::Multiple`] if the offset is none of what
    /// such memory is given in; what the driver says.
    pub fn map(&mut self, at: u64, memory: &Arc<PhysicalMemory>) -> Result<(), Error> {
        let size = memory.size();
        let address = self.place(at, size)?;
        multiple("the offset", at, memory.granularity())?;
        let end = at.saturating_add(size);
        let there = |(start, other): &&(u64, Arc<PhysicalMemory>)| {
            *start < end && at < start.saturating_add(other.size())
        };
        if let Some((offset, _)) = self.mapped.iter().find(there) {
            return Err(Error::Mapped { offset: *offset });
        }
        let (length, handle) = (bytes(size)?, memory.handle());
        // SAFETY: the addresses are ours, and nothing is there.
        self.context.run(|driver| unsafe { driver.cuMemMap(address, length, 0, handle, 0) })?;
        let place = self.mapped.partition_point(|(start, _)| *start < at);
        self.mapped.insert(place, (at, Arc::clone(memory)));
        Ok(())
    }

    /// Says what devices may do with a part of it that is mapped: whole pieces of memory.
    ///
    /// # Errors
    /// [`Error::Core`] if it goes beyond the range; what the driver says.
    pub fn set_access(
        &self,
        at: u64,
        size: u64,
        devices: &[(&NvDevice, Access)],
    ) -> Result<(), Error> {
        let (address, length) = (self.place(at, size)?, bytes(size)?);
        let describe = |(device, access): &(&NvDevice, Access)| CUmemAccessDesc {
            location: location(&device.shared().context),
            flags: match access {
                Access::None => Flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                Access::Read => Flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                Access::ReadWrite => Flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            },
        };
        let described: Vec<_> = devices.iter().map(describe).collect();
        let (first, count) = (described.as_ptr(), described.len());
        // SAFETY: the addresses are ours; as many descriptions as said.
        self.context.run(|driver| unsafe { driver.cuMemSetAccess(address, length, first, count) })
    }

    /// Takes away the memory that begins at an offset. Nothing on a device uses it then.
    ///
    /// # Errors
    /// [`Error::Core`] if nothing begins there; what the driver says.
    pub fn unmap(&mut self, at: u64) -> Result<(), Error> {
        let found = self.mapped.iter().position(|(start, _)| *start == at);
        let Some((index, (_, memory))) =
            found.and_then(|at| self.mapped.get(at).map(|it| (at, it)))
        else {
            return Err(CoreError::Outside { offset: at, size: 0, available: self.size }.into());
        };
        let (address, length) = (self.address.wrapping_add(at), bytes(memory.size())?);
        // SAFETY: mapped there as a whole.
        self.context.run(|driver| unsafe { driver.cuMemUnmap(address, length) })?;
        self.mapped.remove(index);
        Ok(())
    }
}

impl Drop for AddressRange {
    /// Addresses are the process's, not the context's: they are there after a reset, too.
    fn drop(&mut self) {
        let driver = self.context.driver();
        for (at, memory) in &self.mapped {
            if let Ok(size) = usize::try_from(memory.size()) {
                // SAFETY: mapped there as a whole.
                let _ = unsafe { driver.cuMemUnmap(self.address.wrapping_add(*at), size) };
            }
        }
        if let Ok(size) = usize::try_from(self.size) {
            // SAFETY: ours, and nothing is there.
            let _ = unsafe { driver.cuMemAddressFree(self.address, size) };
        }
    }
}
