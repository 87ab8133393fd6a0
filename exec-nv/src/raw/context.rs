//! What a device, its memory, its queues and its programs share: the GPU, a channel for copies, the error that sticks.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exec_core::{DeviceId, Sticky};

use super::channel::Channel;
use super::copies::Copies;
use super::error::Error;
use super::gpu::{Gpu, Step, Stopped};
use super::group::{GRAPHICS, Group};
use super::queues::Queues;
use super::system::System;

/// The channels that a device begins with.
pub(super) struct Channels<S: System> {
    pub(super) compute: Channel<S>,
    pub(super) copies: Channel<S>,
}

/// What is shared.
#[derive(Debug)]
pub(super) struct Context<S: System> {
    copies: Mutex<Copies<S>>,
    gpu: Arc<Gpu<S>>,
    id: DeviceId,
    sticky: Sticky,
    queues: Queues,
    /// How long anything is waited for.
    limit: Duration,
    /// Bytes of stack where the image does not say how much a kernel takes.
    stack: AtomicU32,
}

/// What CUDA gives kernels whose stack has no bound, if nobody asks for more.
const STACK: u32 = 1024;

impl<S: System> Context<S> {
    /// Brings a GPU up, as far as channels that have their engines set up. The channel for launches is the first queue's.
    pub(super) fn open(
        system: S,
        index: usize,
        limit: Duration,
    ) -> Result<(Arc<Self>, Channel<S>), Stopped> {
        let gpu = Arc::new(Gpu::open(system, index)?);
        let Channels { compute, copies } = channels(&gpu, limit)?;
        let copies = Copies::new(&gpu, copies, limit).map_err(Stopped::at(Step::SetUp))?;
        let context = Self {
            copies: Mutex::new(copies),
            gpu,
            id: DeviceId::unique(),
            sticky: Sticky::new(),
            queues: Queues::new(),
            limit,
            stack: AtomicU32::new(STACK),
        };
        Ok((Arc::new(context), compute))
    }

    /// Channels anew, after one was stopped: that for copies is taken, that for launches given.
    pub(super) fn renew(&self) -> Result<Channel<S>, Error> {
        let channels = channels(&self.gpu, self.limit).map_err(|stopped| stopped.error)?;
        *self.copies() = Copies::new(&self.gpu, channels.copies, self.limit)?;
        Ok(channels.compute)
    }

    /// A channel for one more queue, in a group of its own.
    pub(super) fn new_channel(&self) -> Result<Channel<S>, Error> {
        let group = Arc::new(Group::new(&self.gpu, GRAPHICS)?);
        let channel = Channel::new(&group, self.gpu.classes().compute)?;
        group.schedule()?;
        set_up_compute(&channel, self.limit)?;
        Ok(channel)
    }

    pub(super) const fn gpu(&self) -> &Arc<Gpu<S>> {
        &self.gpu
    }

    pub(super) const fn id(&self) -> DeviceId {
        self.id
    }

    pub(super) const fn sticky(&self) -> &Sticky {
        &self.sticky
    }

    pub(super) const fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(super) const fn limit(&self) -> Duration {
        self.limit
    }

    pub(super) fn stack(&self) -> u32 {
        self.stack.load(Ordering::Relaxed)
    }

    pub(super) fn set_stack(&self, bytes: u32) {
        self.stack.store(bytes, Ordering::Relaxed);
    }

    /// The channel for copies: one at a time.
    pub(super) fn copies(&self) -> MutexGuard<'_, Copies<S>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an error that nothing works after: a channel that the GPU stopped.
    pub(super) fn note<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(error @ Error::Stopped { .. }) = &outcome {
            self.sticky.set(exec_core::Error::Device(Arc::new(error.clone())));
        }
        outcome
    }

    /// The same of a copy, of which an end that did not come is kept, too: the engine may still write where the memory is somebody
    /// else's by then. A reset ends it.
    pub(super) fn note_copy<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(error @ Error::TimeOut { .. }) = &outcome {
            self.sticky.set(exec_core::Error::Device(Arc::new(error.clone())));
        }
        self.note(outcome)
    }
}

/// A channel for launches and one for copies, set up.
fn channels<S: System>(gpu: &Arc<Gpu<S>>, limit: Duration) -> Result<Channels<S>, Stopped> {
    let (at_compute, at_copy) = (Stopped::at(Step::Compute), Stopped::at(Step::Copy));
    let group = Arc::new(Group::new(gpu, GRAPHICS).map_err(&at_compute)?);
    let compute = Channel::new(&group, gpu.classes().compute).map_err(&at_compute)?;
    let copies = if gpu.classes().has_copy_group() {
        group.schedule().map_err(&at_compute)?;
        let of_copies = Arc::new(Group::of_copies(gpu).map_err(&at_copy)?);
        let copies = Channel::new(&of_copies, gpu.classes().copy).map_err(&at_copy)?;
        of_copies.schedule().map_err(&at_copy)?;
        copies
    } else {
        let copies = Channel::new(&group, gpu.classes().copy).map_err(&at_copy)?;
        group.schedule().map_err(&at_copy)?;
        copies
    };
    set_up_compute(&compute, limit).map_err(Stopped::at(Step::SetUp))?;
    Ok(Channels { compute, copies })
}

fn set_up_compute<S: System>(channel: &Channel<S>, limit: Duration) -> Result<(), Error> {
    let mut submission = channel.begin(limit);
    submission.push.set_up_compute(channel.class())?;
    let point = submission.submit()?;
    channel.wait(point, limit)
}
