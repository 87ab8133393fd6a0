//! When a queued call is done.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use exec_core::Error;

/// A queue in which a call waits for its turn.
pub(super) trait Work: core::fmt::Debug + Send + Sync {
    /// Runs calls here, in their order, until `is_enough` or another thread is at it.
    fn help(&self, is_enough: &dyn Fn() -> bool);

    /// How often to look whether another thread is done before sleeping.
    fn looks(&self) -> u32;
}

/// A queued call: whether it is done, and how it went.
#[derive(Clone, Debug)]
pub struct HostEvent(Arc<State>);

#[derive(Debug)]
struct State {
    /// Where the call is, as long as there is a queue.
    work: Weak<dyn Work>,
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

impl HostEvent {
    pub(super) fn new(work: Weak<dyn Work>) -> Self {
        let state = State {
            work,
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

    /// Waits until it is done: the time that the call took, without waiting for its turn. Calls up to this one that nobody has
    /// begun run on this thread: no other need wake up for them.
    ///
    /// # Errors
    /// [`Error::Fault`]; what stuck to the device when its turn came.
    pub fn wait(&self) -> Result<Duration, Error> {
        if let Some(work) = self.0.work.upgrade() {
            work.help(&|| self.is_done());
            for _ in 0..work.looks() {
                if self.is_done() {
                    break;
                }
                spin_loop();
            }
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
