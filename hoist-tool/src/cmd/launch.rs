//! `hoist launch FILE KERNEL [ARG...]`: launches a kernel on an NVIDIA GPU.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use exec_core::Device as _;
use exec_nv::{CubinLoader, Driver, NvDevice, NvOptions, ProfilerRange};

use crate::call::Argument;

#[cfg(target_os = "linux")]
mod raw;
mod request;
mod source;

pub use request::Launch;
use request::{By, Passed, Report};

impl Launch {
    /// Launches the kernel and prints what is asked for to `out`.
    ///
    /// # Errors
    /// What is wrong with the file, the kernel, an argument or the launch; what the driver says.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let bytes = std::fs::read(&self.file).with_context(|| self.label())?;
        // what is wrong with a word is said before a device is looked for
        self.parse()?;
        let report = match self.loader {
            By::Driver => by_cuda(self, &bytes, CubinLoader::Driver)?,
            By::Own => by_cuda(self, &bytes, CubinLoader::Own)?,
            #[cfg(target_os = "linux")]
            By::Raw => raw::launch(self, &bytes)?,
        };
        if self.json {
            return self.print_json(&report, out);
        }
        if self.show_buffers {
            for argument in &report.arguments {
                if let Argument::Buffer(buffer) = argument {
                    writeln!(out, "{buffer}")?;
                }
            }
        }
        if self.repeat.is_some() {
            let mut times = report.times;
            times.sort();
            let at = |index: usize| times.get(index).copied().unwrap_or_default();
            writeln!(out, "min {:?}, median {:?}", at(0), at(times.len() / 2))?;
        }
        Ok(())
    }
}

/// Launches through the CUDA driver.
fn by_cuda(request: &Launch, bytes: &[u8], loader: CubinLoader) -> Result<Report> {
    let driver = Arc::new(Driver::open()?);
    let device = NvDevice::open(&driver, request.device, NvOptions::default())?;
    if let Some(bytes) = request.stack {
        device.set_stack_size(bytes)?;
    }
    let (code, name) = source::code(request, bytes, device.properties().sm)?;
    let loading = ProfilerRange::new("load");
    let image = device.load_with(&code, loader).with_context(|| request.label())?;
    let kernel = device.kernel(&image, &name).with_context(|| request.label())?;
    drop(loading);
    let launch = request.launch();
    let (times, arguments) = request.repeated(&device, |passed| {
        let passed: Vec<_> = passed
            .iter()
            .map(|passed| match passed {
                Passed::Memory(memory) => exec_nv::Argument::Buffer(memory),
                Passed::Value(value) => exec_nv::Argument::Value(*value),
            })
            .collect();
        let _range = ProfilerRange::new(&request.kernel);
        // SAFETY: the user asks for the launch, with these arguments.
        Ok(unsafe { kernel.launch(device.queue(), &passed, &launch) }?)
    })?;
    let differences = if request.json { kernel.differences()? } else { Vec::new() };
    Ok(Report { device: device.name(), times, arguments, differences })
}
