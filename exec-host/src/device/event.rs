//! When a queued call is done.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use exec_core::Error;

/// A queued call: whether it is done, and how it went.
#[derive(Clone, Debug)]
pub struct Event(Arc<State>);

#[derive(Debug)]
struct State {
    is_done: AtomicBool,
    outcome: Mutex<Outcome>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Outcome {
    outcome: Option<Result<Duration, Error>>,
    /// Threads that sleep until it is there.
    sleepers: usize,
}

/// Looks before sleeping: waking a thread takes longer than many calls.
pub(super) const LOOKS: u32 = 500;

impl Event {
    pub(super) fn new() -> Self {
        let state = State {
            is_done: AtomicBool::new(false),
            outcome: Mutex::default(),
            done: Condvar::new(),
        };
        Self(Arc::new(state))
    }

    /// Whether it is done, successfully or not.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::Acquire)
    }

    /// Waits until it is done: the time that the call took, without waiting for its turn.
    ///
    /// # Errors
    /// [`Error::Fault`]; what stuck to the device when its turn came; [`Error::QueueClosed`].
    pub fn wait(&self) -> Result<Duration, Error> {
        for _ in 0..LOOKS {
            if self.is_done() {
                break;
            }
            spin_loop();
        }
        let mut state = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state.sleepers += 1;
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleepers -= 1;
        }
    }

    pub(super) fn finish(&self, outcome: Result<Duration, Error>) {
        let mut state = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        state.outcome = Some(outcome);
        self.0.is_done.store(true, Ordering::Release);
        if state.sleepers > 0 {
            self.0.done.notify_all();
        }
    }
}
