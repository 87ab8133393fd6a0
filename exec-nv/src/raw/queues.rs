//! The queues of a device, for what comes after all that they have.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::error::Error;
use super::queue::State;
use super::system::System;

/// Queues that are there, and some that are gone.
#[derive(Debug)]
pub(super) struct Queues<S: System>(Mutex<Vec<Weak<Mutex<State<S>>>>>);

impl<S: System> Queues<S> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Mutex<State<S>>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(super) fn add(&self, queue: &Arc<Mutex<State<S>>>) {
        let mut queues = self.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Waits until all launches of all queues are done, for each no longer than `limit`.
    ///
    /// # Errors
    /// Of the first queue that was stopped, or takes longer.
    pub(super) fn synchronize(&self, limit: Duration) -> Result<(), Error> {
        // queues come and go while it is waited
        let queues: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().try_for_each(|queue| {
            queue.lock().unwrap_or_else(PoisonError::into_inner).synchronize(limit)
        })
    }

    /// Forgets those that were stopped: nothing of them runs, and their error was told.
    pub(super) fn forget_stopped(&self) {
        self.lock().retain(|queue| {
            let queue = queue.upgrade();
            queue.is_some_and(|queue| {
                !queue.lock().unwrap_or_else(PoisonError::into_inner).is_stopped()
            })
        });
    }
}
