//! Kernels of an image, to be launched through a queue without CUDA.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use exec_core::{Error as CoreError, Launch, LruAllocator, Program, Scalar, Signature, View};

use super::allocator::RawAllocator;
use super::bank0::{self, Offsets};
use super::error::Error as RawError;
use super::image::{LoadedKernel, RawImage};
use super::qmd::Grid;
use super::queue::{RawQueue, Use, Work};
use super::shared::Shared;
use super::shared_memory::SharedMemory;
use super::system::System;
use crate::arguments::{Argument, Block};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::launch::{LaunchAttributes, NvLaunch};

/// What a kernel of a [`RawDevice`](super::RawDevice) is given in one place.
pub type RawArgument<'a, S> = Argument<'a, LruAllocator<RawAllocator<S>>>;

/// A kernel that a [`RawDevice`](super::RawDevice) runs.
pub struct RawProgram<S: System> {
    device: Arc<Shared<S>>,
    found: LoadedKernel<S>,
    offsets: Offsets,
    signature: Option<Signature>,
    /// The parameters of the latest launch: memory to be used again.
    block: Mutex<Block>,
    /// Keeps the code.
    _image: Arc<RawImage<S>>,
}

/// One of several launches that are handed over at once.
pub struct RawCall<'a, S: System> {
    /// What is launched.
    pub program: &'a RawProgram<S>,
    /// What it is given.
    pub arguments: &'a [RawArgument<'a, S>],
    /// How. Whether it is waited for, the last says.
    pub launch: NvLaunch,
}

impl<S: System> RawProgram<S> {
    pub(super) fn new(
        device: &Arc<Shared<S>>,
        image: &Arc<RawImage<S>>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<Self, Error> {
        let (expected, found) = (device.context.id(), image.device());
        if found != expected {
            return Err(CoreError::OtherDevice { expected, found }.into());
        }
        let found = image.kernel(name)?;
        let offsets = Offsets::of(device.properties.sm)?;
        if found.parameters < usize::from(offsets.parameters) {
            let what = "parameters where the launch itself is described";
            return Err(RawError::Kernel { name: name.into(), what }.into());
        }
        Ok(Self {
            device: Arc::clone(device),
            found,
            offsets,
            signature,
            block: Mutex::default(),
            _image: Arc::clone(image),
        })
    }

    /// What its image says of it.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.found.kernel
    }

    /// Puts a launch into a queue, behind what is there. Gives the time it took if the launch waits.
    ///
    /// # Errors
    /// [`Error::Launch`] and [`Error::Core`] before anything runs; [`Error::Raw`], of the kernel itself too if the launch waits.
    ///
    /// # Safety
    /// The kernel is sound to run with such arguments beside whatever else runs, and uses of the buffers no byte outside of the
    /// views.
    pub unsafe fn launch(
        &self,
        queue: &RawQueue<S>,
        arguments: &[RawArgument<'_, S>],
        launch: &NvLaunch,
    ) -> Result<Option<Duration>, Error> {
        let mut memory = Vec::new();
        let work = self.work(queue, arguments, launch, &mut memory)?;
        let context = &self.device.context;
        Ok(context.note(queue.launch(&[work], memory, launch.wait))?)
    }

    /// What is launched, but for where banks and block are.
    fn work(
        &self,
        queue: &RawQueue<S>,
        arguments: &[RawArgument<'_, S>],
        launch: &NvLaunch,
        memory: &mut Vec<Use<S>>,
    ) -> Result<Work, Error> {
        let (context, properties) = (&self.device.context, &self.device.properties);
        context.sticky().check()?;
        queue.check_device(context)?;
        let needs = &self.found.resources;
        launch.check(properties, Some(needs))?;
        let refuse = |what| RawError::Kernel { name: self.found.kernel.name.clone(), what };
        if launch.cooperative {
            return Err(refuse("what blocks wait for each other with").into());
        }
        if launch.attributes != LaunchAttributes::NONE {
            return Err(refuse("attributes of launches").into());
        }
        let mut bank = self.found.bank.clone();
        let described = bank0::Launch {
            block: launch.block,
            grid: launch.grid,
            dynamic_shared: launch.dynamic_shared,
            sms: properties.sm_count,
        };
        self.offsets.fill(&mut bank, &described)?;
        let expected = context.id();
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        block.fill(self.found.kernel.parameters.as_deref(), arguments, |view| {
            let hold = view.hold()?;
            if hold.device() != expected {
                return Err(CoreError::OtherDevice { expected, found: hold.device() });
            }
            let address = hold.address();
            memory.push(hold);
            Ok(address)
        })?;
        let parameters = block.bytes();
        let place =
            bank.get_mut(self.found.parameters..).and_then(|bank| bank.get_mut(..parameters.len()));
        let Some(place) = place else {
            return Err(Error::Parameters { kernel: self.found.kernel.name.clone() });
        };
        place.copy_from_slice(parameters);
        drop(block);
        memory.push(self.found.part.memory().hold()?);

        let shared = needs
            .shared
            .saturating_add(needs.reserved_shared)
            .saturating_add(launch.dynamic_shared.into());
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let stack = match needs.stack {
            Some(stack) => match stack.bytes() {
                Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
                None => context.stack(),
            },
            None => 0,
        };
        // as CUDA, which gives every thread as much
        let stack = if self.found.calls { stack.max(context.stack()) } else { stack };
        let local = u32::try_from(needs.local).unwrap_or(u32::MAX);
        let cluster = launch.cluster.or(needs.cluster);
        let grid = Grid {
            program: self.found.program,
            registers: needs.registers.ok_or_else(|| refuse("a number of registers"))?,
            barriers: needs.barriers,
            shared: SharedMemory::new(properties.sm, shared)?,
            local: 0,
            grid: launch.grid,
            block: launch.block,
            cluster: cluster.filter(|cluster| cluster.iter().all(|&size| size > 0)),
            banks: self.found.banks,
            release: None,
            next: None,
        };
        Ok(Work { grid, bank, stack: stack.max(local) })
    }
}

impl<S: System> RawQueue<S> {
    /// Puts several launches into the queue at once: the GPU goes from one to the next by itself. Gives the time that all took if
    /// the last waits.
    ///
    /// # Errors
    /// As [`RawProgram::launch`]; nothing is launched if one cannot be.
    ///
    /// # Safety
    /// As for [`RawProgram::launch`], of each.
    pub unsafe fn launches(&self, calls: &[RawCall<'_, S>]) -> Result<Option<Duration>, Error> {
        let mut memory = Vec::new();
        let works = calls
            .iter()
            .map(|call| call.program.work(self, call.arguments, &call.launch, &mut memory))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(last) = calls.last() else { return Ok(None) };
        let context = &last.program.device.context;
        Ok(context.note(self.launch(&works, memory, last.launch.wait))?)
    }
}

impl<S: System> Program for RawProgram<S> {
    type Allocator = LruAllocator<RawAllocator<S>>;

    fn name(&self) -> &str {
        &self.found.kernel.name
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

impl<S: System> fmt::Debug for RawProgram<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawProgram").field("kernel", &self.found.kernel).finish_non_exhaustive()
    }
}

impl<S: System> fmt::Debug for RawCall<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCall").field("launch", &self.launch).finish_non_exhaustive()
    }
}
