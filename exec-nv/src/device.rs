//! A GPU as a device: memory, queues, programs.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use exec_core::{
    Allocator as _, Buffer, Device, DeviceId, DeviceKind, Error as CoreError, Limits, LruAllocator,
    MemoryInfo, Signature, Spec, View,
};

use crate::context::Context;
use crate::driver::Driver;
use crate::error::Error;
use crate::limits::NvLimit;
use crate::loaded::NvImage;
use crate::loader::CubinLoader;
use crate::memory::{MemoryKind, NvAllocator};
use crate::program::NvProgram;
use crate::properties::DeviceProperties;
use crate::queue::NvQueue;
use crate::shared::Shared;
use crate::sides::Sides;
use crate::stream::{QueueOptions, Stream};

/// How an [`NvDevice`] is to be.
#[derive(Clone, Copy, Debug)]
pub struct NvOptions {
    /// The kind of memory that its allocator gives out.
    pub memory: MemoryKind,
    /// How much freed memory is kept for reuse.
    pub keep: Limits,
    /// Who puts code into the device's memory.
    pub loader: CubinLoader,
}

impl Default for NvOptions {
    /// Plain device memory, at most 8 GiB of it kept; code loaded by the driver.
    fn default() -> Self {
        let keep = Limits { bytes: 8 << 30, number: 4096 };
        Self { memory: MemoryKind::Device, keep, loader: CubinLoader::Driver }
    }
}

/// A GPU. Clones are the same device.
#[derive(Clone, Debug)]
pub struct NvDevice(Arc<Shared>);

impl NvDevice {
    /// The device of this number, as the driver counts them from 0.
    ///
    /// # Errors
    /// [`Error::NoDevice`], [`Error::NoSuchDevice`]; what the driver says.
    pub fn open(driver: &Arc<Driver>, ordinal: u32, options: NvOptions) -> Result<Self, Error> {
        let context = Context::retain(driver, ordinal)?;
        let properties = DeviceProperties::of(&context)?;
        let stream = Arc::new(Stream::new(&context, QueueOptions::default())?);
        let allocator = NvAllocator::new(Arc::clone(&context), options.memory);
        Ok(Self(Arc::new(Shared {
            queue: NvQueue::new(stream),
            allocator: Arc::new(LruAllocator::new(allocator, options.keep)),
            others: Mutex::default(),
            context,
            properties,
            loader: options.loader,
            keep: options.keep,
        })))
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// What it is, and what it can do.
    #[must_use]
    pub fn properties(&self) -> &DeviceProperties {
        &self.0.properties
    }

    /// The device as `fatbin` chooses code for it.
    #[must_use]
    pub fn target(&self) -> fatbin::TargetDevice {
        self.0.target()
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Arc<Driver> {
        self.0.context.driver()
    }

    /// The queue that calls go to if they name no other.
    #[must_use]
    pub fn queue(&self) -> &NvQueue {
        &self.0.queue
    }

    /// Another queue.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new_queue(&self) -> Result<NvQueue, Error> {
        self.new_queue_with(QueueOptions::default())
    }

    /// Another queue, with options.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new_queue_with(&self, options: QueueOptions) -> Result<NvQueue, Error> {
        Ok(NvQueue::new(Arc::new(Stream::new(&self.0.context, options)?)))
    }

    /// The priorities that queues can have: of those that go last, and of those that go first. Lower numbers go first.
    ///
    /// # Errors
    /// What the driver says.
    pub fn priorities(&self) -> Result<[i32; 2], Error> {
        let (mut last, mut first) = (0, 0);
        // SAFETY: the places are ours.
        self.0.context.run(|driver| unsafe {
            driver.cuCtxGetStreamPriorityRange(&raw mut last, &raw mut first)
        })?;
        Ok([last, first])
    }

