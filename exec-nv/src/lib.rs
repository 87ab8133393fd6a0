//! Runs cubins on NVIDIA GPUs.
//!
//! Nothing of CUDA is needed to build it, and nothing to ask whether there is a GPU:
//!
//! ```
//! match exec_nv::Driver::open() {
//!     Ok(driver) => println!("CUDA {}, {} devices", driver.version(), driver.device_count()?),
//!     Err(error) => println!("no GPU: {error}"), // one line that says what is missing
//! }
//! # Ok::<(), exec_nv::Error>(())
//! ```

#[cfg(feature = "driver")]
mod arguments;
#[cfg(feature = "driver")]
mod context;
#[cfg(feature = "driver")]
mod device;
#[cfg(feature = "driver")]
mod driver;
mod error;
#[cfg(feature = "driver")]
mod functions;
#[cfg(feature = "driver")]
mod image;
#[cfg(feature = "driver")]
mod kernel;
#[cfg(feature = "driver")]
mod launch;
#[cfg(feature = "driver")]
mod loaded;
#[cfg(feature = "driver")]
mod memory;
#[cfg(feature = "driver")]
mod module;
#[cfg(feature = "driver")]
pub mod own;
#[cfg(feature = "driver")]
mod program;
#[cfg(feature = "driver")]
mod properties;
#[cfg(feature = "driver")]
mod queue;
#[cfg(feature = "raw")]
pub mod raw;
#[cfg(feature = "driver")]
mod stream;

pub use error::Error;
#[cfg(feature = "driver")]
pub use {
    arguments::Argument,
    device::{NvDevice, NvOptions},
    driver::Driver,
    image::Image,
    kernel::{Kernel, Parameter},
    launch::{LaunchError, NvLaunch},
    loaded::{Loader, NvImage},
    memory::{MemoryKind, NvAllocator, NvMemory},
    module::FunctionAttributes,
    program::NvProgram,
    properties::Properties,
    queue::NvQueue,
};
