//! Kernels of an image, to be launched through a queue.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUfunction_attribute as FunctionAttribute;
use exec_core::{
    Allocator as _, Error as CoreError, Hold, Launch, LruAllocator, Program, Scalar, Signature,
    View,
};
use nvinfo::Resources;

use crate::arguments::{Block, NvArgument as Argument};
use crate::config::{attributes, config};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::launch::{NvLaunch, is_beyond_portable};
use crate::loaded::NvImage;
use crate::memory::NvAllocator;
use crate::module::{Function, FunctionAttributes};
use crate::queue::NvQueue;
use crate::shared::Shared;
use crate::stream::NvEvent;

/// `CUDA_ERROR_OUT_OF_MEMORY`, `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`, `CUDA_ERROR_INVALID_CLUSTER_SIZE`.
const OUT_OF_MEMORY: u32 = 2;
const COOPERATIVE_LAUNCH_TOO_LARGE: u32 = 720;
const INVALID_CLUSTER_SIZE: u32 = 912;
/// What says of a launch that it is beyond a limit of kernel or device, which the driver does not name: these, `CUDA_ERROR_INVALID_VALUE` and
/// `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
const REFUSED: [u32; 5] =
    [1, OUT_OF_MEMORY, 701, COOPERATIVE_LAUNCH_TOO_LARGE, INVALID_CLUSTER_SIZE];

/// A kernel that an [`NvDevice`](crate::NvDevice) runs.
#[derive(Debug)]
pub struct NvProgram {
    device: Arc<Shared>,
    kernel: Kernel,
    signature: Option<Signature>,
    function: Arc<Function>,
    /// The parameters of the latest launch: memory to be used again.
    block: Mutex<Block>,
    /// Dynamic shared memory that needs no permission, or has it.
    allowed: AtomicU32,
    /// Keeps the code.
    _image: Arc<NvImage>,
}

/// Shared memory of a block that needs no permission.
const FREE_SHARED: u32 = 48 << 10;

