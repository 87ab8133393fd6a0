//! Streams and events of the driver, given back when they are dropped.

use core::ptr;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUevent, CUstream};

use crate::context::Context;
use crate::error::Error;

/// A stream: what is put into it runs in its order. After a reset of the context it is another one.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    made: Mutex<Made>,
}

/// A stream's handle.
#[derive(Clone, Copy, Debug)]
struct Made {
    handle: CUstream,
    generation: u64,
}

/// A point in a stream, with the time it was reached.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    handle: CUevent,
    generation: u64,
}

// SAFETY: handles are good on every thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: u32 = 600;

impl Stream {
    /// A stream that keeps the order with the driver's own, which copies run in.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let made = Self::make(context)?;
        Ok(Self { context: Arc::clone(context), made: Mutex::new(made) })
    }

    fn make(context: &Context) -> Result<Made, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: the place is ours.
        context.run(|driver| unsafe { driver.cuStreamCreate(&raw mut handle, 0) })?;
        Ok(Made { handle, generation: context.generation() })
    }

    /// The stream, a new one if the context was reset.
    pub(crate) fn handle(&self) -> Result<CUstream, Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.generation != self.context.generation() {
            *made = Self::make(&self.context)?;
        }
        Ok(made.handle)
    }

    /// The stream as it was made last.
    fn made(&self) -> Made {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until all is done that was put into it. Nothing is, once the context was reset.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let Made { handle, generation } = self.made();
        // SAFETY: the stream is there.
        let wait = |driver: &crate::Driver| unsafe { driver.cuStreamSynchronize(handle) };
        self.context.release(generation, wait)
    }

    /// Lets what comes after wait for what `event` marks, in whatever stream that is.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<(), Error> {
        let handle = self.handle()?;
        // SAFETY: both are there.
        self.context.run(|driver| unsafe { driver.cuStreamWaitEvent(handle, event.handle, 0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Made { handle, generation } = self.made();
        // SAFETY: ours, and nobody has it any more.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuStreamDestroy_v2(handle) };
        let _ = self.context.release(generation, destroy);
    }
}

impl Event {
    /// A mark behind all that is in `stream` now.
    pub(crate) fn record(stream: &Stream) -> Result<Self, Error> {
        let context = &stream.context;
        let (mut handle, stream) = (ptr::null_mut(), stream.handle()?);
        // SAFETY: the place is ours.
        context.run(|driver| unsafe { driver.cuEventCreate(&raw mut handle, 0) })?;
        let event = Self { context: Arc::clone(context), handle, generation: context.generation() };
        // SAFETY: both are there.
        context.run(|driver| unsafe { driver.cuEventRecord(handle, stream) })?;
        Ok(event)
    }

    /// Whether it is reached. After an error it is: nothing comes any more.
    pub(crate) fn is_reached(&self) -> bool {
        // SAFETY: the event is there.
        let outcome = self.context.run(|driver| unsafe { driver.cuEventQuery(self.handle) });
        !matches!(outcome, Err(Error::Driver { code: NOT_READY, .. }))
    }

    /// Waits until it is reached.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the event is there.
        self.context.run(|driver| unsafe { driver.cuEventSynchronize(self.handle) })
    }

    /// The time from `start` to this; both are reached.
    pub(crate) fn since(&self, start: &Self) -> Result<Duration, Error> {
        let mut milliseconds = 0.0;
        // SAFETY: the place is ours, the events are there.
        self.context.run(|driver| unsafe {
            driver.cuEventElapsedTime(&raw mut milliseconds, start.handle, self.handle)
        })?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1000.0).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody has it any more.
        let destroy = |driver: &crate::Driver| unsafe { driver.cuEventDestroy_v2(self.handle) };
        let _ = self.context.release(self.generation, destroy);
    }
}
