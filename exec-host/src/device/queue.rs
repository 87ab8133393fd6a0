//! Calls in their order, on a thread of their own.

use core::hint::spin_loop;
use core::mem;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Instant;

use core::sync::atomic::{AtomicUsize, Ordering};
use exec_core::{Error, Sticky};

use super::call::Call;
use super::event::{self, HostEvent, Work as _};
use super::grid::Pool;

/// Runs calls one after the other.
#[derive(Debug)]
pub(super) struct Queue {
    /// The process that has the threads: a child of it has none of them.
    process: u32,
    work: Arc<Work>,
    thread: Option<JoinHandle<()>>,
}

/// What is to be done, for the queue's thread and all who wait for it.
#[derive(Debug)]
pub(super) struct Work {
    state: Mutex<State>,
    /// Calls in the queue, to look at without the lock.
    waiting: AtomicUsize,
    more: Condvar,
    idle: Condvar,
    /// Looks before sleeping: waking a thread takes longer than many calls. None where a look keeps another thread from working.
    looks: u32,
    pool: Pool,
    sticky: Sticky,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<(Call, HostEvent)>,
    is_running: bool,
    is_closed: bool,
    /// Whether the queue's thread sleeps and nobody has woken it; waking nobody takes the system as long as waking somebody.
    is_asleep: bool,
    /// Threads that wait until nothing runs.
    waiters: usize,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call whose turn it is.
    fn run(&self, call: &Call) -> Result<Duration, Error> {
        self.sticky.check()?;
        let start = Instant::now();
        // SAFETY: whoever put the call into the queue guarantees it.
        let outcome = unsafe { self.pool.run(&call.entry, &call.slots, call.count) };
        let time = start.elapsed();
        outcome.inspect_err(|error| self.sticky.set(error.clone()))?;
        Ok(time)
    }

    /// Takes the next call, if there is one and nothing runs.
    fn next(&self, state: &mut State) -> Option<(Call, HostEvent)> {
        if state.is_running {
            return None;
        }
        let next = state.calls.pop_front()?;
        self.waiting.store(state.calls.len(), Ordering::Relaxed);
        state.is_running = true;
        Some(next)
    }

    /// Runs a call that was taken.
    fn serve(&self, (call, event): (Call, HostEvent)) {
        let outcome = self.run(&call);
        // buffers are free before anybody hears that the call is over
        drop(call);
        event.finish(outcome);
        self.done();
    }

    /// Ends a turn.
    fn done(&self) {
        let mut state = self.lock();
        state.is_running = false;
        if state.calls.is_empty() && state.waiters > 0 {
            self.idle.notify_all();
        }
        if (state.is_closed || !state.calls.is_empty()) && mem::take(&mut state.is_asleep) {
            self.more.notify_one();
        }
    }
}

impl event::Work for Work {
    fn help(&self, is_enough: &dyn Fn() -> bool) {
        while !is_enough() {
            let mut state = self.lock();
            let Some(next) = self.next(&mut state) else { return };
            drop(state);
            self.serve(next);
        }
    }

    fn looks(&self) -> u32 {
        self.looks
    }
}

/// Looks that take as long as it takes to wake a thread, about 20 microseconds.
const LOOKS: u32 = 1000;

impl Queue {
    /// A queue whose grids run on `helpers` threads beside its own.
    pub(super) fn new(helpers: usize) -> io::Result<Self> {
        let has_cores = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        let work = Arc::new(Work {
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
            more: Condvar::new(),
            idle: Condvar::new(),
            looks: if has_cores { LOOKS } else { 0 },
            pool: Pool::new(helpers)?,
            sticky: Sticky::new(),
        });
        let shared = Arc::clone(&work);
        let thread = Builder::new().name("hoist queue".into()).spawn(move || serve(&shared))?;
        Ok(Self { process: std::process::id(), work, thread: Some(thread) })
    }

    /// What sticks to the device.
    pub(super) fn sticky(&self) -> &Sticky {
        &self.work.sticky
    }

    /// Runs a call behind those before it.
    pub(super) fn submit(&self, call: Call) -> HostEvent {
        let event = HostEvent::new(Arc::<Work>::downgrade(&self.work));
        let mut state = self.work.lock();
        state.calls.push_back((call, event.clone()));
        self.work.waiting.store(state.calls.len(), Ordering::Relaxed);
        let wakes = mem::take(&mut state.is_asleep);
        drop(state);
        if wakes {
            self.work.more.notify_one();
        }
        event
    }

    /// Runs a call behind those before it, and waits. If there are none, it runs here: no thread need wake up.
    pub(super) fn run(&self, call: Call) -> Result<Duration, Error> {
        let mut state = self.work.lock();
        if state.is_running || !state.calls.is_empty() {
            drop(state);
            return self.submit(call).wait();
        }
        state.is_running = true;
        drop(state);
        let outcome = self.work.run(&call);
        drop(call);
        self.work.done();
        outcome
    }

    /// Waits until nothing waits and nothing runs.
    pub(super) fn drain(&self) {
        self.work.help(&|| false);
        let mut state = self.work.lock();
        while state.is_running || !state.calls.is_empty() {
            state.waiters += 1;
            state = self.work.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiters -= 1;
        }
    }
}

/// The queue's thread.
fn serve(work: &Work) {
    loop {
        for _ in 0..work.looks {
            if work.waiting.load(Ordering::Relaxed) > 0 {
                break;
            }
            spin_loop();
        }
        let mut state = work.lock();
        let next = loop {
            if let Some(next) = work.next(&mut state) {
                break next;
            }
            if state.is_closed && !state.is_running {
                return;
            }
            state.is_asleep = true;
            state = work.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        };
        drop(state);
        work.serve(next);
    }
}

impl Drop for Queue {
    /// Runs what is in the queue, then ends.
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return mem::forget(self.thread.take());
        }
        self.work.lock().is_closed = true;
        self.work.more.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
