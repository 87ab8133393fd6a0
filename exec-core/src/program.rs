//! Functions of a loaded image.

use core::time::Duration;

use crate::allocator::Allocator;
use crate::buffer::View;
use crate::error::Error;
use crate::signature::Signature;
use crate::value::Scalar;

/// How often a function runs, and whether the caller waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Groups of threads in each dimension. On the host: calls of the function; only the first dimension.
    pub grid: [u32; 3],
    /// Threads of a block (workgroup) in each dimension. On the host: 1 each.
    pub block: [u32; 3],
    /// Whether to wait until it is done, and say how long it took.
    pub wait: bool,
}

impl Launch {
    /// Once.
    pub const ONCE: Self = Self { grid: [1; 3], block: [1; 3], wait: false };

    /// `count` blocks of one thread.
    #[must_use]
    pub const fn grid(count: u32) -> Self {
        Self { grid: [count, 1, 1], ..Self::ONCE }
    }

    /// With waiting.
    #[must_use]
    pub const fn waiting(self) -> Self {
        Self { wait: true, ..self }
    }
}

/// A function of a loaded image. Several of them share one image, which stays loaded as long as one of them lives or runs.
pub trait Program: Send + Sync {
    /// What the buffers it works on are from.
    type Allocator: Allocator;

    /// The function's name.
    fn name(&self) -> &str;

    /// What is known of its parameters.
    fn signature(&self) -> Option<&Signature>;

    /// Puts a call into the device's queue, behind those before it. Its arguments are first the buffers, then the values.
    ///
    /// Gives the time that it took if the launch waits, else nothing: errors of the function itself then show at the next
    /// call or when the device is synchronized.
    ///
    /// # Errors
    /// Before anything runs: [`Error::ArgumentCount`], [`Error::Argument`], [`Error::Freed`], [`Error::InUse`],
    /// [`Error::OtherDevice`], [`Error::Launch`], and whatever sticks to the device. If the launch waits, also [`Error::Fault`]
    /// and [`Error::Device`].
    ///
    /// # Safety
    /// The function takes such arguments, is sound to run with them beside whatever else runs, and uses of the buffers no
    /// byte outside of the views.
    unsafe fn call(
        &self,
        buffers: &[&View<Self::Allocator>],
        values: &[Scalar],
        launch: Launch,
    ) -> Result<Option<Duration>, Error>;
}
