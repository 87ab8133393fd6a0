//! Streams and events of the driver, given back when they are dropped.

use core::any::Any;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::{CUevent, CUgraph, CUstream, CUstream_st};

use crate::context::{Context, is_fatal};
use crate::error::Error;

/// How an [`NvQueue`](crate::NvQueue) is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// Whether it runs beside the driver's own stream, where others of the process may put calls. Copies to and from this process go through
    /// neither; those of buffers that calls use are refused.
    pub beside_default: bool,
    /// Lower numbers go first where calls of several queues wait for a place: see
    /// [`NvDevice::priorities`](crate::NvDevice::priorities).
    pub priority: i32,
}

impl QueueOptions {
    /// `CU_STREAM_NON_BLOCKING`.
    const fn flags(self) -> u32 {
        if self.beside_default { 1 } else { 0 }
    }
}

/// A stream: what is put into it runs in its order. After a reset of the context it is another one.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    options: QueueOptions,
    handle: AtomicPtr<CUstream_st>,
    /// That of the handle, written after it.
    generation: AtomicU64,
    /// Whoever makes it anew.
    maker: Mutex<()>,
}

/// A point in a queue, with the time it was reached.
#[derive(Debug)]
pub struct NvEvent {
    context: Arc<Context>,
    handle: CUevent,
    generation: u64,
    /// The capture that it was recorded in, as long as that goes on.
    capture: Option<Weak<dyn Any + Send + Sync>>,
}

