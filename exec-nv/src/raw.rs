//! NVIDIA GPUs through the kernel driver alone: no CUDA library, only `/dev/nvidia*` and ioctls.
//!
//! What is here was written from the driver's public headers and from what others measured, and is checked without a GPU:
//! layouts against the headers' offsets, encoders against bit positions, the order of calls against a recorded fake.
//! **No GPU has run it yet.** [`RawDevice::open`] goes as far as a scheduled channel and says at which step the driver refused;
//! pushing work to it is to be written where a GPU answers.
//!
//! ```
//! use exec_nv::raw::{Linux, RawDevice};
//!
//! match RawDevice::open(Linux, 0) {
//!     Ok(device) => println!("sm_{} with {} SMs", device.sm, device.shape.sms()),
//!     Err(stopped) => println!("{stopped}"), // step Open: /dev/nvidiactl cannot be opened: errno 2
//! }
//! ```
//!
//! | to | see |
//! |---|---|
//! | say what is launched | [`qmd`], [`bank0`], [`SharedMemory`], [`LocalMemory`] |
//! | say it to a channel | [`PushBuffer`], [`methods`], [`ring`] |
//! | talk to the driver | [`layout`], [`call`], [`Client`], [`RawDevice`] |
//! | know why it failed | [`Error`], [`Status`], [`Notification`] |

pub mod bank0;
#[cfg(test)]
mod bring_up_test;
pub mod call;
mod class;
mod client;
mod device;
mod error;
#[cfg(test)]
mod fake;
pub mod layout;
mod linux;
mod local_memory;
pub mod methods;
mod notifier;
mod push;
pub mod qmd;
pub mod ring;
mod shared_memory;
mod status;
mod system;
mod version;
mod work;

pub use class::Classes;
pub use client::{Client, Handle};
pub use device::{Memory, RawDevice, Step, Stopped};
pub use error::Error;
pub use linux::{Linux, Shared};
pub use local_memory::{LocalMemory, RESERVED, Shape};
pub use notifier::{ChannelError, Notification};
pub use push::{PushBuffer, gpfifo_entry};
pub use shared_memory::SharedMemory;
pub use status::Status;
pub use system::{Mapping, Part, System};
pub use version::DriverVersion;
pub use work::{LOCAL_WINDOW, SHARED_WINDOW};
