//! The queues of a device, for what comes after all that they have.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::error::Error;

/// What a device asks of a queue.
pub(super) trait InOrder: Send + Sync {
    /// Waits until all its launches are done, no longer than `limit`.
    ///
    /// # Errors
    /// What stopped it; [`Error::TimeOut`].
    fn wait(&self, limit: Duration) -> Result<(), Error>;

    /// Whether its channel was stopped.
    fn is_stopped(&self) -> bool;
}

/// Queues that are there, and some that are gone.
pub(super) struct Queues(Mutex<Vec<Weak<dyn InOrder>>>);

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queues").field(&self.lock().len()).finish()
    }
}

impl Queues {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn InOrder>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(super) fn add(&self, queue: Weak<dyn InOrder>) {
        let mut queues = self.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(queue);
    }

    /// Waits until all launches of all queues are done, for each no longer than `limit`.
    ///
    /// # Errors
    /// Of the first queue that was stopped, or takes longer.
    pub(super) fn synchronize(&self, limit: Duration) -> Result<(), Error> {
        // queues come and go while it is waited
        let queues: Vec<Arc<_>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().try_for_each(|queue| queue.wait(limit))
    }

    /// Forgets those that were stopped: nothing of them runs, and their error was told.
    pub(super) fn forget_stopped(&self) {
        self.lock().retain(|queue| queue.upgrade().is_some_and(|queue| !queue.is_stopped()));
    }
}