    /// An allocator for memory of another kind, beside the device's own.
    #[must_use]
    pub fn allocator_of(&self, kind: MemoryKind) -> Arc<LruAllocator<NvAllocator>> {
        let allocator = NvAllocator::new(Arc::clone(&self.0.context), kind);
        let allocator = Arc::new(LruAllocator::new(allocator, self.0.keep));
        let mut others = self.0.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|other| other.strong_count() > 0);
        others.push(Arc::downgrade(&allocator));
        allocator
    }

    /// How much there is.
    ///
    /// # Errors
    /// What the driver says.
    pub fn limit(&self, limit: NvLimit) -> Result<u64, Error> {
        let mut size = 0;
        // SAFETY: the place is ours.
        let ask = |driver: &Driver| unsafe { driver.cuCtxGetLimit(&raw mut size, limit as u32) };
        self.0.context.run(ask)?;
        Ok(size as u64)
    }

    /// Changes a [`limit`](Self::limit), for launches from now on, also of others who use the device in this process. That of `printf` and
    /// that of `malloc` can be changed as long as no kernel was launched that has them.
    ///
    /// # Errors
    /// What the driver says, of more than there is.
    pub fn set_limit(&self, limit: NvLimit, value: u64) -> Result<(), Error> {
        let value = usize::try_from(value).unwrap_or(usize::MAX);
        // SAFETY: a limit of the context, which is current.
        let set = |driver: &Driver| unsafe { driver.cuCtxSetLimit(limit as u32, value) };
        self.0.context.run(set)
    }

    /// Bytes of stack that a thread has where the image does not say how much it takes: with recursion, and calls through pointers.
    ///
    /// # Errors
    /// What the driver says.
    pub fn stack_size(&self) -> Result<u64, Error> {
        self.limit(NvLimit::Stack)
    }

    /// Changes [`stack_size`](Self::stack_size), for launches from now on, also of others who use the device in this process.
    ///
    /// # Errors
    /// What the driver says, of more than there is.
    pub fn set_stack_size(&self, bytes: u64) -> Result<(), Error> {
        self.set_limit(NvLimit::Stack, bytes)
    }

    /// Copies between views of one size, on this device or from one GPU to another, without the host. Waits for what runs on both before,
    /// and until all is copied.
    ///
    /// # Errors
    /// [`Error::Core`] with what is wrong with the views; what the driver says.
    pub fn copy(
        from: &View<LruAllocator<NvAllocator>>,
        to: &View<LruAllocator<NvAllocator>>,
    ) -> Result<(), Error> {
        let Sides { from, to, size } = Sides::of(from, to)?;
        let gone = || Error::from(CoreError::Freed);
        let source = Context::of(from.device()).ok_or_else(gone)?;
        let target = Context::of(to.device()).ok_or_else(gone)?;
        let is_one = source.id() == target.id();
        if !is_one {
            source.wait()?;
        }
        target.wait()?;
        // SAFETY: both are held, and so large; nothing runs that was there before.
        target.transfer(|driver, stream| unsafe {
            let (to, from) = (to.address(), from.address());
            if is_one {
                return driver.cuMemcpyAsync(to, from, size, stream);
            }
            let (there, here) = (target.handle(), source.handle());
            driver.cuMemcpyPeerAsync(to, there, from, here, size, stream)
        })
    }

    /// Loads the code of `bytes` that is for this device, by the loader of choice. Of files with code in many places, a
    /// kernel's code is loaded when a program is made of it.
    ///
    /// # Errors
    /// As [`KernelImage::find`](crate::KernelImage::find); what the driver says.
    pub fn load_with(&self, bytes: &[u8], loader: CubinLoader) -> Result<Arc<NvImage>, Error> {
        NvImage::load(&self.0, bytes, loader).map(Arc::new)
    }

    /// The kernel `name` of an image, to be called with what the image says that it takes.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; what the driver says.
    pub fn kernel(&self, image: &Arc<NvImage>, name: &str) -> Result<NvProgram, Error> {
        NvProgram::new(&self.0, image, name, None)
    }
}

impl Device for NvDevice {
    type Allocator = LruAllocator<NvAllocator>;
    type Image = NvImage;
    type Program = NvProgram;

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
        let (mut free, mut total) = (0, 0);
        // SAFETY: the places are ours.
        let ask =
            |driver: &Driver| unsafe { driver.cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        self.0.context.run(ask)?;
        let kept = self.0.allocator.statistics().held;
        Ok(MemoryInfo { total: total as u64, available: (free as u64).saturating_add(kept) })
    }

    fn allocator(&self) -> &Arc<Self::Allocator> {
        &self.0.allocator
    }

    fn load(&self, image: &[u8]) -> Result<Arc<NvImage>, CoreError> {
        self.0.context.sticky().check()?;
        let load = self.load_with(image, self.0.loader);
        load.map_err(|error| CoreError::Load(Arc::new(error)))
    }

    fn program(
        &self,
        image: &Arc<NvImage>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<NvProgram, CoreError> {
        self.0.context.sticky().check()?;
        let program = NvProgram::new(&self.0, image, name, signature);
        program.map_err(|error| match error {
            Error::Core(error) => error,
            error => CoreError::NoFunction { name: name.into(), cause: Arc::new(error) },
        })
    }

    fn synchronize(&self) -> Result<(), CoreError> {
        self.0.context.sticky().check()?;
        Ok(self.0.queue.synchronize()?)
    }

    fn fault(&self) -> Option<CoreError> {
        self.0.context.sticky().get()
    }

    /// All memory and code on the device is gone after an error of a kernel, for all who have the device open: buffers of before can be
    /// dropped, but not used. Memory that the host sees, too, has to be dropped before: as long as there is any, the error stays, and this
    /// gives `None`.
    fn reset(&self) -> Option<CoreError> {
        let _ = self.0.queue.synchronize();
        // what is kept for reuse would be in the way; what the driver says of it does not matter any more
        let _ = self.0.allocator.empty();
        let others = self.0.others.lock().unwrap_or_else(PoisonError::into_inner);
        for other in others.iter().filter_map(Weak::upgrade) {
            let _ = other.empty();
        }
        drop(others);
        self.0.context.reset()
    }

    fn buffer(&self, size: u64, spec: Spec) -> Result<Buffer<Self::Allocator>, CoreError> {
        self.0.context.sticky().check()?;
        Buffer::new(&self.0.allocator, size, spec)
    }
}
