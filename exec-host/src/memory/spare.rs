//! Memory of modules that are gone, for those that come: what is mapped need not be mapped again.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use exec_core::sync::{Mutex, MutexGuard};

use rustix::mm::{MprotectFlags, mprotect, munmap};

/// Pages that nobody uses: writable, not executable.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    /// The latest at the end.
    pieces: Mutex<Vec<Piece>>,
}

#[derive(Debug)]
struct Piece {
    start: *mut u8,
    size: usize,
}

// SAFETY: the pages belong to no thread.
unsafe impl Send for Piece {}

/// How many pieces are kept, and of how many bytes at most: to fill more with zeros takes longer than to map it.
const NUMBER: usize = 16;
const SIZE: usize = 1 << 16;

impl Spare {
    fn pieces(&self) -> MutexGuard<'_, Vec<Piece>> {
        self.pieces.lock()
    }

    /// `size` bytes of zeros, writable, if there is a piece of this size.
    pub(super) fn take(&self, size: usize) -> Option<*mut u8> {
        let mut pieces = self.pieces();
        let found = pieces.iter().rposition(|piece| piece.size == size)?;
        let start = ManuallyDrop::new(pieces.remove(found)).start;
        drop(pieces);
        // SAFETY: so many bytes are mapped there, writable, and nobody else's any more.
        unsafe { start.write_bytes(0, size) };
        Some(start)
    }

    /// Keeps pages, unless they are too many or may not be made writable again.
    ///
    /// # Safety
    /// They are private anonymous pages, which nobody uses any more.
    pub(super) unsafe fn give(&self, start: *mut u8, size: usize) {
        let piece = Piece { start, size };
        // a function that is called although it is gone shall crash, as if the pages were
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the pages are nobody's.
        if size > SIZE || unsafe { mprotect(start.cast::<c_void>(), size, flags) }.is_err() {
            return drop(piece);
        }
        let mut pieces = self.pieces();
        let oldest = (pieces.len() >= NUMBER).then(|| pieces.remove(0));
        pieces.push(piece);
        drop(pieces);
        drop(oldest);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: nobody uses the pages, and nobody will.
        let _ = unsafe { munmap(self.start.cast(), self.size) };
    }
}
