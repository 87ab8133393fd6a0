//! What queues use until it is done, and what graphs keep of it.

use core::any::Any;
use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exec_core::{Hold, LruAllocator, Retained};

use crate::error::Error;
use crate::memory::NvAllocator;
use crate::stream::{NvEvent, Stream};

/// What calls use, kept until they are done.
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) buffers: Vec<Hold<LruAllocator<NvAllocator>>>,
    /// Functions, graphs.
    pub(crate) code: Vec<Arc<dyn Any + Send + Sync>>,
    /// Since the last mark.
    pub(crate) calls: usize,
}

impl Used {
    /// Keeps code, mostly the same as before.
    pub(crate) fn keep<T: Any + Send + Sync>(&mut self, code: &Arc<T>) {
        let is = |last: &Arc<dyn Any + Send + Sync>| {
            core::ptr::addr_eq(&raw const **last, Arc::as_ptr(code))
        };
        if !self.code.last().is_some_and(is) {
            self.code.push(Arc::clone(code) as _);
        }
    }

    /// Keeps what another one does, too.
    fn keep_all(&mut self, other: Self) {
        self.buffers.extend(other.buffers);
        self.code.extend(other.code);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

/// What calls of a graph use whenever it runs. Between its launches the host may read and write the memory.
pub(crate) struct Retains {
    pub(crate) buffers: Vec<Retained<LruAllocator<NvAllocator>>>,
    code: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Used {
    /// The same for calls that run later.
    pub(crate) fn retain(self) -> Retains {
        let buffers = self.buffers.iter().map(Hold::retain).collect();
        Retains { buffers, code: self.code }
    }
}

impl fmt::Debug for Retains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffers, code) = (self.buffers.len(), self.code.len());
        f.debug_struct("Retains").field("buffers", &buffers).field("code", &code).finish()
    }
}

impl fmt::Debug for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffers, code) = (self.buffers.len(), self.code.len());
        f.debug_struct("Used").field("buffers", &buffers).field("code", &code).finish()
    }
}

/// What is not known to be done yet.
#[derive(Default)]
pub(crate) struct Pending {
    /// Marks, and what the calls before each use.
    pub(crate) marked: VecDeque<(NvEvent, Used)>,
    pub(crate) latest: Used,
    /// While calls are captured: the capture, and what was in the queue before. `latest` is then what the graph uses.
    pub(crate) capture: Option<(Arc<Capture>, Used)>,
}

/// A capture, in which several queues may be: one that begins it, and others that wait for it.
pub(crate) struct Capture {
    /// Those others; `None` once it has ended. Who locks this and what is pending in a queue, locks this first.
    joined: Mutex<Option<Vec<Joined>>>,
}

/// A queue that has joined.
type Joined = (Arc<Stream>, Arc<Mutex<Pending>>);

impl Default for Capture {
    fn default() -> Self {
        Self { joined: Mutex::new(Some(Vec::new())) }
    }
}

impl Capture {
    /// Lets calls of a queue go into the same graph, by `wait`, which has it wait for a mark there. Nobody puts one into the queue meanwhile,
    /// that it would not be known of where it goes.
    ///
    /// # Errors
    /// [`Error::Capturing`] if they go into another one, or the capture has ended; what `wait` says.
    pub(crate) fn join(
        self: &Arc<Self>,
        stream: &Arc<Stream>,
        pending: &Arc<Mutex<Pending>>,
        wait: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut joined = lock(&self.joined);
        let Some(joined) = &mut *joined else { return Err(Error::Capturing) };
        let mut own = lock(pending);
        match &own.capture {
            Some((capture, _)) if Arc::ptr_eq(capture, self) => return wait(),
            Some(_) => return Err(Error::Capturing),
            None => wait()?,
        }
        own.begin(self);
        joined.push((Arc::clone(stream), Arc::clone(pending)));
        Ok(())
    }

    /// Ends it, by `end`, for all its queues, of which `first` began it: gives what they have used, and what `end` gives. Nobody puts a call
    /// into one of them meanwhile.
    pub(crate) fn end<T>(&self, first: &Mutex<Pending>, end: impl FnOnce() -> T) -> (T, Used) {
        let mut joined = lock(&self.joined);
        let queues = joined.take().unwrap_or_default();
        let mut first = lock(first);
        let mut others: Vec<_> = queues.iter().map(|(_, pending)| lock(pending)).collect();
        let ended = end();
        let mut used = first.end();
        for other in &mut others {
            used.keep_all(other.end());
        }
        drop((others, first, joined));
        for (stream, pending) in queues {
            // the queue is gone, and what it had before may run
            if Arc::strong_count(&pending) == 1 {
                Pending::end_of(&pending, &stream);
            }
        }
        (ended, used)
    }
}

impl Pending {
    /// Waits until all is done that is in `stream`, and lets go what it uses. What comes meanwhile is not waited for, and kept.
    ///
    /// # Errors
    /// [`Error::Capturing`]; what the driver says: unless nothing runs any more after it, all is kept.
    pub(crate) fn wait(pending: &Mutex<Self>, stream: &Stream) -> Result<(), Error> {
        let mut own = lock(pending);
        if own.capture.is_some() {
            return Err(Error::Capturing);
        }
        let before = core::mem::take(&mut *own);
        drop(own);
        let outcome = stream.synchronize();
        if outcome.is_err() && stream.context().sticky().check().is_ok() {
            lock(pending).put_back(before);
        }
        outcome
    }

    /// The same where nobody waits again: what may still be used is never let go. In a capture, who ends that waits.
    pub(crate) fn end_of(pending: &Mutex<Self>, stream: &Stream) {
        match Self::wait(pending, stream) {
            Ok(()) | Err(Error::Capturing) => {}
            Err(_) => core::mem::forget(core::mem::take(&mut *lock(pending))),
        }
    }

    /// Puts what is not known to be done before what came since it was taken.
    fn put_back(&mut self, before: Self) {
        let since = core::mem::replace(&mut self.marked, before.marked);
        self.marked.extend(since);
        match &mut self.capture {
            Some((_, latest)) => latest.keep_all(before.latest),
            None => self.latest.keep_all(before.latest),
        }
    }

    /// Calls are captured from now on.
    pub(crate) fn begin(&mut self, capture: &Arc<Capture>) {
        let before = core::mem::take(&mut self.latest);
        self.capture = Some((Arc::clone(capture), before));
    }

    /// They are not any more: gives what they use.
    pub(crate) fn end(&mut self) -> Used {
        let before = self.capture.take().map(|(_, before)| before).unwrap_or_default();
        core::mem::replace(&mut self.latest, before)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
