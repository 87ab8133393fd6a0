//! Libraries that the dynamic loader has opened for us.

use core::ops::Deref;
use exec_core::sync::{Held, hold};
use libloading::os::unix::Library;

/// A library, closed on drop.
///
/// A child that was forked while the dynamic loader had its lists in hand cannot open anything. So nobody forks while one is opened or
/// closed that has no code of its own to run then; others may take their time, and fork themselves.
#[derive(Debug)]
pub(crate) struct Opened {
    library: Library,
    runs_code: bool,
    /// While it is closed.
    held: Option<Held>,
}

impl Opened {
    /// What `open` gives, which runs no code of a library.
    pub(crate) fn quiet<E>(open: impl FnOnce() -> Result<Library, E>) -> Result<Self, E> {
        let _held = hold();
        open().map(|library| Self { library, runs_code: false, held: None })
    }
}

/// One whose constructors have run.
impl From<Library> for Opened {
    fn from(library: Library) -> Self {
        Self { library, runs_code: true, held: None }
    }
}

impl Deref for Opened {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.held = (!self.runs_code).then(hold);
    }
}
