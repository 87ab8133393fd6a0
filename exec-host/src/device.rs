//! This machine as a device: memory, a queue with threads of its own, programs.
//!
//! With [`HostOptions::guard`], a function that crashes gives [`Error::Fault`] and the process lives. What cannot be promised
//! then: that what the function was changing is in order, in its buffers or anywhere else it could write; that locks it
//! held, those of `malloc` included, are ever free again, so that the next one who wants them does not wait for ever; that
//! memory it had is given back; that it has not gone on for a while, writing where it should not, before it was stopped. The
//! error sticks to the device until it is [reset](Device::reset), for whoever does that to decide. A function that
//! does not return, calls `abort` or `exit`, or throws an exception, is not caught; nor is one that leaves by `longjmp`, changes the
//! thread pointer or blocks the signals.
//!
//! All other signals go to the handlers that were there before, or do what they did without any. A handler that is installed later is
//! in front, and decides whether to pass crashes on; the next device with a guard is in front of it again. Threads need a stack for
//! signals; one that is too small is replaced as long as the thread lives.

use crate::word::wide;
use core::num::NonZero;
use exec_core::sync::Mutex;
use std::path::Path;
use std::string::String;
use std::sync::Arc;
use std::{fs, io, thread};

use exec_core::{
    Allocator as _, Device, DeviceId, DeviceKind, Error, Limits, LruAllocator, MemoryInfo,
    Signature, View,
};

use crate::guard;
use crate::{Loader, Process};

mod allocator;
mod call;
mod event;
mod grid;
mod image;
mod program;
mod queue;
mod refusal;
mod shared;

pub use allocator::{HostAllocator, HostMemory};
pub use event::HostEvent;
pub use image::HostImage;
pub use program::HostProgram;
use queue::Queue;
use refusal::Refusal;
use shared::Shared;

/// How a [`HostDevice`] is to be.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// The most bytes of memory; without it, what the machine has.
    pub memory: Option<u64>,
    /// How much freed memory is kept for reuse.
    pub keep: Limits,
    /// How many threads work on a grid; without it, one for each core.
    pub threads: Option<NonZero<usize>>,
    /// Whether crashes of programs are caught.
    pub guard: bool,
}

impl Default for HostOptions {
    /// All of the machine; at most a quarter of its memory kept; no guard.
    fn default() -> Self {
        let keep = Limits { bytes: total_memory() / 4, number: 4096 };
        Self { memory: None, keep, threads: None, guard: false }
    }
}

/// The processor and memory of this process, as a device. Clones are the same device.
///
/// Calls run in the order they were queued in, on a thread of the device; those of a grid on one thread for each core. When the
/// last program and the last clone are gone, what is queued is done and the threads end.
///
/// ```
/// use exec_core::{Device as _, Launch, Program as _, Scalar, Spec};
/// use exec_host::device::{HostDevice, HostOptions};
///
/// # #[cfg(target_arch = "x86_64")] {
/// let device = HostDevice::new(HostOptions::default())?;
/// let image = device.load(include_bytes!("../../fixtures/x86_64/elftest.o"))?; // float foo(int)
/// let foo = device.program(&image, "foo", None)?;
/// let buffer = device.buffer(4096, Spec::new().zeroed())?;
/// assert!(buffer.host()?.iter().all(|byte| *byte == 0));
/// // SAFETY: the function takes an integer; nobody has a use for what it returns.
/// unsafe { foo.call(&[], &[Scalar::I32(321)], Launch::ONCE.waiting())? };
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostDevice(Arc<Shared>);

impl HostDevice {
    /// A device with threads of its own.
    ///
    /// # Errors
    /// [`Error::Device`] if there are no threads to be had, or the guard cannot be installed.
    pub fn new(options: HostOptions) -> Result<Self, Error> {
        Self::with_loader(options, Loader::new().reuse_memory(true))
    }

