//! A GPU as a device without CUDA: memory, queues, programs.

use core::time::Duration;
use std::sync::Arc;

use exec_core::{
    Allocator as _, Buffer, Device, DeviceId, DeviceKind, Error as CoreError, Limits, LruAllocator,
    MemoryInfo, Signature, Spec, View,
};
use fatbin::CudaVersion;
use nvinfo::occupancy;

use super::allocator::RawAllocator;
use super::context::Context;
use super::error::Error as RawError;
use super::facts;
use super::gpu::{Gpu, Step, Stopped};
use super::image::RawImage;
use super::program::RawProgram;
use super::queue::RawQueue;
use super::shared::Shared;
use super::system::System;
use crate::error::Error;
use crate::properties::DeviceProperties;
use crate::sides::Sides;

/// How a [`RawDevice`] is to be.
#[derive(Clone, Copy, Debug)]
pub struct RawOptions {
    /// How long anything is waited for: a launch that takes longer is an error, and may run on.
    pub limit: Duration,
    /// How much freed memory is kept for reuse.
    pub keep: Limits,
}

impl Default for RawOptions {
    /// A minute; at most 8 GiB of memory kept.
    fn default() -> Self {
        let keep = Limits { bytes: 8 << 30, number: 4096 };
        Self { limit: Duration::from_secs(60), keep }
    }
}

/// A GPU that is used through the kernel driver alone. Clones are the same device.
#[derive(Clone, Debug)]
pub struct RawDevice<S: System>(Arc<Shared<S>>);

impl<S: System> RawDevice<S> {
    /// Brings up GPU `index`, counted from 0, as far as a queue that answers.
    ///
    /// # Errors
    /// [`Stopped`]: the step and what the driver answered. All that was made is freed.
    pub fn open(system: S, index: usize, options: RawOptions) -> Result<Self, Stopped> {
        let (context, channel) = Context::open(system, index, options.limit)?;
        let properties = properties(context.gpu()).map_err(Stopped::at(Step::Facts))?;
        let allocator = RawAllocator::new(Arc::clone(&context));
        Ok(Self(Arc::new(Shared {
            queue: RawQueue::new(&context, channel),
            allocator: Arc::new(LruAllocator::new(allocator, options.keep)),
            context,
            properties,
        })))
    }

    /// The GPU itself.
    #[must_use]
    pub fn gpu(&self) -> &Gpu<S> {
        self.0.context.gpu()
    }

    /// What it is, and what it can do.
    #[must_use]
    pub fn properties(&self) -> &DeviceProperties {
        &self.0.properties
    }

    /// The device as `fatbin` chooses code for it.
    #[must_use]
    pub fn target(&self) -> fatbin::TargetDevice {
        fatbin::TargetDevice { sm: self.0.properties.sm, driver: self.0.properties.driver }
    }

    /// The queue that calls go to if they name no other.
    #[must_use]
    pub fn queue(&self) -> &RawQueue<S> {
        &self.0.queue
    }

    /// Another queue, on a channel of its own.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new_queue(&self) -> Result<RawQueue<S>, Error> {
        let context = &self.0.context;
        let channel = context.note(context.new_channel())?;
        Ok(RawQueue::new(context, channel))
    }

    /// Bytes of stack that a thread has where the image does not say how much it takes: with recursion, and calls through pointers. Kernels
    /// that call anything have no less: of functions that are compiled into a kernel, an image says 0 whatever they take.
    #[must_use]
    pub fn stack_size(&self) -> u32 {
        self.0.context.stack()
    }

    /// Changes [`stack_size`](Self::stack_size), for launches from now on.
    pub fn set_stack_size(&self, bytes: u32) {
        self.0.context.set_stack(bytes);
    }

    /// Copies between views of one size on this device, by its copy engine, when all that its queues have is done.
    ///
    /// # Errors
    /// [`Error::Core`] with what is wrong with the views; [`Error::Raw`], also if a queue takes too long or was stopped: nothing is copied then.
    pub fn copy(
        &self,
        from: &View<LruAllocator<RawAllocator<S>>>,
        to: &View<LruAllocator<RawAllocator<S>>>,
    ) -> Result<(), Error> {
        let context = &self.0.context;
        context.sticky().check()?;
        let Sides { from: source, to: target, .. } = Sides::of(from, to)?;
        for hold in [&source, &target] {
            if hold.device() != context.id() {
                let (expected, found) = (context.id(), hold.device());
                return Err(CoreError::OtherDevice { expected, found }.into());
            }
        }
        // what queues have before is done first: copies run beside them
        context.note(context.queues().synchronize(context.limit()))?;
        let copied = context.copies().copy(target.address(), source.address(), source.size());
        Ok(context.note_copy(copied)?)
    }

    /// The kernel `name` of an image, to be called with what the image says that it takes.
    ///
    /// # Errors
    /// [`Error::NoKernel`], [`Error::Own`] for kernels that need the driver's loader.
    pub fn kernel(&self, image: &Arc<RawImage<S>>, name: &str) -> Result<RawProgram<S>, Error> {
        RawProgram::new(&self.0, image, name, None)
    }
}

