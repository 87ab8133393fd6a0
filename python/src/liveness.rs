//! Whether code is still there, and how many are inside.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The state of a load, which its functions share: calls that are not over, and whether none may begin any more.
#[derive(Default)]
pub(crate) struct Liveness(AtomicUsize);

/// No call begins any more.
const GONE: usize = 1 << (usize::BITS - 1);

impl Liveness {
    /// Whether it can be called.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.load(Ordering::Relaxed) & GONE == 0
    }

    /// A call begins, unless the code is gone. What begins [leaves](Self::leave) again.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        let before = self.add(1);
        let may = before & GONE == 0;
        if !may {
            self.leave();
        }
        may
    }

    /// A call is over.
    pub(crate) fn leave(&self) {
        self.add(usize::MAX);
    }

    /// No call begins any more; how many are not over, in which case nothing changes.
    pub(crate) fn end(&self) -> Result<(), usize> {
        match self.0.compare_exchange(0, GONE, Ordering::Acquire, Ordering::Relaxed) {
            Err(state) if state & GONE == 0 => Err(state),
            _ => Ok(()),
        }
    }

    /// Adds to what is counted, and gives what it was.
    #[cfg(Py_GIL_DISABLED)]
    fn add(&self, what: usize) -> usize {
        self.0.fetch_add(what, Ordering::AcqRel)
    }

    /// The same: the interpreter's lock, which callers hold, makes load and store one step.
    #[cfg(not(Py_GIL_DISABLED))]
    fn add(&self, what: usize) -> usize {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.wrapping_add(what), Ordering::Relaxed);
        before
    }
}
