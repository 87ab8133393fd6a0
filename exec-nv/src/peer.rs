//! Several GPUs: who reaches whose memory.

use core::ffi::c_int;

use cudarc::driver::sys::CUdevice_P2PAttribute as Attribute;

use crate::device::NvDevice;
use crate::error::Error;

/// How a device uses another one's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAttributes {
    /// How good the way is, compared with others: the driver's number.
    pub rank: u32,
    /// Whether kernels can use the memory.
    pub access: bool,
    /// Whether atomic operations on it are atomic.
    pub atomics: bool,
}

impl NvDevice {
    /// How kernels of this device can use memory of `other`. Copies between the two always work.
    ///
    /// # Errors
    /// What the driver says.
    pub fn peer_attributes(&self, other: &Self) -> Result<PeerAttributes, Error> {
        let (here, there) = (&self.shared().context, &other.shared().context);
        let get = |attribute: Attribute| {
            let mut value: c_int = 0;
            // SAFETY: the place is ours.
            here.run(|driver| unsafe {
                let attribute = attribute as u32;
                driver.cuDeviceGetP2PAttribute(
                    &raw mut value,
                    attribute,
                    here.device(),
                    there.device(),
                )
            })?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(PeerAttributes {
            rank: get(Attribute::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)?,
            access: get(Attribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? != 0,
            atomics: get(Attribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? != 0,
        })
    }

    /// Lets kernels of this device use all memory of `other` by its addresses. Buffers that are mapped
    /// ([`View::map_on`](exec_core::View::map_on)) ask for it by themselves.
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`]; what the driver says.
    pub fn reach(&self, other: &Self) -> Result<(), Error> {
        self.shared().context.reach(&other.shared().context)
    }

    /// Ends what [`reach`](Self::reach) began.
    ///
    /// # Errors
    /// What the driver says, if it was not reached too.
    pub fn leave(&self, other: &Self) -> Result<(), Error> {
        let there = other.shared().context.handle();
        // SAFETY: both contexts are there.
        self.shared().context.run(|driver| unsafe { driver.cuCtxDisablePeerAccess(there) })
    }
}