/// The version of CUDA that a branch of the driver came with, newest first.
const CUDA_OF_BRANCH: &[(u32, CudaVersion)] = &[
    (595, CudaVersion::new(13, 2)),
    (590, CudaVersion::new(13, 1)),
    (580, CudaVersion::new(13, 0)),
    (575, CudaVersion::new(12, 9)),
    (0, CudaVersion::new(12, 8)),
];

fn properties<S: System>(gpu: &Gpu<S>) -> Result<DeviceProperties, RawError> {
    let facts = gpu.facts();
    let limits = occupancy::limits(facts.sm).ok_or(RawError::UnknownSm { sm: facts.sm })?;
    let (memory, _) = facts::memory(gpu.client(), gpu.subdevice())?;
    let branch = gpu.client().version().branch;
    let known = CUDA_OF_BRANCH.iter().find(|(from, _)| branch >= *from);
    let bytes = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    Ok(DeviceProperties {
        name: facts.name.clone().unwrap_or_else(|| format!("a GPU of sm_{}", facts.sm)),
        uuid: gpu.uuid(),
        sm: facts.sm,
        driver: known.map_or(CudaVersion::new(12, 8), |(_, version)| *version),
        memory,
        sm_count: facts.sms,
        warp: 32,
        max_grid: [0x7fff_ffff, 0xffff, 0xffff],
        max_block: [1024, 1024, 64],
        max_threads: 1024,
        max_registers: limits.block_registers,
        shared: 48 << 10,
        shared_opt_in: bytes(limits.block_shared),
        shared_per_sm: bytes(limits.shared),
        shared_reserved: bytes(limits.reserved_shared),
        l2_cache: 0,
        pci: gpu.pci(),
        cooperative_launch: false,
        cluster_launch: facts.sm >= 90,
        memory_pools: false,
        managed_memory: false,
    })
}

impl<S: System> Device for RawDevice<S> {
    type Allocator = LruAllocator<RawAllocator<S>>;
    type Image = RawImage<S>;
    type Program = RawProgram<S>;

    fn id(&self) -> DeviceId {
        self.0.allocator.device()
    }

    fn name(&self) -> String {
        self.0.properties.name.clone()
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Gpu
    }

    fn memory(&self) -> Result<MemoryInfo, CoreError> {
        let gpu = self.gpu();
        let asked = facts::memory(gpu.client(), gpu.subdevice());
        let (total, free) = asked.map_err(Error::from)?;
        let kept = self.0.allocator.statistics().held;
        Ok(MemoryInfo { total, available: free.saturating_add(kept) })
    }

    fn allocator(&self) -> &Arc<Self::Allocator> {
        &self.0.allocator
    }

    fn load(&self, image: &[u8]) -> Result<Arc<RawImage<S>>, CoreError> {
        self.0.context.sticky().check()?;
        let load = RawImage::load(&self.0.allocator, self.target(), image);
        load.map(Arc::new).map_err(|error| CoreError::Load(Arc::new(error)))
    }

    fn program(
        &self,
        image: &Arc<RawImage<S>>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<RawProgram<S>, CoreError> {
        self.0.context.sticky().check()?;
        RawProgram::new(&self.0, image, name, signature).map_err(|error| match error {
            Error::Core(error) => error,
            error => CoreError::NoFunction { name: name.into(), cause: Arc::new(error) },
        })
    }

    fn synchronize(&self) -> Result<(), CoreError> {
        self.0.context.sticky().check()?;
        Ok(self.0.queue.synchronize().map_err(Error::from)?)
    }

    fn fault(&self) -> Option<CoreError> {
        self.0.context.sticky().get()
    }

    /// Channels are made anew; memory and code stay, with what the kernel left in them. Queues other than the device's own are of no
    /// use any more.
    fn reset(&self) -> Option<CoreError> {
        let context = &self.0.context;
        let error = context.sticky().take()?;
        match context.renew() {
            Ok(channel) => {
                self.0.queue.renew(channel);
                context.queues().forget_stopped();
            }
            Err(failed) => context.sticky().set(CoreError::Device(Arc::new(failed))),
        }
        Some(error)
    }

    fn buffer(&self, size: u64, spec: Spec) -> Result<Buffer<Self::Allocator>, CoreError> {
        self.0.context.sticky().check()?;
        Buffer::new(&self.0.allocator, size, spec)
    }
}
