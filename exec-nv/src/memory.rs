//! A device's memory, and the host's that it can use.

use core::ffi::c_void;
use core::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use exec_core::{Allocator, DeviceId, Error, ExternalMemory, PeerMemory, Spec};

use crate::context::Context;
use crate::error;

/// Where memory is, and who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// On the device (`cuMemAlloc`).
    Device,
    /// On the device, from the driver's [own pool](crate::NvMemoryPool) (`cuMemAllocFromPoolAsync`): there when it is given out, and usable in
    /// all queues.
    StreamOrdered,
    /// On the host, its pages fixed, seen by both (`cuMemHostAlloc`).
    Pinned,
    /// Wherever it was used last, seen by both (`cuMemAllocManaged`). Where the host must not touch any such memory while a kernel runs, whichever
    /// that uses (Windows, and Linux on it), it is not seen by the host, and copied as memory of the device is.
    Managed,
}

/// Gives out memory that programs of a device can use, of one kind; what a [`Spec`] wants to be visible to the host is pinned,
/// unless it is managed.
#[derive(Debug)]
pub struct NvAllocator {
    context: Arc<Context>,
    kind: MemoryKind,
}

/// Memory from an [`NvAllocator`].
#[derive(Debug)]
pub struct NvMemory {
    /// As the device sees it.
    address: u64,
    /// As the host sees it, or null.
    host: *mut u8,
    size: u64,
    /// `None` if it is the caller's.
    kind: Option<MemoryKind>,
    generation: u64,
}

// SAFETY: the memory is owned, or as good as that by what `ExternalMemory` asks for; it is touched only where no other thread does.
unsafe impl Send for NvMemory {}
// SAFETY: as above.
unsafe impl Sync for NvMemory {}

/// Memory of the host that devices were let use.
struct Registered {
    address: u64,
    size: usize,
    /// How many have it.
    count: usize,
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// `CU_MEM_ATTACH_GLOBAL`.
const ATTACH_GLOBAL: u32 = 1;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const PINNED: u32 = 1 | 2;
/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u32 = 4;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;

impl NvAllocator {
    pub(crate) const fn new(context: Arc<Context>, kind: MemoryKind) -> Self {
        Self { context, kind }
    }

