//! What the CUDA driver says of a device.

use core::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::DeviceProperties;
use crate::context::Context;
use crate::error::Error;

impl DeviceProperties {
    pub(crate) fn of(context: &Context) -> Result<Self, Error> {
        let (driver, device) = (context.enter()?, context.device());
        let number = |attribute: Attribute| -> Result<u32, Error> {
            let mut value: c_int = 0;
            // SAFETY: the place is ours.
            unsafe { driver.cuDeviceGetAttribute(&raw mut value, attribute as u32, device)? };
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let flag = |attribute| number(attribute).map(|value| value != 0);
        // what newer drivers know: 0 from those that do not
        let newer = |attribute| match number(attribute) {
            Err(Error::Driver { code: 1, .. }) => Ok(0),
            outcome => outcome,
        };
        let mut name = [0; 256];
        let (mut uuid, mut memory) = ([0; 16], 0);
        // SAFETY: the places are ours and as large as said.
        unsafe {
            driver.cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256, device)?;
            driver.cuDeviceGetUuid_v2(&raw mut uuid, device)?;
            driver.cuDeviceTotalMem_v2(&raw mut memory, device)?;
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        use Attribute as A;
        let major = number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            uuid,
            sm: major.saturating_mul(10).saturating_add(minor),
            driver: driver.version(),
            memory: memory as u64,
            sm_count: number(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            warp: number(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            max_grid: [
                number(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                number(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                number(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            max_block: [
                number(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                number(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                number(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_threads: number(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_registers: number(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            shared: number(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_opt_in: number(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_per_sm: number(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            shared_reserved: newer(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            l2_cache: number(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            pci: [
                number(A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
                number(A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
                number(A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
            ],
            cooperative_launch: flag(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)?,
            cluster_launch: newer(A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0,
            memory_pools: newer(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
            managed_memory: flag(A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)?,
        })
    }
}
