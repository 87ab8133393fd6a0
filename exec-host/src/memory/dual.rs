//! Pages with two addresses: one to write to, one to execute at, for processes that may not make written memory executable.

use crate::error::Error;
use core::ptr;
use elf_core::SegmentFlags;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A file in memory, and where it is written.
#[derive(Debug)]
pub(super) struct Alias {
    file: OwnedFd,
    window: Window,
}

/// Pages of the file that can be written.
#[derive(Debug)]
struct Window {
    start: *mut u8,
    size: usize,
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and references to them do not outlive us.
        let _ = unsafe { munmap(self.start.cast(), self.size) };
    }
}

/// The file when nobody writes to it any more.
#[derive(Debug)]
pub(super) struct Written {
    file: OwnedFd,
}

impl Alias {
    /// `size` zeros, whole pages.
    pub(super) fn new(size: usize, is_huge: bool) -> Result<Self, Error> {
        let refused = |cause: Errno| Error::Map { size: size as u64, cause: cause.into() };
        let file = create().map_err(refused)?;
        ftruncate(&file, size as u64).map_err(refused)?;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without a wish for an address no existing mapping is touched; the file is ours alone.
        let start = unsafe { mmap(ptr::null_mut(), size, writable, MapFlags::SHARED, &file, 0) };
        let window = Window { start: start.map_err(refused)?.cast(), size };
        if is_huge {
            // SAFETY: the pages are ours; the advice changes no content, and may be refused.
            let _ = unsafe { madvise(window.start.cast(), size, Advice::LinuxHugepage) };
        }
        Ok(Self { file, window })
    }

    /// Where to write.
    pub(super) const fn start(&self) -> *mut u8 {
        self.window.start
    }

    /// All bytes, where they are written.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many are mapped, writable, and ours alone.
        unsafe { core::slice::from_raw_parts_mut(self.window.start, self.window.size) }
    }

    /// Ends writing, for everybody who has the file or may get it.
    pub(super) fn seal(self) -> Written {
        let Self { file, window } = self;
        drop(window);
        let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        // a policy may forbid it; nobody else has the file in any case
        let _ = fcntl_add_seals(&file, all);
        Written { file }
    }
}

impl Written {
    /// Maps `size` bytes from `offset` at `start`, in the place of what is there. Who writes to them gets copies.
    ///
    /// # Safety
    /// The pages at `start` belong to the caller, and no reference to them is alive.
    pub(super) unsafe fn show(
        &self,
        start: *mut u8,
        size: usize,
        offset: u64,
        flags: SegmentFlags,
    ) -> Result<(), Errno> {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, flags.contains(SegmentFlags::WRITE));
        protection.set(ProtFlags::EXEC, flags.contains(SegmentFlags::EXECUTE));
        let how = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the caller gives the pages away.
        unsafe { mmap(start.cast(), size, protection, how, &self.file, offset) }.map(|_| ())
    }
}

/// A file without a name, which cannot be run as a program where the system has such files.
fn create() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"hoist", flags | MemfdFlags::NOEXEC_SEAL) {
        // before Linux 6.3
        Err(Errno::INVAL) => memfd_create(c"hoist", flags),
        created => created,
    }
}
