//! The driver's own pool of stream-ordered memory.

use std::sync::Arc;

use cudarc::driver::sys::{CUmemPool_attribute as Attribute, CUmemoryPool};

use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;

/// The pool that a device's stream-ordered memory comes from ([`MemoryKind::StreamOrdered`](crate::MemoryKind::StreamOrdered)), the driver's own,
/// whichever others have made the current one (`cuDeviceSetMemPool`): how much of what was given back it keeps. Others in this process use it,
/// too.
///
/// ```no_run
/// # fn tune(device: &exec_nv::NvDevice) -> Result<(), exec_nv::Error> {
/// let pool = device.memory_pool()?;
/// pool.set_release_threshold(1 << 30)?; // keep 1 GiB over every synchronization
/// println!("{} bytes in use, {} at most so far", pool.statistics()?.used, pool.statistics()?.most_used);
/// pool.trim(0)?; // give back all that is not in use
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NvMemoryPool {
    context: Arc<Context>,
    handle: CUmemoryPool,
}

// SAFETY: the default pool of a device is there as long as the driver; handles are good on every thread.
unsafe impl Send for NvMemoryPool {}
// SAFETY: as above.
unsafe impl Sync for NvMemoryPool {}

/// Bytes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Taken from the device.
    pub reserved: u64,
    /// The most that was taken since [`NvMemoryPool::reset_statistics`].
    pub most_reserved: u64,
    /// Given out.
    pub used: u64,
    /// The most that was given out since then.
    pub most_used: u64,
}

impl NvDevice {
    /// The pool that stream-ordered memory comes from.
    ///
    /// # Errors
    /// What the driver says, of a device without pools too.
    pub fn memory_pool(&self) -> Result<NvMemoryPool, Error> {
        let context = &self.shared().context;
        let handle = context.run(|driver| context.pool(driver))?;
        Ok(NvMemoryPool { context: Arc::clone(context), handle })
    }
}

impl NvMemoryPool {
    fn get(&self, attribute: Attribute) -> Result<u64, Error> {
        let mut value = 0u64;
        // SAFETY: the pool is there; these attributes have 8 bytes.
        self.context.run(|driver| unsafe {
            driver.cuMemPoolGetAttribute(self.handle, attribute as u32, (&raw mut value).cast())
        })?;
        Ok(value)
    }

    fn set(&self, attribute: Attribute, mut value: u64) -> Result<(), Error> {
        // SAFETY: as above.
        self.context.run(|driver| unsafe {
            driver.cuMemPoolSetAttribute(self.handle, attribute as u32, (&raw mut value).cast())
        })
    }

    /// Bytes that it keeps when a queue is synchronized; what is beyond goes back to the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn release_threshold(&self) -> Result<u64, Error> {
        self.get(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    }

    /// Changes [`release_threshold`](Self::release_threshold), which is 0 at first.
    ///
    /// # Errors
    /// What the driver says.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<(), Error> {
        self.set(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Gives back to the device what is not in use, but for `keep` bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn trim(&self, keep: u64) -> Result<(), Error> {
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        // SAFETY: what is in use stays.
        self.context.run(|driver| unsafe { driver.cuMemPoolTrimTo(self.handle, keep) })
    }

    /// What it has, and had.
    ///
    /// # Errors
    /// What the driver says.
    pub fn statistics(&self) -> Result<PoolStatistics, Error> {
        Ok(PoolStatistics {
            reserved: self.get(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            most_reserved: self.get(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used: self.get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            most_used: self.get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    /// Lets the two highest numbers begin again at what is now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn reset_statistics(&self) -> Result<(), Error> {
        self.set(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)?;
        self.set(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)
    }
}
