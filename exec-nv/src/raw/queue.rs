//! Launches in their order on a channel, with what they use.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use exec_core::{Hold, LruAllocator};

use super::allocator::RawAllocator;
use super::channel::{Channel, Mark, Submission};
use super::context::Context;
use super::error::Error;
use super::local_memory::LocalMemory;
use super::memory::{Memory, Place};
use super::qmd::Grid;
use super::queues::InOrder;
use super::system::System;

/// Memory that a launch uses.
pub(super) type Use<S> = Hold<LruAllocator<RawAllocator<S>>>;

/// Launches that run in their order. Those of several queues run beside each other.
pub struct RawQueue<S: System> {
    state: Arc<Mutex<State<S>>>,
    context: Arc<Context<S>>,
}

/// What a launch is, but for addresses that are known when it is put into the queue.
pub(super) struct Work {
    /// The first bank has no address yet.
    pub(super) grid: Grid,
    /// Bank 0.
    pub(super) bank: Vec<u8>,
    /// Stack of a thread in bytes.
    pub(super) stack: u32,
}

/// What a queue has.
struct State<S: System> {
    // first, so that nothing runs any more when the rest goes
    channel: Channel<S>,
    local: Option<(LocalMemory, Memory<S>)>,
    /// What launches and waits use that are not known to be done, by the point that the channel comes to after each.
    pending: VecDeque<(u64, Used<S>)>,
}

enum Used<S: System> {
    Launch {
        _memory: Vec<Use<S>>,
        /// Local memory of before, which launches before may use.
        _local: Option<Memory<S>>,
    },
    /// The GPU reads the count of another channel, which may go before.
    Wait { _mark: Mark<S> },
}

impl<S: System> RawQueue<S> {
    pub(super) fn new(context: &Arc<Context<S>>, channel: Channel<S>) -> Self {
        let state = State { channel, local: None, pending: VecDeque::new() };
        let state = Arc::new(Mutex::new(state));
        let in_order: Weak<dyn InOrder> = Arc::downgrade(&state) as _;
        context.queues().add(in_order);
        Self { state, context: Arc::clone(context) }
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts launches into the queue, behind what is there; each begins when the one before has ended. Gives the time that they took
    /// if it is to `wait`.
    pub(super) fn launch(
        &self,
        works: &[Work],
        memory: Vec<Use<S>>,
        wait: bool,
    ) -> Result<Option<Duration>, Error> {
        let (context, mut state) = (&self.context, self.lock());
        let limit = context.limit();
        state.channel.fault()?;
        let stack = works.iter().map(|work| work.stack).max().unwrap_or(0);
        let larger = state.larger_local(context, stack)?;
        let State { channel, local, pending } = &mut *state;
        let mut submission = channel.begin(limit);
        let size = match (&larger, &*local) {
            (Some((size, memory)), _) => {
                submission.push.set_local_memory(memory.address(), *size)?;
                *size
            }
            (None, Some((size, _))) => *size,
            (None, None) => LocalMemory { thread: 0, tpc: 0, buffer: 0 },
        };
        let stamps = if wait { Some(submission.stamp()?) } else { None };
        let first = encode(&mut submission, context, works, size.thread)?;
        if let Some(first) = first {
            submission.push.launch(first)?;
        }
        if let Some(stamps) = stamps {
            submission.stamp_end(stamps)?;
        }
        let point = submission.submit()?;
        let before = larger.and_then(|larger| local.replace(larger));
        let used = Used::Launch { _memory: memory, _local: before.map(|(_, memory)| memory) };
        pending.push_back((point, used));
        state.release()?;
        let Some(stamps) = stamps else { return Ok(None) };
        state.channel.wait(point, limit)?;
        state.pending.clear();
        state.channel.time(stamps).map(Some)
    }

    /// Waits until all launches are done.
    ///
    /// # Errors
    /// [`Error::Stopped`] if a launch did something that the GPU stops channels for; [`Error::TimeOut`], after which launches may
    /// still run.
    pub fn synchronize(&self) -> Result<(), Error> {
        let outcome = self.lock().synchronize(self.context.limit());
        self.context.note(outcome)
    }

    /// Lets what comes after wait for all that is in `other` now. `other` may go before that has passed; if it is stopped, what waits
    /// for it goes on waiting, and [`synchronize`](Self::synchronize) says so.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] if the two queues are not of one device: their addresses have nothing in common. What the channel says.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        if core::ptr::eq(self, other) {
            return Ok(());
        }
        self.check_device(&other.context)?;
        let mark = other.lock().channel.mark();
        let mut state = self.lock();
        let mut submission = state.channel.begin(self.context.limit());
        submission.wait_for(&mark)?;
        let point = submission.submit()?;
        state.pending.push_back((point, Used::Wait { _mark: mark }));
        state.release()
    }

    /// Whether it is a queue of a device: addresses of another mean nothing to it.
    pub(super) fn check_device(&self, context: &Context<S>) -> Result<(), Error> {
        if self.context.id() == context.id() { Ok(()) } else { Err(Error::OtherDevice) }
    }

    /// Takes another channel, after the one before was stopped.
    pub(super) fn renew(&self, channel: Channel<S>) {
        let before = {
            let mut state = self.lock();
            let new = State { channel, local: None, pending: VecDeque::new() };
            core::mem::replace(&mut *state, new)
        };
        drop(before);
    }
}

