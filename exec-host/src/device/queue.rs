//! Calls in their order, on a thread of their own.

use core::hint::spin_loop;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use core::sync::atomic::{AtomicUsize, Ordering};
use exec_core::{Error, Sticky};

use super::call::Call;
use super::event::{Event, LOOKS};
use super::grid::Pool;

/// Runs calls one after the other.
#[derive(Debug)]
pub(super) struct Queue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Calls in the queue, to look at without the lock.
    waiting: AtomicUsize,
    more: Condvar,
    idle: Condvar,
    pool: Pool,
    sticky: Sticky,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<(Call, Event)>,
    is_running: bool,
    is_closed: bool,
    /// Whether the queue's thread sleeps; waking nobody takes the system as long as waking somebody.
    is_asleep: bool,
    /// Threads that wait until nothing runs.
    waiters: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call whose turn it is.
    fn run(&self, call: &Call) -> Result<Duration, Error> {
        self.sticky.check()?;
        let start = Instant::now();
        // SAFETY: whoever put the call into the queue vouches for it.
        let outcome = unsafe { self.pool.run(&call.entry, &call.slots, call.count) };
        let time = start.elapsed();
        outcome.inspect_err(|error| self.sticky.set(error.clone()))?;
        Ok(time)
    }

    /// Ends a turn.
    fn done(&self) {
        let mut state = self.lock();
        state.is_running = false;
        if state.calls.is_empty() {
            if state.waiters > 0 {
                self.idle.notify_all();
            }
        } else if state.is_asleep {
            self.more.notify_one();
        }
    }
}

impl Queue {
    /// A queue whose grids run on `helpers` threads beside its own.
    pub(super) fn new(helpers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
            more: Condvar::new(),
            idle: Condvar::new(),
            pool: Pool::new(helpers)?,
            sticky: Sticky::new(),
        });
        let work = Arc::clone(&shared);
        let thread = Builder::new().name("hoist queue".into()).spawn(move || serve(&work))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What sticks to the device.
    pub(super) fn sticky(&self) -> &Sticky {
        &self.shared.sticky
    }

    /// Runs a call behind those before it.
    pub(super) fn submit(&self, call: Call) -> Event {
        let event = Event::new();
        let mut state = self.shared.lock();
        state.calls.push_back((call, event.clone()));
        self.shared.waiting.store(state.calls.len(), Ordering::Relaxed);
        let wakes = state.is_asleep;
        drop(state);
        if wakes {
            self.shared.more.notify_one();
        }
        event
    }

    /// Runs a call behind those before it, and waits. If there are none, it runs here: no thread need wake up.
    pub(super) fn run(&self, call: Call) -> Result<Duration, Error> {
        let mut state = self.shared.lock();
        if state.is_running || !state.calls.is_empty() {
            drop(state);
            return self.submit(call).wait();
        }
        state.is_running = true;
        drop(state);
        let outcome = self.shared.run(&call);
        drop(call);
        self.shared.done();
        outcome
    }

    /// Waits until nothing waits and nothing runs.
    pub(super) fn drain(&self) {
        let mut state = self.shared.lock();
        while state.is_running || !state.calls.is_empty() {
            state.waiters += 1;
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiters -= 1;
        }
    }
}

/// The queue's thread.
fn serve(shared: &Shared) {
    loop {
        for _ in 0..LOOKS {
            if shared.waiting.load(Ordering::Relaxed) > 0 {
                break;
            }
            spin_loop();
        }
        let mut state = shared.lock();
        let (call, event) = loop {
            if !state.is_running {
                if let Some(next) = state.calls.pop_front() {
                    break next;
                }
                if state.is_closed {
                    return;
                }
            }
            state.is_asleep = true;
            state = shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        };
        shared.waiting.store(state.calls.len(), Ordering::Relaxed);
        state.is_running = true;
        drop(state);
        let outcome = shared.run(&call);
        // buffers are free before anybody hears that the call is over
        drop(call);
        event.finish(outcome);
        shared.done();
    }
}

impl Drop for Queue {
    /// Runs what is in the queue, then ends.
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.more.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