impl NvProgram {
    pub(crate) fn new(
        device: &Arc<Shared>,
        image: &Arc<NvImage>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<Self, Error> {
        device.context.expect(image.device())?;
        let (function, kernel) = image.function(name)?;
        // static and dynamic bytes are counted together
        let declared = match &kernel.resources {
            Some(resources) => u32::try_from(resources.shared).unwrap_or(u32::MAX),
            None => function.shared()?,
        };
        Ok(Self {
            device: Arc::clone(device),
            kernel,
            signature,
            function: Arc::new(function),
            block: Mutex::default(),
            allowed: AtomicU32::new(FREE_SHARED.saturating_sub(declared)),
            _image: Arc::clone(image),
        })
    }

    /// What its image says of it.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What the driver says of it.
    ///
    /// # Errors
    /// What the driver says.
    pub fn attributes(&self) -> Result<FunctionAttributes, Error> {
        self.function.attributes()
    }

    /// What driver and image say differently: what, the driver's number, the image's. Empty if they agree.
    ///
    /// # Errors
    /// What the driver says.
    pub fn differences(&self) -> Result<Vec<(&'static str, u64, u64)>, Error> {
        let Some(image) = &self.kernel.resources else { return Ok(Vec::new()) };
        let driver = self.attributes()?;
        let stack = image.stack.and_then(nvinfo::Stack::bytes);
        let rows = [
            ("registers", driver.registers.into(), image.registers.map(u64::from)),
            ("shared memory", driver.shared.into(), Some(image.shared)),
            ("local memory", driver.local.into(), stack.map(|stack| stack.max(image.local))),
            ("architecture", driver.binary_version.into(), self.kernel.sm.map(u64::from)),
        ];
        let differ = |(what, driver, image): (_, u64, Option<u64>)| {
            image.filter(|&image| image != driver).map(|image| (what, driver, image))
        };
        Ok(rows.into_iter().filter_map(differ).collect())
    }

    /// Puts a launch into a queue, behind what is there. Gives the time it took if the launch waits.
    ///
    /// # Errors
    /// [`Error::Launch`] and [`Error::Core`] before anything runs, [`Error::Capturing`] if the launch is to wait while calls go into a graph; what
    /// the driver says, of the kernel itself too if the launch waits.
    ///
    /// # Safety
    /// The kernel is sound to run with such arguments beside whatever else runs, and uses of the buffers no byte outside of the
    /// views.
    pub unsafe fn launch(
        &self,
        queue: &NvQueue,
        arguments: &[Argument<'_>],
        launch: &NvLaunch,
    ) -> Result<Option<Duration>, Error> {
        let context = queue.stream().context();
        context.sticky().check()?;
        self.device.context.expect(context.id())?;
        self.check(launch)?;
        let start = match launch.wait {
            true => {
                queue.not_capturing()?;
                Some(NvEvent::record(queue.stream())?)
            }
            false => None,
        };
        let mut block = self.lock_block();
        let mut call = queue.begin();
        self.fill(&mut block, arguments, |hold| call.uses(hold))?;
        // SAFETY: the block has what the kernel takes; the caller guarantees the kernel.
        let started = unsafe { self.start(queue, block.pointers(), launch) };
        context.note(started.map_err(|error| self.with_limits(error, launch)))?;
        drop(block);
        call.keep(&self.function);
        let Some(start) = start else { return Ok(None) };
        let end = NvEvent::record(queue.stream())?;
        end.wait()?;
        queue.synchronize()?;
        end.since(&start).map(Some)
    }

    /// Whether the kernel can be launched so; what the driver has to allow, it has allowed then.
    pub(crate) fn check(&self, launch: &NvLaunch) -> Result<(), Error> {
        launch.check(&self.device.properties, self.kernel.resources.as_ref())?;
        self.allow(launch)
    }

    /// The memory for parameters.
    pub(crate) fn lock_block(&self) -> MutexGuard<'_, Block> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts arguments where the kernel has its parameters; `uses` is given the buffers among them.
    pub(crate) fn fill(
        &self,
        block: &mut Block,
        arguments: &[Argument<'_>],
        mut uses: impl FnMut(Hold<LruAllocator<NvAllocator>>),
    ) -> Result<(), Error> {
        let expected = self.device.allocator.device();
        block.fill(self.kernel.parameters.as_deref(), arguments, |view| {
            let hold = view.hold()?;
            if hold.device() != expected {
                return Err(CoreError::OtherDevice { expected, found: hold.device() });
            }
            let address = hold.address();
            uses(hold);
            Ok(address)
        })
    }

    pub(crate) const fn function(&self) -> &Arc<Function> {
        &self.function
    }

    pub(crate) const fn device(&self) -> &Arc<Shared> {
        &self.device
    }

    /// Asks the driver for what it does not allow of itself.
    fn allow(&self, launch: &NvLaunch) -> Result<(), Error> {
        if launch.dynamic_shared > self.allowed.load(Ordering::Relaxed) {
            let allowed = self.function.allow_shared(launch.dynamic_shared)?;
            self.allowed.fetch_max(allowed, Ordering::Relaxed);
        }
        let own = self.kernel.resources.as_ref().and_then(|resources| resources.cluster);
        if launch.is_beyond_portable() || own.is_some_and(is_beyond_portable) {
            let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
            self.function.set(attribute, 1)?;
        }
        Ok(())
    }

    /// The error of a launch that the driver refused, with the limit that it is beyond by the driver's own numbers, or all numbers that it
    /// may have been refused for.
    pub(crate) fn with_limits(&self, error: Error, launch: &NvLaunch) -> Error {
        let (function, code, text) = match error {
            Error::Driver { function, code, text } if REFUSED.contains(&code) => {
                (function, code, text)
            }
            error => return error,
        };
        // what hinders the question hides nothing
        let Ok(found) = self.attributes() else {
            return Error::Driver { function, code, text };
        };
        let device = &self.device.properties;
        let needs = Resources {
            registers: Some(found.registers),
            shared: found.shared.into(),
            max_threads: Some([found.max_threads, 1, 1]),
            ..Resources::EMPTY
        };
        if let Err(limit) = launch.check(device, Some(&needs)) {
            return Error::Driver { function, code, text: format!("{text}; {limit}") };
        }
        let (threads, blocks, dynamic) = (launch.threads(), launch.blocks(), launch.dynamic_shared);
        let more = match code {
            COOPERATIVE_LAUNCH_TOO_LARGE => {
                let per_sm = self.function.active_blocks(threads as u32, dynamic).unwrap_or(0);
                let at_once = u64::from(per_sm).saturating_mul(device.sm_count.into());
                format!("{blocks} blocks, of which {at_once} run at a time")
            }
            INVALID_CLUSTER_SIZE => {
                let cluster =
                    launch.cluster.or(self.kernel.resources.as_ref().and_then(|it| it.cluster));
                let mut attributes = attributes(launch);
                let config = config(launch, ptr::null_mut(), &mut attributes);
                let clusters = self.function.active_clusters(&config).unwrap_or(0);
                let [x, y, z] = cluster.unwrap_or([1; 3]);
                format!("clusters of {x}x{y}x{z} blocks, of which {clusters} run at a time")
            }
            OUT_OF_MEMORY => format!(
                "{} bytes of local memory a thread, with up to {} threads on each of {} SMs",
                found.local, device.max_threads, device.sm_count
            ),
            _ => format!(
                "{threads} threads of {} registers in a block, where the driver allows {} threads and the device has {} registers; \
                 {} and {dynamic} bytes of shared memory, where {} can be; {blocks} blocks",
                found.registers,
                found.max_threads,
                device.max_registers,
                found.shared,
                device.shared_opt_in.max(device.shared),
            ),
        };
        Error::Driver { function, code, text: format!("{text}; {more}") }
    }

    /// # Safety
    /// As for [`launch`](Self::launch), with a pointer to each parameter.
    unsafe fn start(
        &self,
        queue: &NvQueue,
        parameters: *mut *mut c_void,
        launch: &NvLaunch,
    ) -> Result<(), Error> {
        let driver = queue.stream().context().enter()?;
        let (function, stream) = (self.function.handle()?, queue.stream().handle()?);
        let ([grid_x, grid_y, grid_z], [x, y, z]) = (launch.grid, launch.block);
        let none = ptr::null_mut();
        let mut attributes = attributes(launch);
        if attributes.is_empty() {
            // SAFETY: as the caller says.
            return unsafe {
                driver.cuLaunchKernel(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    x,
                    y,
                    z,
                    launch.dynamic_shared,
                    stream,
                    parameters,
                    none,
                )
            };
        }
        let config = config(launch, stream, &mut attributes);
        // SAFETY: as the caller says.
        unsafe { driver.cuLaunchKernelEx(&raw const config, function, parameters, none) }
    }
}

impl Program for NvProgram {
    type Allocator = LruAllocator<NvAllocator>;

    fn name(&self) -> &str {
        &self.kernel.name
    }

    fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    unsafe fn call(
        &self,
        buffers: &[&View<Self::Allocator>],
        values: &[Scalar],
        launch: Launch,
    ) -> Result<Option<Duration>, CoreError> {
        let arguments = Argument::of_call(self.signature.as_ref(), buffers, values)?;
        // SAFETY: as the caller says.
        Ok(unsafe { self.launch(&self.device.queue, &arguments, &launch.into())? })
    }
}