// SAFETY: handles are good on every thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for NvEvent {}
// SAFETY: as above.
unsafe impl Sync for NvEvent {}

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const THREAD_LOCAL: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`.
const SHAREABLE: u32 = 2 | 4;

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, options: QueueOptions) -> Result<Self, Error> {
        Ok(Self {
            context: Arc::clone(context),
            options,
            handle: AtomicPtr::new(Self::make(context, options)?),
            generation: AtomicU64::new(context.generation()),
            maker: Mutex::default(),
        })
    }

    fn make(context: &Context, options: QueueOptions) -> Result<CUstream, Error> {
        let mut handle = ptr::null_mut();
        let (flags, priority) = (options.flags(), options.priority);
        // SAFETY: the place is ours.
        context.run(|driver| unsafe {
            driver.cuStreamCreateWithPriority(&raw mut handle, flags, priority)
        })?;
        Ok(handle)
    }

    /// The stream, a new one if the context was reset.
    pub(crate) fn handle(&self) -> Result<CUstream, Error> {
        if self.generation.load(Ordering::Acquire) != self.context.generation() {
            let _maker = self.maker.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.context.generation();
            if self.generation.load(Ordering::Relaxed) != now {
                let made = Self::make(&self.context, self.options)?;
                self.handle.store(made, Ordering::Relaxed);
                self.generation.store(now, Ordering::Release);
            }
        }
        Ok(self.handle.load(Ordering::Relaxed))
    }

    /// The stream as it was made last, and when that was.
    fn made(&self) -> (CUstream, u64) {
        let generation = self.generation.load(Ordering::Acquire);
        (self.handle.load(Ordering::Relaxed), generation)
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until all is done that was put into it. Nothing is, once the context was reset.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let (handle, generation) = self.made();
        // SAFETY: the stream is there.
        let wait = |driver: &crate::Driver| unsafe { driver.cuStreamSynchronize(handle) };
        self.context.release(generation, wait)
    }

    /// What is put into it from now on by this thread goes into a graph. Other threads work on as they like, but for what needs the driver's own
    /// stream, which nothing here does.
    pub(crate) fn begin_capture(&self) -> Result<(), Error> {
        let handle = self.handle()?;
        // SAFETY: the stream is there.
        self.context.run(|driver| unsafe { driver.cuStreamBeginCapture_v2(handle, THREAD_LOCAL) })
    }

    /// The graph, ours to destroy.
    pub(crate) fn end_capture(&self) -> Result<CUgraph, Error> {
        let ((handle, generation), mut graph) = (self.made(), ptr::null_mut());
        // one that was made after a reset captures nothing
        self.context.check(generation)?;
        // SAFETY: the place is ours, the stream is there.
        self.context.run(|driver| unsafe { driver.cuStreamEndCapture(handle, &raw mut graph) })?;
        Ok(graph)
    }

    /// Lets what comes after wait for what `event` marks, in whatever stream that is.
    pub(crate) fn wait_for(&self, event: &NvEvent) -> Result<(), Error> {
        event.check()?;
        let handle = self.handle()?;
        // SAFETY: both are there.
        self.context.run(|driver| unsafe { driver.cuStreamWaitEvent(handle, event.handle, 0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let (handle, generation) = self.made();
        // SAFETY: ours, and nobody has it any more.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuStreamDestroy_v2(handle) };
        let _ = self.context.release(generation, destroy);
    }
}

impl NvEvent {
    /// A mark behind all that is in `stream` now.
    pub(crate) fn record(stream: &Stream) -> Result<Self, Error> {
        Self::record_with(stream, 0)
    }

    /// The same, for other processes too.
    pub(crate) fn record_shareable(stream: &Stream) -> Result<Self, Error> {
        Self::record_with(stream, SHAREABLE)
    }

    /// An event that is there, ours from now on.
    pub(crate) fn adopt(context: &Arc<Context>, handle: CUevent) -> Self {
        let generation = context.generation();
        Self { context: Arc::clone(context), handle, generation, capture: None }
    }

    /// The same as a mark of a capture.
    pub(crate) fn within<T: Any + Send + Sync>(mut self, capture: &Arc<T>) -> Self {
        let capture: Weak<T> = Arc::downgrade(capture);
        self.capture = Some(capture);
        self
    }

    /// The capture that it is a mark of.
    ///
    /// # Errors
    /// [`Error::Capturing`] once that has ended.
    pub(crate) fn capture<T: Any + Send + Sync>(&self) -> Result<Option<Arc<T>>, Error> {
        let Some(capture) = &self.capture else { return Ok(None) };
        let capture = capture.upgrade().and_then(|capture| capture.downcast().ok());
        capture.map(Some).ok_or(Error::Capturing)
    }

    /// Moves it behind all that is in `stream` now. One of a capture stays what it is: others know it for that.
    pub(crate) fn record_again(&self, stream: &Stream) -> Result<(), Error> {
        self.check()?;
        if self.capture.is_some() {
            return Err(Error::Capturing);
        }
        stream.context.expect(self.context.id())?;
        let handle = stream.handle()?;
        // SAFETY: both are there.
        stream.context.run(|driver| unsafe { driver.cuEventRecord(self.handle, handle) })
    }

    pub(crate) const fn handle(&self) -> CUevent {
        self.handle
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn record_with(stream: &Stream, flags: u32) -> Result<Self, Error> {
        let context = &stream.context;
        let (mut handle, stream) = (ptr::null_mut(), stream.handle()?);
        // SAFETY: the place is ours.
        context.run(|driver| unsafe { driver.cuEventCreate(&raw mut handle, flags) })?;
        let event = Self::adopt(context, handle);
        // SAFETY: both are there.
        context.run(|driver| unsafe { driver.cuEventRecord(handle, stream) })?;
        Ok(event)
    }

    /// Whether it is reached. After an error of the device or a reset it is: nothing comes any more. If the driver does not say, it is not.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        if self.check().is_err() {
            return true;
        }
        // SAFETY: the event is there.
        match self.context.run(|driver| unsafe { driver.cuEventQuery(self.handle) }) {
            Ok(()) => true,
            Err(Error::Driver { code, .. }) => is_fatal(code),
            // an error sticks
            Err(_) => true,
        }
    }

    /// [`Error::Stale`] once the device was reset.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.context.check(self.generation)
    }

    /// Waits until it is reached.
    ///
    /// # Errors
    /// [`Error::Stale`] after a reset; what the driver says, of a kernel that failed before too.
    pub fn wait(&self) -> Result<(), Error> {
        self.check()?;
        // SAFETY: the event is there.
        self.context.run(|driver| unsafe { driver.cuEventSynchronize(self.handle) })
    }

    /// The time from `start` to this; both are reached.
    ///
    /// # Errors
    /// [`Error::Stale`] after a reset; [`Error::Core`] if the two are of two devices; what the driver says, if one is not reached.
    pub fn since(&self, start: &Self) -> Result<Duration, Error> {
        self.check()?;
        start.check()?;
        self.context.expect(start.context.id())?;
        let mut milliseconds = 0.0;
        // SAFETY: the place is ours, the events are there.
        self.context.run(|driver| unsafe {
            driver.cuEventElapsedTime(&raw mut milliseconds, start.handle, self.handle)
        })?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1000.0).unwrap_or_default())
    }
}

impl Drop for NvEvent {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody has it any more.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuEventDestroy_v2(self.handle) };
        let _ = self.context.release(self.generation, destroy);
    }
}
