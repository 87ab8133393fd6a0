//! Where images for an arena are written first: as many addresses as a region has, of which loads use a few pages.

use crate::error::Error;
use core::ffi::c_void;
use core::ptr;
use exec_core::sync::Mutex;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::region::SPREAD;

/// Pages of zeros, private and writable.
#[derive(Debug)]
pub(super) struct Staging {
    start: *mut u8,
    /// Bytes that loads have left.
    used: u64,
}

// SAFETY: the pages belong to no thread.
unsafe impl Send for Staging {}
// SAFETY: `&Staging` gives out nothing.
unsafe impl Sync for Staging {}

/// What loads keep in memory at most, in bytes.
const KEPT: u64 = 1 << 20;

impl Staging {
    fn new() -> Result<Self, Error> {
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: without a wish for an address no existing mapping is touched.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), SPREAD as usize, writable, flags) };
        let start = start.map_err(|cause| Error::Map { size: SPREAD, cause: cause.into() })?;
        Ok(Self { start: start.cast(), used: 0 })
    }

    /// All of it.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are mapped, writable, and ours.
        unsafe { core::slice::from_raw_parts_mut(self.start, SPREAD as usize) }
    }

    /// Makes what a load has written zero again.
    pub(super) fn clear(&mut self, start: usize, size: usize) {
        if let Some(part) = self.bytes_mut().get_mut(start..start.saturating_add(size)) {
            part.fill(0);
        }
        self.used = self.used.saturating_add(size.next_multiple_of(1 << 12) as u64);
        if self.used > KEPT {
            self.used = 0;
            // SAFETY: the pages are ours, and zero. Should it fail, they stay.
            let _ = unsafe {
                madvise(self.start.cast::<c_void>(), SPREAD as usize, Advice::LinuxDontNeed)
            };
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and no reference to them is alive.
        let _ = unsafe { munmap(self.start.cast(), SPREAD as usize) };
    }
}

/// Those that no load uses: as many as there were loads at once.
#[derive(Debug, Default)]
pub(super) struct Stagings(Mutex<Vec<Staging>>);

impl Stagings {
    pub(super) fn take(&self) -> Result<Staging, Error> {
        let kept = self.0.lock().pop();
        kept.map_or_else(Staging::new, Ok)
    }

    pub(super) fn give(&self, staging: Staging) {
        self.0.lock().push(staging);
    }
}