impl<S: System> InOrder for Mutex<State<S>> {
    fn wait(&self, limit: Duration) -> Result<(), Error> {
        self.lock().unwrap_or_else(PoisonError::into_inner).synchronize(limit)
    }

    fn is_stopped(&self) -> bool {
        self.lock().unwrap_or_else(PoisonError::into_inner).channel.fault().is_err()
    }
}

impl<S: System> State<S> {
    /// Waits until all launches are done.
    fn synchronize(&mut self, limit: Duration) -> Result<(), Error> {
        let outcome = self.channel.wait(self.channel.latest(), limit);
        // after a stop nothing runs any more
        if !matches!(outcome, Err(Error::TimeOut { .. })) {
            self.pending.clear();
        }
        outcome
    }

    /// Gives back what is not used any more.
    fn release(&mut self) -> Result<(), Error> {
        let reached = self.channel.reached()?;
        while self.pending.front().is_some_and(|&(point, _)| point <= reached) {
            self.pending.pop_front();
        }
        Ok(())
    }

    /// Local memory for stacks of so many bytes, if what there is is less.
    fn larger_local(
        &self,
        context: &Context<S>,
        stack: u32,
    ) -> Result<Option<(LocalMemory, Memory<S>)>, Error> {
        let size = LocalMemory::new(context.gpu().facts().shape, stack)?;
        if self.local.as_ref().is_some_and(|(now, _)| now.thread >= size.thread) {
            return Ok(None);
        }
        let memory = Memory::new(context.gpu(), size.buffer, Place::Device)?;
        Ok(Some((size, memory)))
    }
}

/// Puts banks and blocks where the channel reads them, each block naming the next: gives the address of the first.
fn encode<S: System>(
    submission: &mut Submission<'_, S>,
    context: &Context<S>,
    works: &[Work],
    local: u32,
) -> Result<Option<u64>, Error> {
    let version = context.gpu().classes().qmd();
    let mut next = None;
    for work in works.iter().rev() {
        let mut grid = Grid { local, next, ..work.grid.clone() };
        let address = submission.put(&work.bank)?;
        if let Some(Some(bank)) = grid.banks.first_mut() {
            bank.address = address;
        }
        next = Some(submission.put(grid.encode(version)?.bytes())?);
    }
    Ok(next)
}

impl<S: System> Drop for RawQueue<S> {
    /// Waits: memory and code of what runs must stay. What has not ended then is stopped with the channel.
    fn drop(&mut self) {
        let _ = self.synchronize();
    }
}

impl<S: System> fmt::Debug for RawQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawQueue").field("device", &self.context.id()).finish_non_exhaustive()
    }
}