    /// A device whose images are loaded in this way.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_loader(options: HostOptions, loader: Loader) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::Device(Arc::new(error));
        if options.guard {
            guard::install().map_err(fail)?;
        }
        let threads = options.threads.or_else(|| thread::available_parallelism().ok());
        let helpers = threads.map_or(0, |threads| threads.get() - 1);
        let memory = options.memory.unwrap_or_else(total_memory);
        let allocator = HostAllocator::new(DeviceId::unique(), memory);
        Ok(Self(Arc::new(Shared {
            queue: Queue::new(helpers).map_err(fail)?,
            allocator: Arc::new(LruAllocator::new(allocator, options.keep)),
            loader,
            process: Arc::new(Mutex::new(Process::new())),
            is_guarded: options.guard,
        })))
    }

    /// Opens a library whose symbols images may use, as [`Process::open`].
    ///
    /// # Errors
    /// [`Error::Load`].
    ///
    /// # Safety
    /// The library's constructors run.
    pub unsafe fn open(&self, library: impl AsRef<Path>) -> Result<(), Error> {
        let mut process = self.0.process.lock();
        // SAFETY: the caller guarantees the library.
        unsafe { process.open(library) }.map_err(|error| Error::Load(Arc::new(error)))
    }

    /// Waits until everything in the queue is done, then copies out of a buffer.
    ///
    /// # Errors
    /// As [`Device::synchronize`] and [`View::copy_out`].
    pub fn read(
        &self,
        from: &View<LruAllocator<HostAllocator>>,
        at: u64,
        to: &mut [u8],
    ) -> Result<(), Error> {
        self.synchronize()?;
        from.copy_out(at, to)
    }

    /// Waits until everything in the queue is done, then copies into a buffer.
    ///
    /// # Errors
    /// As [`Device::synchronize`] and [`View::copy_in`].
    pub fn write(
        &self,
        to: &View<LruAllocator<HostAllocator>>,
        at: u64,
        from: &[u8],
    ) -> Result<(), Error> {
        self.synchronize()?;
        to.copy_in(at, from)
    }
}

/// Bytes of memory that the machine has.
fn total_memory() -> u64 {
    let system = rustix::system::sysinfo();
    wide(system.totalram).saturating_mul(u64::from(system.mem_unit))
}

impl Device for HostDevice {
    type Allocator = LruAllocator<HostAllocator>;
    type Image = HostImage;
    type Program = HostProgram;

    fn id(&self) -> DeviceId {
        self.0.allocator.device()
    }

    fn name(&self) -> String {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let model = fields.find(|(key, _)| key.trim() == "model name");
        model.map_or_else(|| String::from(std::env::consts::ARCH), |(_, name)| name.trim().into())
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Host
    }

    fn memory(&self) -> Result<MemoryInfo, Error> {
        let system = rustix::system::sysinfo();
        let free = system.freeram.saturating_add(system.bufferram);
        let free = wide(free).saturating_mul(u64::from(system.mem_unit));
        let allocator = self.0.allocator.inner();
        let left = allocator.limit().saturating_sub(allocator.used());
        let kept = self.0.allocator.statistics().held;
        Ok(MemoryInfo { total: allocator.limit(), available: left.min(free).saturating_add(kept) })
    }

    fn allocator(&self) -> &Arc<Self::Allocator> {
        &self.0.allocator
    }

    fn load(&self, image: &[u8]) -> Result<Arc<HostImage>, Error> {
        self.0.queue.sticky().check()?;
        let loaded = HostImage::load(image, &self.0.loader, &self.0.process);
        loaded.map(Arc::new).map_err(|error| Error::Load(Arc::new(Refusal::new(error, image))))
    }

    fn program(
        &self,
        image: &Arc<HostImage>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<HostProgram, Error> {
        self.0.queue.sticky().check()?;
        HostProgram::find(&self.0, image, name, signature)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.0.queue.drain();
        self.0.queue.sticky().check()
    }

    fn fault(&self) -> Option<Error> {
        self.0.queue.sticky().get()
    }

    fn reset(&self) -> Option<Error> {
        self.0.queue.drain();
        self.0.queue.sticky().take()
    }
}
