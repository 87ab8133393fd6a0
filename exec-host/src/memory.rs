//! Memory that is written first and run then, never both at once.

use crate::error::Error;
use core::ffi::c_void;
use core::ptr;
use elf_core::SegmentFlags;
use elf_layout::Segment;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Zeroed anonymous pages of this process, given back on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    size: usize,
}

// SAFETY: the mapping is owned memory: nothing in it belongs to a thread.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out addresses only.
unsafe impl Sync for Mapping {}

/// `MAP_32BIT` of Linux on x86-64: an address below 2 GiB.
const MAP_32BIT: u32 = if cfg!(target_arch = "x86_64") { 0x40 } else { 0 };
/// First address that `MAP_32BIT` never gives out.
const LOW: u64 = 1 << 31;

impl Mapping {
    /// At least `size` bytes, writable, at a multiple of `alignment` (a power of two), below `limit` if there is one.
    pub(crate) fn new(size: usize, alignment: usize, limit: Option<u64>) -> Result<Self, Error> {
        let page = rustix::param::page_size();
        let out_of_memory = Error::OutOfMemory { size: size as u64 };
        let slack = alignment.saturating_sub(page);
        let size = size.max(1).checked_next_multiple_of(page).ok_or(out_of_memory)?;
        let reserved = size.checked_add(slack).ok_or(Error::OutOfMemory { size: size as u64 })?;
        let low =
            if limit.is_some() { MapFlags::from_bits_retain(MAP_32BIT) } else { MapFlags::empty() };
        // SAFETY: without a wish for an address no existing mapping is touched.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                reserved,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | low,
            )
        };
        let start = start.map_err(|cause| match limit {
            Some(limit) => Error::NoLowMemory { size: size as u64, limit: limit.min(LOW) },
            None => Error::Map { size: size as u64, cause },
        })?;
        let mut mapping = Self { start: start.cast(), size: reserved };
        if slack > 0 {
            mapping.trim(size, alignment);
        }
        let end = mapping.address().saturating_add(mapping.size as u64);
        match limit {
            Some(limit) if end > limit => Err(Error::NoLowMemory { size: size as u64, limit }),
            _ => Ok(mapping),
        }
    }

    /// Gives back what is before the first multiple of `alignment` and behind `size` bytes from there.
    fn trim(&mut self, size: usize, alignment: usize) {
        let before = self.start.align_offset(alignment);
        let Some(behind) = self.size.checked_sub(before).and_then(|rest| rest.checked_sub(size))
        else {
            return;
        };
        let unmap = |at: *mut u8, size: usize| {
            if size > 0 {
                // SAFETY: the pages are ours, whole, and outside of what is kept.
                let _ = unsafe { munmap(at.cast(), size) };
            }
        };
        let kept = self.start.wrapping_add(before);
        unmap(self.start, before);
        unmap(kept.wrapping_add(size), behind);
        (self.start, self.size) = (kept, size);
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Number of bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size as u64
    }

    /// All bytes, before any of them is protected.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the pages are mapped, writable as long as `protect` was not called, and ours alone.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.size) }
    }

    /// Gives the pages of `segment` their permissions.
    pub(crate) fn protect(&self, segment: &Segment) -> Result<(), Error> {
        let flags = segment.flags;
        if flags.contains(SegmentFlags::WRITE) {
            return if flags.contains(SegmentFlags::EXECUTE) {
                Err(Error::WriteExecute)
            } else {
                Ok(())
            };
        }
        let execute = flags.contains(SegmentFlags::EXECUTE);
        let flags =
            if execute { MprotectFlags::READ | MprotectFlags::EXEC } else { MprotectFlags::READ };
        let page = rustix::param::page_size();
        let (Ok(offset), Ok(size)) =
            (usize::try_from(segment.offset), usize::try_from(segment.size))
        else {
            return Err(Error::OutOfMemory { size: segment.size });
        };
        let size = size.checked_next_multiple_of(page).unwrap_or(size);
        if offset.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(Error::OutOfMemory { size: segment.size });
        }
        let start = self.start.wrapping_add(offset);
        if execute {
            crate::cache::synchronize(start, size);
        }
        // SAFETY: the range lies inside the mapping, and no reference to its bytes is alive.
        unsafe { mprotect(start.cast::<c_void>(), size, flags) }
            .map_err(|cause| Error::Map { size: size as u64, cause })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and functions that are given out do not outlive us.
        let _ = unsafe { munmap(self.start.cast(), self.size) };
    }
}
