//! What `hoist launch` is asked for, and what comes of it, whoever launches.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use exec_core::{Buffer, Device, Scalar, Spec, View};
use exec_nv::NvLaunch;

use crate::call::Argument;
use crate::printable::Printable;

/// Launches a kernel.
#[derive(Debug, clap::Args)]
pub struct Launch {
    /// A cubin, PTX, a fatbin, an OffloadBinary, or an executable, library or object with such inside; CUDA C++ (`.cu`) where NVRTC is
    pub(super) file: PathBuf,
    /// The kernel's name as it is in the file: mangled; of CUDA C++, as it is there (`scale<float>`)
    pub(super) kernel: String,
    /// The kernel's arguments as TYPE:VALUE.
    ///
    /// TYPE is one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64, or `str:TEXT`, `buf:TYPE:1,2,3`, `zeros:TYPE:COUNT`, `file:PATH`,
    /// which pass device memory with this content, copied back when the kernel is done.
    #[arg(value_name = "ARG")]
    words: Vec<String>,
    /// Blocks: X, X,Y or X,Y,Z
    #[arg(long, default_value = "1", value_parser = dimensions)]
    grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z
    #[arg(long, default_value = "1", value_parser = dimensions)]
    block: [u32; 3],
    /// Shared memory of a block beside what the kernel declares
    #[arg(long, value_name = "BYTES", default_value = "0")]
    shared: u32,
    /// Blocks of a cluster: X, X,Y or X,Y,Z
    #[arg(long, value_parser = dimensions)]
    cluster: Option<[u32; 3]>,
    /// All blocks run at the same time
    #[arg(long)]
    cooperative: bool,
    /// Stack of a thread where the kernel does not say how much it takes: with recursion
    #[arg(long, value_name = "BYTES")]
    pub(super) stack: Option<u64>,
    /// Number of the device, as `hoist devices` lists them
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(super) device: u32,
    /// Who puts the code into the device's memory
    #[arg(long, value_name = "LOADER", default_value = "driver")]
    pub(super) loader: By,
    /// An option for NVRTC, which compiles CUDA C++
    #[arg(long = "nvrtc-option", value_name = "OPTION", allow_hyphen_values = true)]
    pub(super) nvrtc_options: Vec<String>,
    /// Prints the buffers after the launch, one a line
    #[arg(long)]
    pub(super) show_buffers: bool,
    /// Launches the kernel so often, with fresh buffers every time, and prints how long it took on the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: Option<u32>,
    /// Prints JSON: see JSON.md
    #[arg(long)]
    pub(super) json: bool,
}

/// A loader's name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum By {
    /// The CUDA driver
    Driver,
    /// hoist, into memory of the device
    Own,
    /// hoist, through the kernel driver alone: without CUDA
    #[cfg(target_os = "linux")]
    Raw,
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Own => "own",
            #[cfg(target_os = "linux")]
            Self::Raw => "raw",
        }
    }
}

/// An argument as a device is given it.
pub(super) enum Passed<'m, D: Device> {
    Memory(&'m View<D::Allocator>),
    Value(Scalar),
}

/// What was launched, and what came of it.
pub(super) struct Report {
    pub(super) device: String,
    pub(super) times: Vec<Duration>,
    pub(super) arguments: Vec<Argument>,
    /// What driver and file say differently.
    pub(super) differences: Vec<(&'static str, u64, u64)>,
}

/// `4`, `4,2` or `4,2,1`.
fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut all = [1; 3];
    let mut places = all.iter_mut();
    for word in text.split(',') {
        let place = places.next().ok_or("more than three dimensions")?;
        *place = word.parse().map_err(|_| format!("{word:?} is no number"))?;
    }
    Ok(all)
}

impl Launch {
    pub(super) fn label(&self) -> String {
        Printable::from(self.file.display().to_string().as_str()).to_string()
    }

    /// Whether it has to be compiled.
    pub(super) fn is_source(&self) -> bool {
        self.file.extension().is_some_and(|extension| extension == "cu")
    }

    pub(super) fn parse(&self) -> Result<Vec<Argument>> {
        self.words.iter().map(|word| word.parse()).collect()
    }

    pub(super) const fn launch(&self) -> NvLaunch {
        NvLaunch {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.shared,
            cluster: self.cluster,
            cooperative: self.cooperative,
            wait: true,
            ..NvLaunch::new(1, 1)
        }
    }

    /// Launches as often as asked for, with fresh buffers every time: the times, and the arguments of the last.
    pub(super) fn repeated<D: Device>(
        &self,
        device: &D,
        start: impl Fn(&[Passed<'_, D>]) -> Result<Option<Duration>>,
    ) -> Result<(Vec<Duration>, Vec<Argument>)> {
        let mut times = Vec::new();
        loop {
            let mut arguments = self.parse()?;
            times.push(self.once(device, &mut arguments, &start)?);
            if times.len() >= self.repeat.unwrap_or(1) as usize {
                return Ok((times, arguments));
            }
        }
    }

    /// Copies the buffers there, launches, and copies them back.
    fn once<D: Device>(
        &self,
        device: &D,
        arguments: &mut [Argument],
        start: impl Fn(&[Passed<'_, D>]) -> Result<Option<Duration>>,
    ) -> Result<Duration> {
        let put = |bytes: &[u8]| -> Result<Buffer<D::Allocator>> {
            // of nothing there is no memory: the pointer is good for no access
            let memory = device.buffer(bytes.len().max(1) as u64, Spec::new())?;
            memory.copy_in(0, bytes)?;
            Ok(memory)
        };
        let memories = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Number(_) => Ok(None),
                Argument::Text(text) => put(text.as_bytes_with_nul()).map(Some),
                Argument::Buffer(buffer) => put(buffer.bytes()).map(Some),
            })
            .collect::<Result<Vec<_>>>()?;
        let passed: Vec<_> = arguments
            .iter_mut()
            .zip(&memories)
            .map(|(argument, memory)| match memory {
                Some(memory) => Passed::Memory(&**memory),
                None => Passed::Value(argument.value()),
            })
            .collect();
        let time =
            start(&passed).with_context(|| Printable::from(self.kernel.as_str()).to_string())?;
        for (argument, memory) in arguments.iter_mut().zip(&memories) {
            if let (Argument::Buffer(buffer), Some(memory)) = (argument, memory) {
                memory.copy_out(0, buffer.bytes_mut())?;
            }
        }
        Ok(time.unwrap_or_default())
    }

    pub(super) fn print_json(&self, report: &Report, out: &mut dyn Write) -> Result<()> {
        let buffers: Vec<_> = report
            .arguments
            .iter()
            .filter_map(|argument| match argument {
                Argument::Buffer(buffer) => Some(buffer.to_string()),
                _ => None,
            })
            .collect();
        let differences: Vec<_> = report
            .differences
            .iter()
            .map(|(what, driver, image)| {
                serde_json::json!({ "what": what, "driver": driver, "image": image })
            })
            .collect();
        let nanoseconds: Vec<_> = report.times.iter().map(|time| time.as_nanos() as u64).collect();
        let report = serde_json::json!({
            "file": self.file.display().to_string(),
            "kernel": self.kernel,
            "device": report.device,
            "loader": self.loader.name(),
            "grid": self.grid,
            "block": self.block,
            "nanoseconds": nanoseconds,
            "buffers": buffers,
            "differences": differences,
        });
        crate::json::write(out, &report)?;
        Ok(writeln!(out)?)
    }
}