    /// The kind of memory that it gives out.
    #[must_use]
    pub const fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The memory itself: its address on the device and on the host.
    fn take(&self, size: u64, kind: MemoryKind, spec: Spec) -> Result<(u64, *mut u8), Error> {
        let bytes = usize::try_from(size).map_err(|_| Error::OutOfMemory { size })?;
        let (mut address, mut host) = (0, ptr::null_mut::<c_void>());
        let take = |driver: &crate::Driver| {
            // SAFETY: the places are ours.
            unsafe {
                match kind {
                    MemoryKind::Device => driver.cuMemAlloc_v2(&raw mut address, bytes)?,
                    // not here
                    MemoryKind::StreamOrdered => {}
                    MemoryKind::Managed => {
                        driver.cuMemAllocManaged(&raw mut address, bytes, ATTACH_GLOBAL)?;
                        if self.context.host_sees_managed() {
                            host = ptr::with_exposed_provenance_mut(address as usize);
                        }
                    }
                    MemoryKind::Pinned => {
                        let cached = if spec.is_uncached() { WRITE_COMBINED } else { 0 };
                        driver.cuMemHostAlloc(&raw mut host, bytes, PINNED | cached)?;
                        let mapped = driver.cuMemHostGetDevicePointer_v2(&raw mut address, host, 0);
                        if let Err(error) = mapped {
                            let _ = driver.cuMemFreeHost(host);
                            return Err(error);
                        }
                    }
                }
            }
            Ok(())
        };
        let outcome = match kind {
            MemoryKind::StreamOrdered => {
                let outcome = self.context.transfer(|driver, stream| {
                    let pool = self.context.pool(driver)?;
                    // SAFETY: the place is ours, the pool is there.
                    unsafe { driver.cuMemAllocFromPoolAsync(&raw mut address, bytes, pool, stream) }
                });
                if outcome.is_err() && address != 0 {
                    // SAFETY: it is ours, and nobody has it yet.
                    let _ = self.context.transfers().and_then(|stream| unsafe {
                        self.context.driver().cuMemFreeAsync(address, stream)
                    });
                }
                outcome
            }
            MemoryKind::Device => self.context.run(take),
            MemoryKind::Managed if !self.context.host_sees_managed() => self.context.run(take),
            MemoryKind::Pinned | MemoryKind::Managed => {
                self.context.take_host_memory(|| self.context.run(take))
            }
        };
        match outcome {
            Ok(()) => Ok((address, host.cast())),
            Err(error::Error::Driver { code: OUT_OF_MEMORY, .. }) => {
                Err(Error::OutOfMemory { size })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl NvAllocator {
    /// The memory as it was asked for, or nothing of it.
    fn ready(&self, memory: NvMemory, spec: Spec) -> Result<NvMemory, Error> {
        let outcome = if memory.address.is_multiple_of(spec.alignment()) {
            // SAFETY: nobody else has the memory yet.
            if spec.is_zeroed() { unsafe { self.zero(&memory, memory.size) } } else { Ok(()) }
        } else {
            Err(Error::Alignment { alignment: spec.alignment() })
        };
        match outcome {
            Ok(()) => Ok(memory),
            Err(error) => {
                // what went wrong first is what counts
                let _ = self.release(memory);
                Err(error)
            }
        }
    }
}

impl NvMemory {
    /// `size` bytes from `at`, if they are all inside: their address.
    fn place(&self, at: u64, size: u64) -> Result<u64, Error> {
        match at.checked_add(size) {
            Some(end) if end <= self.size => Ok(self.address.wrapping_add(at)),
            _ => Err(Error::Outside { offset: at, size, available: self.size }),
        }
    }
}

impl Allocator for NvAllocator {
    type Memory = NvMemory;

    fn device(&self) -> DeviceId {
        self.context.id()
    }

    fn allocate(&self, size: u64, spec: Spec) -> Result<NvMemory, Error> {
        if size == 0 {
            return Err(Error::Empty);
        }
        let generation = self.context.generation();
        let kind = match self.kind {
            MemoryKind::Device | MemoryKind::StreamOrdered if spec.is_host_visible() => {
                MemoryKind::Pinned
            }
            MemoryKind::Managed if spec.is_host_visible() && !self.context.host_sees_managed() => {
                MemoryKind::Pinned
            }
            kind => kind,
        };
        let (address, host) = self.take(size, kind, spec)?;
        self.ready(NvMemory { address, host, size, kind: Some(kind), generation }, spec)
    }

    fn adopt(&self, external: ExternalMemory, spec: Spec) -> Result<NvMemory, Error> {
        let (address, size) = (external.address(), external.size());
        if size == 0 {
            return Err(Error::Empty);
        }
        let generation = self.context.generation();
        let host = ptr::null_mut();
        self.ready(NvMemory { address, host, size, kind: None, generation }, spec)
    }

    fn release(&self, memory: NvMemory) -> Result<(), Error> {
        let Some(kind) = memory.kind else { return Ok(()) };
        if !memory.host.is_null() {
            self.context.gives_host_memory();
        }
        let give_back = |driver: &crate::Driver| {
            // SAFETY: it came from there, and is ours.
            unsafe {
                match kind {
                    MemoryKind::Device | MemoryKind::Managed => driver.cuMemFree_v2(memory.address),
                    MemoryKind::StreamOrdered => {
                        driver.cuMemFreeAsync(memory.address, self.context.transfers()?)
                    }
                    MemoryKind::Pinned => driver.cuMemFreeHost(memory.host.cast()),
                }
            }
        };
        Ok(self.context.release(memory.generation, give_back)?)
    }

    fn address(&self, memory: &NvMemory) -> u64 {
        memory.address
    }

    fn is_host(&self, memory: &NvMemory) -> bool {
        !memory.host.is_null()
    }

    fn check(&self, memory: &NvMemory) -> Result<(), Error> {
        if memory.generation == self.context.generation() { Ok(()) } else { Err(Error::Lost) }
    }

    unsafe fn copy_in(&self, memory: &NvMemory, at: u64, from: &[u8]) -> Result<(), Error> {
        let to = memory.place(at, from.len() as u64)?;
        // SAFETY: inside of memory that nobody else uses; waits until `from` is read.
        Ok(self.context.transfer(|driver, stream| unsafe {
            driver.cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), stream)
        })?)
    }

    unsafe fn copy_out(&self, memory: &NvMemory, at: u64, to: &mut [u8]) -> Result<(), Error> {
        let from = memory.place(at, to.len() as u64)?;
        // SAFETY: inside of memory that nobody writes; `to` is the caller's, and written when this returns.
        Ok(self.context.transfer(|driver, stream| unsafe {
            driver.cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), stream)
        })?)
    }

