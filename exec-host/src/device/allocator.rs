//! Memory of this process as a device's memory.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc};

use exec_core::{Allocator, DeviceId, Error, External, Foreign, Spec};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Gives out aligned memory of this process, up to a limit: the system itself promises more than there is.
#[derive(Debug)]
pub struct HostAllocator {
    device: DeviceId,
    limit: u64,
    used: AtomicU64,
}

/// Memory from a [`HostAllocator`].
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    size: usize,
    source: Source,
}

/// Where memory is from: the heap, asked for this alignment, or elsewhere. A number, as an enum between others is slow to move, and
/// memory changes hands more often than it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source(usize);

impl Source {
    const PAGES: Self = Self(0);
    const EXTERNAL: Self = Self(usize::MAX);
}

// SAFETY: the memory is owned, or as good as that by what `External` asks for; it is touched only where no other thread does.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

/// Bytes from which on memory is made of pages, which are zero without anybody writing them.
const PAGES: usize = 1 << 17;

impl HostAllocator {
    /// Memory of this process, at most `limit` bytes at a time.
    #[must_use]
    pub const fn new(device: DeviceId, limit: u64) -> Self {
        Self { device, limit, used: AtomicU64::new(0) }
    }

    /// Bytes given out at the moment.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that can be given out.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    fn memory(size: u64, alignment: u64) -> Result<HostMemory, Error> {
        let fail = || Error::OutOfMemory { size };
        let (bytes, alignment) =
            usize::try_from(size).ok().zip(usize::try_from(alignment).ok()).ok_or_else(fail)?;
        let layout = Layout::from_size_align(bytes, alignment).map_err(|_| fail())?;
        if bytes < PAGES || alignment > rustix::param::page_size() {
            // SAFETY: the size is not 0: buffers of no bytes are refused, and so is `allocate` of them.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(fail)?;
            return Ok(HostMemory { start, size: bytes, source: Source(alignment) });
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: touches no existing mapping.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
        let start = start.ok().and_then(|start| NonNull::new(start.cast())).ok_or_else(fail)?;
        Ok(HostMemory { start, size: bytes, source: Source::PAGES })
    }
}

impl HostMemory {
    /// `size` bytes from `at`, if they are all inside.
    fn place(&self, at: u64, size: usize) -> Result<*mut u8, Error> {
        let outside = Error::Outside { offset: at, size: size as u64, available: self.size as u64 };
        match at.checked_add(size as u64) {
            Some(end) if end <= self.size as u64 => {
                Ok(self.start.as_ptr().wrapping_add(at as usize))
            }
            _ => Err(outside),
        }
    }
}

impl Allocator for HostAllocator {
    type Memory = HostMemory;

    fn device(&self) -> DeviceId {
        self.device
    }

    fn allocate(&self, size: u64, spec: Spec) -> Result<HostMemory, Error> {
        if size == 0 {
            return Err(Error::Empty);
        }
        if spec.is_uncached() {
            return Err(Error::Unsupported { what: "uncached memory" });
        }
        let add = |used: u64| used.checked_add(size).filter(|sum| *sum <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| Error::OutOfMemory { size })?;
        Self::memory(size, spec.alignment()).inspect_err(|_| {
            self.used.fetch_sub(size, Ordering::Relaxed);
        })
    }

    fn adopt(&self, external: External, spec: Spec) -> Result<HostMemory, Error> {
        let size = external.size();
        if size == 0 {
            return Err(Error::Empty);
        }
        if spec.is_uncached() {
            return Err(Error::Unsupported { what: "uncached memory" });
        }
        if !external.address().is_multiple_of(spec.alignment()) {
            return Err(Error::Alignment { alignment: spec.alignment() });
        }
        let start = ptr::with_exposed_provenance_mut(external.address() as usize);
        let start = NonNull::new(start).ok_or(Error::OutOfMemory { size })?;
        let bytes = usize::try_from(size).map_err(|_| Error::OutOfMemory { size })?;
        let memory = HostMemory { start, size: bytes, source: Source::EXTERNAL };
        if spec.is_zeroed() {
            // SAFETY: the memory was given to us alone.
            unsafe { self.zero(&memory, size)? };
        }
        Ok(memory)
    }

    fn release(&self, memory: HostMemory) -> Result<(), Error> {
        let start = memory.start.as_ptr();
        match memory.source {
            Source::EXTERNAL => return Ok(()),
            // SAFETY: the pages are ours, all of them.
            Source::PAGES => unsafe { munmap(start.cast::<c_void>(), memory.size) }
                .map_err(|cause| Error::Device(std::sync::Arc::new(cause)))?,
            Source(alignment) => {
                // SAFETY: a layout was made of these numbers when it was allocated.
                let layout = unsafe { Layout::from_size_align_unchecked(memory.size, alignment) };
                // SAFETY: it came from there with this layout, and is ours.
                unsafe { dealloc(start, layout) };
            }
        }
        self.used.fetch_sub(memory.size as u64, Ordering::Relaxed);
        Ok(())
    }

    fn address(&self, memory: &HostMemory) -> u64 {
        memory.start.as_ptr().expose_provenance() as u64
    }

    fn is_host(&self, _memory: &HostMemory) -> bool {
        true
    }

    unsafe fn copy_in(&self, memory: &HostMemory, at: u64, from: &[u8]) -> Result<(), Error> {
        let to = memory.place(at, from.len())?;
        // SAFETY: inside, and nobody else's, so not `from`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    unsafe fn copy_out(&self, memory: &HostMemory, at: u64, to: &mut [u8]) -> Result<(), Error> {
        let from = memory.place(at, to.len())?;
        // SAFETY: inside and initialized; `to` is the caller's.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn zero(&self, memory: &HostMemory, size: u64) -> Result<(), Error> {
        let outside = Error::Outside { offset: 0, size, available: memory.size as u64 };
        let size = usize::try_from(size).map_err(|_| outside)?;
        let start = memory.place(0, size)?;
        // SAFETY: inside, and nobody else's.
        unsafe { ptr::write_bytes(start, 0, size) };
        Ok(())
    }

    unsafe fn bytes<'m>(&self, memory: &'m HostMemory) -> Option<&'m [u8]> {
        // SAFETY: all of it is initialized, and nobody writes it.
        Some(unsafe { core::slice::from_raw_parts(memory.start.as_ptr(), memory.size) })
    }

    unsafe fn bytes_mut<'m>(&self, memory: &'m HostMemory) -> Option<&'m mut [u8]> {
        // SAFETY: all of it is initialized, and nobody else uses it.
        Some(unsafe { core::slice::from_raw_parts_mut(memory.start.as_ptr(), memory.size) })
    }

    fn import(&self, memory: Foreign) -> Result<u64, Error> {
        if memory.is_host {
            Ok(memory.address)
        } else {
            Err(Error::Unsupported { what: "memory that the host cannot see" })
        }
    }
}
