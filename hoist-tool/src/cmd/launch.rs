//! `hoist launch FILE KERNEL [ARG...]`: launches a kernel on an NVIDIA GPU.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use exec_core::{Buffer, Device as _, LruAllocator, Spec};
use exec_nv::{Driver, Loader, NvAllocator, NvDevice, NvLaunch, NvOptions, NvProgram};

use crate::call::Argument;
use crate::printable::Printable;

/// Launches a kernel.
#[derive(Debug, clap::Args)]
pub struct Launch {
    /// A cubin, PTX, a fatbin, an OffloadBinary, or an executable, library or object with such inside
    file: PathBuf,
    /// The kernel's name as it is in the file: mangled
    kernel: String,
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
    stack: Option<u64>,
    /// Number of the device, as `hoist devices` lists them
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    device: u32,
    /// Who puts the code into the device's memory
    #[arg(long, value_name = "LOADER", default_value = "driver")]
    loader: By,
    /// Prints the buffers after the launch, one a line
    #[arg(long)]
    show_buffers: bool,
    /// Launches the kernel so often, with fresh buffers every time, and prints how long it took on the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Prints JSON: see JSON.md
    #[arg(long)]
    json: bool,
}

/// A loader's name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The CUDA driver
    Driver,
    /// hoist, into memory of the device
    Own,
}

impl By {
    const fn loader(self) -> Loader {
        match self {
            Self::Driver => Loader::Driver,
            Self::Own => Loader::Own,
        }
    }
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

/// Memory of the device that an argument points to.
type Memory = Buffer<LruAllocator<NvAllocator>>;

impl Launch {
    /// Launches the kernel and prints what is asked for to `out`.
    ///
    /// # Errors
    /// What is wrong with the file, the kernel, an argument or the launch; what the driver says.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let label = || Printable::from(self.file.display().to_string().as_str()).to_string();
        let bytes = std::fs::read(&self.file).with_context(label)?;
        let parse = || self.words.iter().map(|word| word.parse()).collect::<Result<Vec<_>>>();
        let mut arguments: Vec<Argument> = parse()?;
        let driver = Arc::new(Driver::open()?);
        let device = NvDevice::open(&driver, self.device, NvOptions::default())?;
        if let Some(bytes) = self.stack {
            device.set_stack_size(bytes)?;
        }
        let image = device.load_with(&bytes, self.loader.loader()).with_context(label)?;
        let kernel = device.kernel(&image, &self.kernel).with_context(label)?;
        let mut times = Vec::new();
        for count in 0..self.repeat.unwrap_or(1) {
            if count > 0 {
                arguments = parse()?;
            }
            times.push(self.launch(&device, &kernel, &mut arguments)?);
        }
        if self.json {
            return self.print_json(&device, &kernel, &times, &arguments, out);
        }
        if self.show_buffers {
            for argument in &arguments {
                if let Argument::Buffer(buffer) = argument {
                    writeln!(out, "{buffer}")?;
                }
            }
        }
        if self.repeat.is_some() {
            times.sort();
            let at = |index: usize| times.get(index).copied().unwrap_or_default();
            writeln!(out, "min {:?}, median {:?}", at(0), at(times.len() / 2))?;
        }
        Ok(())
    }

    /// Copies the buffers there, launches, and copies them back.
    fn launch(
        &self,
        device: &NvDevice,
        kernel: &NvProgram,
        arguments: &mut [Argument],
    ) -> Result<Duration> {
        let put = |bytes: &[u8]| -> Result<Memory> {
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
                Some(memory) => exec_nv::Argument::Buffer(memory),
                None => exec_nv::Argument::Value(argument.value()),
            })
            .collect();
        let launch = NvLaunch {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.shared,
            cluster: self.cluster,
            cooperative: self.cooperative,
            wait: true,
        };
        // SAFETY: the user asks for the launch, with these arguments.
        let time = unsafe { kernel.launch(device.queue(), &passed, &launch) }
            .with_context(|| Printable::from(self.kernel.as_str()).to_string())?;
        for (argument, memory) in arguments.iter_mut().zip(&memories) {
            if let (Argument::Buffer(buffer), Some(memory)) = (argument, memory) {
                memory.copy_out(0, buffer.bytes_mut())?;
            }
        }
        Ok(time.unwrap_or_default())
    }

    fn print_json(
        &self,
        device: &NvDevice,
        kernel: &NvProgram,
        times: &[Duration],
        arguments: &[Argument],
        out: &mut dyn Write,
    ) -> Result<()> {
        let buffers: Vec<_> = arguments
            .iter()
            .filter_map(|argument| match argument {
                Argument::Buffer(buffer) => Some(buffer.to_string()),
                _ => None,
            })
            .collect();
        let differences: Vec<_> = kernel
            .differences()?
            .into_iter()
            .map(|(what, driver, image)| {
                serde_json::json!({ "what": what, "driver": driver, "image": image })
            })
            .collect();
        let nanoseconds: Vec<_> = times.iter().map(|time| time.as_nanos() as u64).collect();
        let report = serde_json::json!({
            "file": self.file.display().to_string(),
            "kernel": self.kernel,
            "device": device.name(),
            "loader": match self.loader { By::Driver => "driver", By::Own => "own" },
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
