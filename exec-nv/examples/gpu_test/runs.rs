//! A device that a step's kernels run on, whoever launches them: CUDA's driver, or nobody's but this crate.

use std::sync::Arc;

use exec_core::{Allocator, Device, Scalar, View};
use exec_nv::{DeviceProperties, NvDevice, NvImage, NvLaunch};

use crate::bench::Failure;

/// What a kernel is given in one place.
pub(crate) enum Argument<'a, A: Allocator> {
    Buffer(&'a View<A>),
    Value(Scalar),
    Bytes(&'a [u8]),
}

/// What steps need of a device beside memory.
pub(crate) trait Runs: Device {
    /// Launches a kernel.
    fn run(
        &self,
        image: &Arc<Self::Image>,
        kernel: &str,
        arguments: &[Argument<'_, Self::Allocator>],
        launch: &NvLaunch,
    ) -> Result<(), Failure>;
    fn properties(&self) -> &DeviceProperties;
    fn set_stack(&self, bytes: u32) -> Result<(), Failure>;
    /// Address and size.
    fn variable(&self, image: &Self::Image, name: &str) -> Result<(u64, u64), Failure>;
    fn set_constant(&self, image: &Self::Image, name: &str, bytes: &[u8]) -> Result<(), Failure>;
}

macro_rules! run {
    ($device:ident, $argument:ty, $image:ident, $kernel:ident, $arguments:ident, $launch:ident) => {{
        let kernel = $device.kernel($image, $kernel)?;
        let arguments: Vec<$argument> = $arguments
            .iter()
            .map(|argument| match argument {
                Argument::Buffer(view) => <$argument>::Buffer(view),
                Argument::Value(value) => <$argument>::Value(*value),
                Argument::Bytes(bytes) => <$argument>::Bytes(bytes),
            })
            .collect();
        // SAFETY: the kernels are ours, and get what they take.
        unsafe { kernel.launch($device.queue(), &arguments, $launch)? };
        Ok(())
    }};
}

impl Runs for NvDevice {
    fn run(
        &self,
        image: &Arc<NvImage>,
        kernel: &str,
        arguments: &[Argument<'_, Self::Allocator>],
        launch: &NvLaunch,
    ) -> Result<(), Failure> {
        run!(self, exec_nv::Argument<'_>, image, kernel, arguments, launch)
    }

    fn properties(&self) -> &DeviceProperties {
        self.properties()
    }

    fn set_stack(&self, bytes: u32) -> Result<(), Failure> {
        Ok(self.set_stack_size(bytes.into())?)
    }

    fn variable(&self, image: &NvImage, name: &str) -> Result<(u64, u64), Failure> {
        Ok(image.variable(name)?)
    }

    fn set_constant(&self, image: &NvImage, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        Ok(image.set_constant(name, bytes)?)
    }
}

#[cfg(feature = "raw")]
mod raw {
    use exec_core::{Buffer, ExternalMemory, Spec};
    use exec_nv::raw::{RawArgument, RawDevice, RawImage, System};

    use super::*;

    impl<S: System> Runs for RawDevice<S> {
        fn run(
            &self,
            image: &Arc<RawImage<S>>,
            kernel: &str,
            arguments: &[Argument<'_, Self::Allocator>],
            launch: &NvLaunch,
        ) -> Result<(), Failure> {
            run!(self, RawArgument<'_, S>, image, kernel, arguments, launch)
        }

        fn properties(&self) -> &DeviceProperties {
            self.properties()
        }

        fn set_stack(&self, bytes: u32) -> Result<(), Failure> {
            self.set_stack_size(bytes);
            Ok(())
        }

        fn variable(&self, image: &RawImage<S>, name: &str) -> Result<(u64, u64), Failure> {
            Ok(image.variable(name)?)
        }

        fn set_constant(
            &self,
            image: &RawImage<S>,
            name: &str,
            bytes: &[u8],
        ) -> Result<(), Failure> {
            let (address, size) = image.variable(name)?;
            // SAFETY: of our image, which nothing reads at the moment.
            let memory = unsafe { ExternalMemory::new(address, size) };
            let memory = Buffer::external(self.allocator(), memory, Spec::new().aligned(1))?;
            Ok(memory.copy_in(0, bytes)?)
        }
    }
}
