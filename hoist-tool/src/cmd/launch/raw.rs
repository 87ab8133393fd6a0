//! Launches without CUDA.

use anyhow::{Context as _, Result};
use exec_core::Device as _;
use exec_nv::raw::{Linux, RawArgument, RawDevice, RawOptions};

use super::request::{Launch, Passed, Report};
use super::source;

/// Launches through the kernel driver alone.
pub(super) fn launch(request: &Launch, bytes: &[u8]) -> Result<Report> {
    let index = request.device as usize;
    let device = RawDevice::open(Linux, index, RawOptions::default())?;
    if let Some(bytes) = request.stack {
        let size = u32::try_from(bytes);
        device.set_stack_size(size.with_context(|| format!("a stack of {bytes} bytes"))?);
    }
    let (code, name) = source::code(request, bytes, device.properties().sm)?;
    let image = device.load(&code).with_context(|| request.label())?;
    let kernel = device.kernel(&image, &name).with_context(|| request.label())?;
    let launch = request.launch();
    let (times, arguments) = request.repeated(&device, |passed| {
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
