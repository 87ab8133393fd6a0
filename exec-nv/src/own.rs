//! The own loader: a linked cubin laid out, relocated and copied into memory of the device, without the driver's loader.
//!
//! A [`Plan`] says where everything goes; [`Plan::write`] gives the bytes for an address. The driver launches functions of modules
//! that it has loaded only, so that each kernel also has a `shell`: a small cubin with everything that a launch of the kernel is
//! made of - registers, shared memory, stack, parameters, barriers, constant banks - and, for code, four instructions that go on
//! at the kernel's address in our memory. The shell's constants are those of the image: relocated for our addresses.
//!
//! What it needs of the hardware, and what of that was measured, is in the crate's `README.md`.

mod entry;
mod error;
mod plan;
#[cfg(any(feature = "driver", feature = "raw"))]
pub(crate) mod reach;
#[cfg(any(feature = "driver", feature = "raw"))]
mod shell;

pub use entry::{ENTRY_SIZE, EXIT_OFFSET, FIRST_SM, entry};
pub use error::OwnError;
pub use plan::Plan;
#[cfg(any(feature = "driver", feature = "raw"))]
pub use shell::shell;
