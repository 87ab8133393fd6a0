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
mod driver;
mod error;
#[cfg(feature = "driver")]
mod functions;

#[cfg(feature = "driver")]
pub use driver::Driver;
pub use error::Error;
