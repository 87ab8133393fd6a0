//! Calls in their order on a stream, with what they use.

use core::any::Any;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::sys::CUgraph;
use exec_core::{Error as CoreError, Hold, LruAllocator, View};

use crate::context::Context;
use crate::error::Error;
use crate::memory::NvAllocator;
use crate::pending::{Capture, Pending, Retains, Used, lock};
use crate::sides::Sides;
use crate::stream::{NvEvent, Stream};

/// Calls that run in their order. Those of several queues run beside each other.
pub struct NvQueue {
    stream: Arc<Stream>,
    pending: Arc<Mutex<Pending>>,
}

/// Calls from one mark to the next: a mark takes about as long as a call.
const CALLS: usize = 64;

impl NvQueue {
    pub(crate) fn new(stream: Arc<Stream>) -> Self {
        Self { stream, pending: Arc::default() }
    }

    pub(crate) const fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
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
        Pending::wait(&self.pending, &self.stream)
    }

    /// A mark behind all that is in the queue now. While calls are captured it is one of the graph's, which other queues can
    /// [wait for](Self::wait_for_event) to be captured, too, and nobody else.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self) -> Result<NvEvent, Error> {
        // where it is, is known: nobody begins or ends a capture meanwhile
        let pending = self.lock();
        let event = NvEvent::record(&self.stream)?;
        Ok(match &pending.capture {
            Some((capture, _)) => event.within(capture),
            None => event,
        })
    }

    /// A mark as [`record`](Self::record), which other processes can wait for, and which has no time: see [`NvEvent::share`].
    ///
    /// # Errors
    /// [`Error::Capturing`]; what the driver says.
    pub fn record_shareable(&self) -> Result<NvEvent, Error> {
        self.outside(|| NvEvent::record_shareable(&self.stream))
    }

    /// Moves a mark behind all that is in the queue now, one of another process too: who waits for it from now on waits for this.
    ///
    /// # Errors
    /// [`Error::Capturing`], of a mark of a capture too; [`Error::Stale`] after a reset; [`Error::Core`] of a mark of another device; what the driver says.
    pub fn record_again(&self, event: &NvEvent) -> Result<(), Error> {
        self.outside(|| event.record_again(&self.stream))
    }

    /// Puts something into the queue that cannot be captured.
    fn outside<T>(&self, put: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let pending = self.lock();
        if pending.capture.is_some() { Err(Error::Capturing) } else { put() }
    }

    /// The capture that calls go into.
    fn capture(&self) -> Option<Arc<Capture>> {
        self.lock().capture.as_ref().map(|(capture, _)| Arc::clone(capture))
    }

    /// [`Error::Capturing`] while calls go into a graph.
    pub(crate) fn not_capturing(&self) -> Result<(), Error> {
        if self.capture().is_some() { Err(Error::Capturing) } else { Ok(()) }
    }

    /// Lets calls go into a graph from now on.
    pub(crate) fn begin_capture(&self) -> Result<(), Error> {
        let mut pending = self.lock();
        if pending.capture.is_some() {
            return Err(Error::Capturing);
        }
        self.stream.begin_capture()?;
        pending.begin(&Arc::default());
        Ok(())
    }

    /// The graph of all calls since [`begin_capture`](Self::begin_capture), of all queues that were in it, and what they use.
    pub(crate) fn end_capture(&self) -> Result<(CUgraph, Used), Error> {
        let capture = self.capture().ok_or(Error::Capturing)?;
        let (graph, used) = capture.end(&self.pending, || self.stream.end_capture());
        Ok((graph?, used))
    }

    /// Lets what comes after wait for a mark in any queue of the device. A mark that was recorded while calls are captured has the calls of this
    /// queue captured as well, up to the end of the capture; the queue that began it has to wait for this one before.
    ///
    /// # Errors
    /// [`Error::Capturing`] if calls of this queue go into another graph, or those of the mark's do not any more; what the driver says.
    pub fn wait_for_event(&self, event: &NvEvent) -> Result<(), Error> {
        let Some(capture) = event.capture::<Capture>()? else { return self.stream.wait_for(event) };
        capture.join(&self.stream, &self.pending, || self.stream.wait_for(event))
    }

    /// Puts a copy between views of one size into the queue, behind what is there; one of them may be of another GPU. Memory of the host
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
        let context = self.stream.context();
        context.sticky().check()?;
        let Sides { from: source, to: target, size } = Sides::of(from, to)?;
        // at least one end is here: whose the queue is, waits for what runs
        let (expected, found) = (context.id(), source.device());
        if found != expected && target.device() != expected {
            return Err(CoreError::OtherDevice { expected, found }.into());
        }
        let gone = || Error::from(CoreError::Freed);
        let source_context = Context::of(source.device()).ok_or_else(gone)?;
        let target_context = Context::of(target.device()).ok_or_else(gone)?;
        let stream = self.stream.handle()?;
        let (from, to) = (source.address(), target.address());
        let mut call = self.begin();
        // SAFETY: both are so large, and held until the queue is past the copy.
        context.run(|driver| unsafe {
            if source_context.id() == target_context.id() {
                return driver.cuMemcpyAsync(to, from, size, stream);
            }
            let (there, here) = (target_context.handle(), source_context.handle());
            driver.cuMemcpyPeerAsync(to, there, from, here, size, stream)
        })?;
        call.uses(source);
        call.uses(target);
        call.done();
        Ok(())
    }

    /// Lets what comes after wait for all that is in `other` now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        self.wait_for_event(&other.record()?)
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

    /// Makes what a graph needs what the call uses.
    pub(crate) fn uses_all(&mut self, all: &Retains) -> Result<(), Error> {
        for buffer in &all.buffers {
            self.uses(buffer.hold()?);
        }
        Ok(())
    }

    /// Keeps what the call uses, and its code, until it is done.
    pub(crate) fn keep<T: Any + Send + Sync>(mut self, code: &Arc<T>) {
        self.pending.latest.keep(code);
        self.done();
    }

    /// Keeps what the call uses until it is done. The call is in the queue, whatever becomes of a mark behind it: if there is none, the next
    /// call asks for one, and an error that sticks is told to whoever comes next.
    pub(crate) fn done(mut self) {
        let is_captured = self.pending.capture.is_some();
        let used = &mut self.pending.latest;
        used.calls = used.calls.saturating_add(1);
        self.before = used.buffers.len();
        // what is captured runs when its graph does
        if is_captured || used.calls < CALLS {
            return;
        }
        let Ok(event) = NvEvent::record(&self.queue.stream) else { return };
        self.before = 0;
        let used = core::mem::take(&mut self.pending.latest);
        self.pending.marked.push_back((event, used));
        while self.pending.marked.front().is_some_and(|(event, _)| event.is_reached()) {
            self.pending.marked.pop_front();
        }
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
        Pending::end_of(&self.pending, &self.stream);
    }
}

impl fmt::Debug for NvQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvQueue").field("stream", &self.stream).finish_non_exhaustive()
    }
}
