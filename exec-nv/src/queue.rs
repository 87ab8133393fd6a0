//! Calls in their order on a stream, with what they use.

use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exec_core::{Error as CoreError, Hold, LruAllocator, View};

use crate::error::Error;
use crate::memory::NvAllocator;
use crate::module::Function;
use crate::stream::{NvEvent, Stream};

/// What calls use, kept until they are done.
#[derive(Default)]
struct Used {
    buffers: Vec<Hold<LruAllocator<NvAllocator>>>,
    functions: Vec<Arc<Function>>,
    calls: usize,
}

/// What is not known to be done yet.
#[derive(Default)]
struct Pending {
    /// Marks, and what the calls before each use.
    marked: VecDeque<(NvEvent, Used)>,
    latest: Used,
}

/// Calls that run in their order. Those of several queues run beside each other.
pub struct NvQueue {
    stream: Arc<Stream>,
    pending: Mutex<Pending>,
}

/// Calls from one mark to the next: a mark takes about as long as a call.
const CALLS: usize = 64;

impl NvQueue {
    pub(crate) fn new(stream: Arc<Stream>) -> Self {
        Self { stream, pending: Mutex::default() }
    }

    pub(crate) const fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: nobody else puts one into the queue until it is [kept](Call::keep) or dropped.
    pub(crate) fn begin(&self) -> Call<'_> {
        let pending = self.lock();
        let before = pending.latest.buffers.len();
        Call { queue: self, pending, before }
    }

    /// Waits until all calls are done.
    ///
    /// # Errors
    /// What the driver says, of a kernel that failed too.
    pub fn synchronize(&self) -> Result<(), Error> {
        let outcome = self.stream.synchronize();
        // after an error nothing runs any more
        let pending = core::mem::take(&mut *self.lock());
        drop(pending);
        outcome
    }

    /// A mark behind all that is in the queue now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self) -> Result<NvEvent, Error> {
        NvEvent::record(&self.stream)
    }

    /// Lets what comes after wait for a mark in any queue of the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait_for_event(&self, event: &NvEvent) -> Result<(), Error> {
        self.stream.wait_for(event)
    }

    /// Puts a copy between views of one size into the queue, behind what is there; neither may be of another device. Memory of the host
    /// that both see (a [`Spec`](exec_core::Spec) that is `host_visible`) is copied as memory of the device is: so data come and go while
    /// other queues run kernels. Both buffers are in use until the queue is past it.
    ///
    /// # Errors
    /// [`Error::Core`] with what is wrong with the views; what the driver says.
    pub fn copy(
        &self,
        from: &View<LruAllocator<NvAllocator>>,
        to: &View<LruAllocator<NvAllocator>>,
    ) -> Result<(), Error> {
        if from.size() != to.size() {
            return Err(CoreError::Sizes { from: from.size(), to: to.size() }.into());
        }
        let context = self.stream.context();
        context.sticky().check()?;
        let size = usize::try_from(from.size())
            .map_err(|_| CoreError::OutOfMemory { size: from.size() })?;
        let (source, target) = (from.hold()?, to.hold()?);
        for hold in [&source, &target] {
            if hold.device() != context.id() {
                let (expected, found) = (context.id(), hold.device());
                return Err(CoreError::OtherDevice { expected, found }.into());
            }
        }
        let stream = self.stream.handle()?;
        let (from, to) = (source.address(), target.address());
        let mut call = self.begin();
        // SAFETY: both are so large, and held until the queue is past the copy.
        context.run(|driver| unsafe { driver.cuMemcpyAsync(to, from, size, stream) })?;
        call.uses(source);
        call.uses(target);
        call.keep(None)
    }

    /// Lets what comes after wait for all that is in `other` now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        self.stream.wait_for(&NvEvent::record(&other.stream)?)
    }
}

/// A call that is being put into a queue. Dropped, it uses nothing.
pub(crate) struct Call<'q> {
    queue: &'q NvQueue,
    pending: MutexGuard<'q, Pending>,
    /// How many buffers others use.
    before: usize,
}

impl Call<'_> {
    /// Makes a buffer one that the call uses.
    pub(crate) fn uses(&mut self, hold: Hold<LruAllocator<NvAllocator>>) {
        self.pending.latest.buffers.push(hold);
    }

    /// Keeps what the call uses until it is done.
    pub(crate) fn keep(mut self, function: Option<&Arc<Function>>) -> Result<(), Error> {
        let used = &mut self.pending.latest;
        // mostly the same one again
        let is_last = |function: &&Arc<Function>| {
            used.functions.last().is_some_and(|last| Arc::ptr_eq(last, function))
        };
        if let Some(function) = function.filter(|function| !is_last(function)) {
            used.functions.push(Arc::clone(function));
        }
        used.calls = used.calls.saturating_add(1);
        self.before = used.buffers.len();
        if used.calls < CALLS {
            return Ok(());
        }
        let event = NvEvent::record(&self.queue.stream)?;
        self.before = 0;
        let used = core::mem::take(&mut self.pending.latest);
        self.pending.marked.push_back((event, used));
        while self.pending.marked.front().is_some_and(|(event, _)| event.is_reached()) {
            self.pending.marked.pop_front();
        }
        Ok(())
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.pending.latest.buffers.truncate(self.before);
    }
}

impl Drop for NvQueue {
    /// Waits: memory and code of what runs must stay.
    fn drop(&mut self) {
        let _ = self.synchronize();
    }
}

impl fmt::Debug for NvQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvQueue").field("stream", &self.stream).finish_non_exhaustive()
    }
}