    unsafe fn zero(&self, memory: &NvMemory, size: u64) -> Result<(), Error> {
        let address = memory.place(0, size)?;
        let size = usize::try_from(size).map_err(|_| Error::OutOfMemory { size })?;
        // SAFETY: inside of memory that nobody else uses.
        Ok(self.context.transfer(|driver, stream| unsafe {
            driver.cuMemsetD8Async(address, 0, size, stream)
        })?)
    }

    unsafe fn bytes<'m>(&self, memory: &'m NvMemory) -> Option<&'m [u8]> {
        let size = usize::try_from(memory.size).ok().filter(|_| self.is_host(memory))?;
        // SAFETY: the host has so many bytes there, and nobody writes them.
        Some(unsafe { core::slice::from_raw_parts(memory.host, size) })
    }

    unsafe fn bytes_mut<'m>(&self, memory: &'m NvMemory) -> Option<&'m mut [u8]> {
        let size = usize::try_from(memory.size).ok().filter(|_| self.is_host(memory))?;
        // SAFETY: the host has so many bytes there, and nobody else uses them.
        Some(unsafe { core::slice::from_raw_parts_mut(memory.host, size) })
    }

    /// Memory of the host is made fast in its place; that of another GPU is reached where the two can.
    fn import(&self, memory: PeerMemory) -> Result<u64, Error> {
        if let Some(peer) = Context::of(memory.device) {
            return Ok(self.context.reach(&peer).map(|()| memory.address)?);
        }
        if !memory.is_host {
            return Err(Error::Unsupported { what: "memory of that other device" });
        }
        let host = ptr::with_exposed_provenance_mut::<c_void>(memory.address as usize);
        let size =
            usize::try_from(memory.size).map_err(|_| Error::OutOfMemory { size: memory.size })?;
        let mut address = 0;
        // what is registered is so for all devices
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            registered.iter().position(|it| it.address == memory.address && it.size == size);
        let map = |driver: &crate::Driver| {
            // SAFETY: the memory is there as long as the caller keeps it, which is until `forget`.
            unsafe {
                if known.is_none() {
                    driver.cuMemHostRegister_v2(host, size, PINNED)?;
                }
                driver.cuMemHostGetDevicePointer_v2(&raw mut address, host, 0).inspect_err(|_| {
                    if known.is_none() {
                        let _ = driver.cuMemHostUnregister(host);
                    }
                })
            }
        };
        self.context.run(map)?;
        match known.and_then(|at| registered.get_mut(at)) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => registered.push(Registered { address: memory.address, size, count: 1 }),
        }
        Ok(address)
    }

    fn forget(&self, memory: PeerMemory, _address: u64) {
        if Context::of(memory.device).is_none() && memory.is_host {
            let host = ptr::with_exposed_provenance_mut::<c_void>(memory.address as usize);
            let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
            let is_this = |it: &Registered| it.address == memory.address;
            let Some(at) = registered.iter().position(is_this) else { return };
            if let Some(known) = registered.get_mut(at)
                && known.count > 1
            {
                known.count -= 1;
                return;
            }
            registered.swap_remove(at);
            // SAFETY: registered by `import`. There is nobody to tell of an error.
            let _ =
                self.context.enter().and_then(|driver| unsafe { driver.cuMemHostUnregister(host) });
        }
    }
}
