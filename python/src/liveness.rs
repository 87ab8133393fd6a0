//! Whether code is still there, and whether somebody is inside. Read and written with the interpreter's lock held.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The state of a load, which its functions share.
#[derive(Default)]
pub(crate) struct Liveness {
    is_gone: AtomicBool,
    calls: AtomicUsize,
}

impl Liveness {
    /// Whether it can be called.
    pub(crate) fn is_alive(&self) -> bool {
        !self.is_gone.load(Ordering::Relaxed)
    }

    /// A call begins. The lock makes load and store one step.
    pub(crate) fn enter(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// A call is over.
    pub(crate) fn leave(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }

    /// No call begins any more; how many are not over, in which case nothing changes.
    pub(crate) fn end(&self) -> Result<(), usize> {
        match self.calls.load(Ordering::Relaxed) {
            0 => {
                self.is_gone.store(true, Ordering::Relaxed);
                Ok(())
            }
            calls => Err(calls),
        }
    }
}
