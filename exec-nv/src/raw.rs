//! NVIDIA GPUs through the kernel driver alone: no CUDA library, only `/dev/nvidia*` and ioctls.
//!
//! What is here was written from the driver's public headers and from what others measured, and is checked without a GPU: layouts
//! against the headers' offsets, encoders against bit positions, everything from the first file to the last byte copied back on a
//! stand-in for driver and GPU, and on another project's. **No GPU has run it yet.**
//!
//! ```
//! use exec_core::Device as _;
//! use exec_nv::raw::{Linux, RawDevice, RawOptions};
//!
//! match RawDevice::open(Linux, 0, RawOptions::default()) {
//!     Ok(device) => println!("{}: sm_{}", device.name(), device.properties().sm),
//!     Err(stopped) => println!("{stopped}"), // step Open: /dev/nvidiactl cannot be opened: errno 2
//! }
//! ```
//!
//! | to | see |
//! |---|---|
//! | launch kernels | [`RawDevice`], [`RawProgram`], [`RawQueue`] |
//! | say what is launched | [`qmd`], [`bank0`], [`SharedMemory`], [`LocalMemory`] |
//! | say it to a channel | [`PushBuffer`], [`methods`], [`ring`] |
//! | talk to the driver | [`layout`], [`call`], [`Client`], [`Gpu`], [`Memory`] |
//! | know why it failed | [`Error`], [`Status`], [`Notification`], [`MmuFault`] |

mod addresses;
mod allocator;
pub mod bank0;
#[cfg(test)]
mod bring_up_test;
pub mod call;
mod channel;
mod class;
mod client;
#[cfg(test)]
mod clients_test;
mod context;
mod copies;
#[cfg(test)]
mod damage_test;
mod debugger;
mod device;
mod error;
mod facts;
#[cfg(test)]
mod fake;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod float_test;
mod gpu;
mod group;
mod image;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod integer_test;
#[cfg(test)]
mod launch_test;
pub mod layout;
mod linux;
mod local_memory;
mod mapping;
mod memory;
pub mod methods;
mod mmu_fault;
mod notifier;
mod program;
mod push;
pub mod qmd;
mod queue;
mod queues;
#[cfg(test)]
mod queues_test;
pub mod ring;
mod ring_allocator;
#[cfg(test)]
mod run_test;
mod shared;
mod shared_memory;
#[cfg(test)]
mod shortage_test;
mod status;
mod system;
mod version;
#[cfg(test)]
mod waits_test;
mod work;

pub use allocator::{RawAllocator, RawMemory};
pub use class::Classes;
pub use client::{Client, Handle};
pub use device::{RawDevice, RawOptions};
pub use error::Error;
pub use facts::Facts;
pub use gpu::{Gpu, Step, Stopped};
pub use image::RawImage;
pub use linux::{Linux, Shared};
pub use local_memory::{LocalMemory, RESERVED, Shape};
pub use memory::{Memory, Place};
pub use mmu_fault::MmuFault;
pub use notifier::{ChannelError, Notification};
pub use program::{RawArgument, RawCall, RawProgram};
pub use push::{PushBuffer, gpfifo_entry};
pub use queue::RawQueue;
pub use shared_memory::SharedMemory;
pub use status::Status;
pub use system::{Mapping, Part, System};
pub use version::DriverVersion;
pub use work::{LOCAL_WINDOW, SHARED_WINDOW};
