//! Launches without CUDA.

use anyhow::{Context as _, Result};
use exec_core::Device as _;
use exec_nv::raw::{Linux, RawArgument, RawDevice, RawOptions};

use super::{Launch, Passed, Report};

impl Launch {
    /// Launches through the kernel driver alone.
    pub(super) fn without_cuda(&self, bytes: &[u8]) -> Result<Report> {
        let index = self.device as usize;
        let device = RawDevice::open(Linux, index, RawOptions::default())?;
        if let Some(bytes) = self.stack {
            device.set_stack_size(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        let image = device.load(bytes).with_context(|| self.label())?;
        let kernel = device.kernel(&image, &self.kernel).with_context(|| self.label())?;
        let launch = self.launch();
        let (times, arguments) = self.repeated(&device, |passed| {
            let passed: Vec<_> = passed
                .iter()
                .map(|passed| match passed {
                    Passed::Memory(memory) => RawArgument::Buffer(memory),
                    Passed::Value(value) => RawArgument::Value(*value),
                })
                .collect();
            // SAFETY: the user asks for the launch, with these arguments.
            Ok(unsafe { kernel.launch(device.queue(), &passed, &launch) }?)
        })?;
        Ok(Report { device: device.name(), times, arguments, differences: Vec::new() })
    }
}
