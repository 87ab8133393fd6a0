//! What executors share, whether they run code on the host or on a GPU: devices, memory, programs, compilers.
//!
//! An executor implements [`Allocator`], [`Program`] and [`Device`]; users get [`Buffer`]s that know whether somebody still
//! works with them, an [`LruAllocator`] that keeps what was freed for the next one who asks, calls whose arguments are checked
//! before anything runs, and compilers whose output is kept on disk.
//!
//! ```
//! use exec_core::{Limits, LruAllocator};
//! # use exec_core::{Allocator, Buffer, DeviceId, Error, Spec};
//! # use std::sync::Arc;
//! # #[derive(Debug)] struct Heap(DeviceId);
//! # impl Allocator for Heap {
//! #     type Memory = Vec<u8>;
//! #     fn device(&self) -> DeviceId { self.0 }
//! #     fn allocate(&self, size: u64, _: Spec) -> Result<Vec<u8>, Error> { Ok(vec![0; size as usize]) }
//! #     fn release(&self, _: Vec<u8>) -> Result<(), Error> { Ok(()) }
//! #     fn address(&self, memory: &Vec<u8>) -> u64 { memory.as_ptr().addr() as u64 }
//! #     unsafe fn copy_in(&self, _: &Vec<u8>, _: u64, _: &[u8]) -> Result<(), Error> { Ok(()) }
//! #     unsafe fn copy_out(&self, _: &Vec<u8>, _: u64, _: &mut [u8]) -> Result<(), Error> { Ok(()) }
//! # }
//! # let heap = Heap(DeviceId::unique());
//! let allocator = Arc::new(LruAllocator::new(heap, Limits { bytes: 1 << 30, number: 1000 }));
//! let buffer = Buffer::new(&allocator, 4096, Spec::new())?;
//! let view = buffer.view(1024, 512)?;
//! assert_eq!(view.address()?, buffer.address()? + 1024);
//! buffer.free()?;
//! assert!(matches!(view.address(), Err(Error::Freed)));
//! let again = Buffer::new(&allocator, 4000, Spec::new())?; // same size class: the memory of before
//! assert_eq!(allocator.statistics().hits, 1);
//! # Ok::<(), Error>(())
//! ```
//!
//! | to do | see |
//! |---|---|
//! | memory | [`Allocator`], [`Spec`], [`Buffer`], [`View`], [`LruAllocator`] |
//! | code | [`Program`], [`Signature`], [`Scalar`] |
//! | both | [`Device`], [`Sticky`] |
//! | compilers | [`Compiler`], [`Cache`], `DiskCache` (feature `disk`) |
//! | names as in the source | `demangled` (feature `demangle`) |
//! | much to do at once | `threads` (feature `std`) |
//!
//! It needs `alloc`. Its locks spin, as there is nothing else without an operating system; with the feature `std` they are the
//! system's. It cannot know what a program does with an address it was given once: [`Program::call`] is `unsafe`.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

#[expect(unsafe_code, reason = "declares what executors must uphold")]
mod allocator;
mod buffer;
mod cache;
#[cfg(doctest)]
mod compile_fail;
mod compiler;
#[cfg(feature = "demangle")]
mod demangle;
mod device;
mod device_id;
#[cfg(feature = "disk")]
mod disk;
mod error;
#[cfg(feature = "std")]
mod files;
#[expect(unsafe_code, reason = "lends the bytes of buffers that nobody else uses")]
mod host_view;
mod key;
#[expect(unsafe_code, reason = "passes on what callers uphold")]
mod lru;
mod parameter;
#[expect(unsafe_code, reason = "declares what callers must uphold")]
mod program;
mod signature;
#[expect(unsafe_code, reason = "declares what callers must uphold")]
mod spec;
#[cfg(not(feature = "std"))]
mod sync;
#[cfg(feature = "std")]
pub mod sync;
#[cfg(feature = "std")]
pub mod threads;
#[expect(unsafe_code, reason = "copies into and out of buffers that nobody else uses")]
mod transfer;
mod uses;
mod value;

pub use allocator::{Allocator, PeerMemory};
pub use buffer::{Buffer, Hold, Mapped, Retained, View};
pub use cache::{Cache, CacheMode, Lookup, NoCache};
pub use compiler::{CacheWarning, CompileError, Compiled, Compiler, Origin};
#[cfg(feature = "demangle")]
pub use demangle::demangled;
pub use device::{Device, DeviceKind, MemoryInfo, Sticky};
pub use device_id::DeviceId;
#[cfg(feature = "disk")]
pub use disk::{DiskCache, Stats, Verified, default_folder};
pub use error::{CacheError, Cause, Error, Signal};
#[cfg(feature = "std")]
pub use files::{FileError, NAMED_LIMIT, NamedFiles};
pub use host_view::{HostView, HostViewMut};
pub use key::{Identity, Key};
pub use lru::{Limits, LruAllocator, Statistics};
pub use parameter::Parameter;
pub use program::{Launch, Program};
pub use signature::Signature;
pub use spec::{ExternalMemory, Spec};
pub use transfer::copy;
pub use value::{Scalar, Type};

/// The example of `README.md`, as a test.
#[cfg(all(doctest, feature = "disk"))]
#[doc = include_str!("../README.md")]
mod readme {}
