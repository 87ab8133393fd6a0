//! How many blocks an SM runs at a time: as the driver says, and as we compute it.

use core::ffi::c_int;
use core::ptr;

use nvinfo::occupancy::{self, Occupancy};

use crate::config::{attributes, config};
use crate::error::Error;
use crate::launch::NvLaunch;
use crate::program::NvProgram;

/// How many blocks of a kernel an SM runs at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvOccupancy {
    /// As the driver says.
    pub driver: u32,
    /// As computed from the kernel's image, with what keeps it from more; `None` of PTX, and of architectures that are not known.
    pub image: Option<Occupancy>,
}

impl NvOccupancy {
    /// Whether the two are the same, or there is only one.
    #[must_use]
    pub fn agree(&self) -> bool {
        self.image.is_none_or(|image| image.blocks == self.driver)
    }
}

/// The driver's numbers are no larger than this; a negative one is none.
fn number(found: c_int) -> u32 {
    u32::try_from(found).unwrap_or(0)
}

impl NvProgram {
    /// How many blocks of so many threads, each with so much dynamic shared memory, an SM runs at a time.
    ///
    /// ```no_run
    /// # fn ask(kernel: &exec_nv::NvProgram) -> Result<(), exec_nv::Error> {
    /// let found = kernel.occupancy(256, 0)?;
    /// if let Some(image) = found.image {
    ///     println!("{} of {} warps, by {}", image.warps, image.of_warps, image.limiter.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the driver says.
    pub fn occupancy(&self, threads: u32, dynamic_shared: u32) -> Result<NvOccupancy, Error> {
        let device = self.device();
        let driver = self.function().active_blocks(threads, dynamic_shared)?;
        let limits = occupancy::limits(device.properties.sm);
        let image = self.kernel().resources.as_ref().zip(limits).map(|(kernel, limits)| {
            limits.occupancy(&kernel.demand(threads, dynamic_shared.into()))
        });
        Ok(NvOccupancy { driver, image })
    }

    /// The threads of a block with which the device is used best, and the fewest blocks that use all of it, with so much dynamic shared
    /// memory for a block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn best_block(&self, dynamic_shared: u32) -> Result<(u32, u32), Error> {
        let (mut blocks, mut threads) = (0, 0);
        let (function, shared) = (self.function().handle()?, dynamic_shared as usize);
        // SAFETY: the places are ours, the function is there; there is no function that says how much memory a block takes.
        self.device().context.run(|driver| unsafe {
            driver.cuOccupancyMaxPotentialBlockSize(
                &raw mut blocks,
                &raw mut threads,
                function,
                ptr::null(),
                shared,
                0,
            )
        })?;
        Ok((number(threads), number(blocks)))
    }

    /// How many clusters of such a launch the device runs at a time.
    ///
    /// # Errors
    /// [`Error::Launch`]; what the driver says.
    pub fn active_clusters(&self, launch: &NvLaunch) -> Result<u32, Error> {
        self.check(launch)?;
        let mut attributes = attributes(launch);
        let config = config(launch, ptr::null_mut(), &mut attributes);
        self.function().active_clusters(&config)
    }
}
