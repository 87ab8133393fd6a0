//! Libraries that the dynamic loader has opened for us.

use core::mem::ManuallyDrop;
use core::ops::Deref;
use exec_core::sync::hold;
use libloading::os::unix::Library;

/// A library, closed on drop.
///
/// A child that was forked while the dynamic loader had its lists in hand cannot open anything. So nobody forks while one is opened or
/// closed, for a second at most: what runs code of its own then may take its time, and fork itself.
#[derive(Debug)]
pub(crate) struct Opened(ManuallyDrop<Library>);

impl Opened {
    /// What `open` gives.
    pub(crate) fn by<E>(open: impl FnOnce() -> Result<Library, E>) -> Result<Self, E> {
        let _held = hold();
        open().map(|library| Self(ManuallyDrop::new(library)))
    }
}

impl Deref for Opened {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _held = hold();
        // SAFETY: nothing uses it afterwards.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
