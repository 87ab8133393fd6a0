//! What keeps a GPU from doing what it was asked for.

use core::fmt;
use std::sync::Arc;

use fatbin::CudaVersion;

/// Names that an error shows at most.
const SHOWN: usize = 8;

/// Why something was not done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no driver library on this machine, or it cannot be loaded.
    NoLibrary {
        /// The names that were tried, and what the dynamic loader said of each.
        tried: Vec<(String, String)>,
    },
    /// The driver is older than what this crate knows how to use.
    OldDriver {
        /// The version of CUDA that it has.
        found: CudaVersion,
        /// The version that is needed.
        needed: CudaVersion,
    },
    /// The driver has no such function: it is too old for what was asked for.
    NoDriverFunction {
        /// The function's name.
        function: &'static str,
    },
    /// The driver knows no GPU.
    NoDevice,
    /// There are fewer devices.
    NoSuchDevice {
        /// The device asked for, counted from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// A function of the driver failed.
    Driver {
        /// The function.
        function: &'static str,
        /// What it returned: a `CUresult`.
        code: u32,
        /// Its name and text, as far as the driver has them.
        text: String,
    },
    /// There is no NVRTC on this machine, or it cannot be loaded.
    NoCompiler {
        /// The names that were tried, and what the dynamic loader said of each.
        tried: Vec<(String, String)>,
    },
    /// A function of NVRTC failed: the source is wrong, if it is `nvrtcCompileProgram`.
    Compiler {
        /// The function.
        function: &'static str,
        /// What it returned: an `nvrtcResult`.
        code: u32,
        /// What it calls that.
        text: String,
        /// What the compiler says of the source.
        log: String,
    },
    /// A name has a NUL inside.
    Name,
    /// The queue's calls go into a graph: it cannot be waited for, or captured once more. Or a mark is of a capture that has ended, or of another one.
    Capturing,
    /// A call of another graph, or one that came into it after it was made ready.
    OtherGraph,
    /// It was made before the device was reset.
    Stale,
    /// A graph that was made ready cannot become the other one.
    GraphUpdate {
        /// `CUgraphExecUpdateResult`.
        result: u32,
        /// What that means.
        reason: &'static str,
        /// The call of the other graph that is at fault, or that was to be changed, as `nodes` counts them from 0; `None` if the driver does not
        /// say.
        node: Option<usize>,
    },
    /// A size is no multiple of what it must be one of.
    Multiple {
        /// What it is the size of.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it must be a multiple of.
        of: u64,
    },
    /// The memory is part of a larger piece, which is the one that can be named.
    Inside {
        /// How far in it is.
        offset: u64,
    },
    /// Memory is mapped there.
    Mapped {
        /// The offset at which that begins.
        offset: u64,
    },
    /// There can be no such tensor map.
    #[cfg(feature = "driver")]
    TensorMap(crate::tensor_map::TensorMapError),
    /// The two devices cannot use each other's memory.
    NoPeerAccess,
    /// There is no device code in the file.
    NoCode,
    /// The device code in the file is for other devices.
    OtherArchitecture {
        /// The device.
        device: fatbin::TargetDevice,
        /// What there is.
        found: Vec<String>,
    },
    /// The cubin is an object that a device linker has yet to link.
    NotLinked,
    /// The image has no such kernel.
    NoKernel {
        /// Its name.
        name: String,
        /// The kernels that there are.
        kernels: Vec<String>,
    },
    /// The image has no such variable.
    NoVariable {
        /// Its name.
        name: String,
    },
    /// What the image says of a kernel's parameters contradicts itself.
    Parameters {
        /// The kernel.
        kernel: String,
    },
    /// A container of device code is damaged.
    Container(fatbin::Error),
    /// A cubin is damaged.
    Cubin(nvinfo::Error),
    /// The kernel cannot be launched so.
    Launch(crate::launch::LaunchError),
    /// The own loader cannot load it.
    Own(crate::own::OwnError),
    /// The kernel driver, or the GPU, without CUDA between.
    #[cfg(feature = "raw")]
    Raw(crate::raw::Error),
    /// What devices of all kinds have in common.
    Core(exec_core::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { tried } => {
                f.write_str("no CUDA driver library")?;
                tried.iter().try_for_each(|(name, cause)| write!(f, "; {name}: {cause}"))
            }
            Self::OldDriver { found, needed } => {
                write!(f, "the driver has CUDA {found}, {needed} is needed")
            }
            Self::NoDriverFunction { function } => {
                write!(f, "the driver is too old: it has no {function}")
            }
            Self::NoDevice => f.write_str("the driver knows no GPU"),
            Self::NoSuchDevice { ordinal, count } => {
                write!(f, "no device {ordinal}: there are {count}")
            }
            Self::Driver { function, code, text } => write!(f, "{function}: {text} ({code})"),
            Self::NoCompiler { tried } => {
                f.write_str("no NVRTC, which compiles CUDA C++")?;
                tried.iter().try_for_each(|(name, cause)| write!(f, "; {name}: {cause}"))
            }
            Self::Compiler { function, code, text, log } => {
                write!(f, "{function}: {text} ({code})")?;
                if log.is_empty() { Ok(()) } else { write!(f, "\n{log}") }
            }
            Self::Capturing => {
                f.write_str("calls that go into a graph, and marks of its capture, are nothing to wait for, move or capture outside of it")
            }
            Self::OtherGraph => f.write_str("the call is of another graph, or came into it later"),
            Self::Stale => f.write_str("made before the device was reset"),
            Self::GraphUpdate { result, reason, node } => {
                write!(f, "the graph cannot be updated: {reason} ({result})")?;
                node.map_or(Ok(()), |node| write!(f, ", at call {node}"))
            }
            Self::Multiple { what, value, of } => {
                write!(f, "{what} is {value}, no multiple of {of}")
            }
            Self::Inside { offset } => {
                write!(
                    f,
                    "the memory begins {offset} bytes inside of what can be shared as a whole"
                )
            }
            Self::Mapped { offset } => write!(f, "memory is mapped there, from {offset} on"),
            #[cfg(feature = "driver")]
            Self::TensorMap(error) => write!(f, "tensor map: {error}"),
            Self::Name => f.write_str("a name with a NUL inside"),
            Self::NoPeerAccess => f.write_str("the devices cannot use each other's memory"),
            Self::NoCode => f.write_str("no device code in the file"),
            Self::OtherArchitecture { device, found } => write!(
                f,
                "no code for sm_{} with CUDA {}: there is {}",
                device.sm,
                device.driver,
                found.join(", ")
            ),
            Self::NotLinked => f.write_str("a relocatable cubin, which has to be linked first"),
            Self::NoKernel { name, kernels } if kernels.is_empty() => {
                write!(f, "no kernel {name}: there are none")
            }
            Self::NoKernel { name, kernels } => {
                let (shown, more) = kernels.split_at(kernels.len().min(SHOWN));
                write!(f, "no kernel {name}: there are {}", shown.join(", "))?;
                if more.is_empty() { Ok(()) } else { write!(f, " and {} more", more.len()) }
            }
            Self::NoVariable { name } => write!(f, "no variable {name}"),
            Self::Parameters { kernel } => {
                write!(f, "the records of the parameters of {kernel} contradict each other")
            }
            Self::Container(error) => error.fmt(f),
            Self::Cubin(error) => error.fmt(f),
            Self::Launch(error) => write!(f, "cannot launch: {error}"),
            Self::Own(error) => write!(f, "own loader: {error}"),
            #[cfg(feature = "raw")]
            Self::Raw(error) => error.fmt(f),
            Self::Core(error) => error.fmt(f),
        }
    }
}

/// What a kernel did, so that it was stopped: [`Error::fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelFault {
    /// An `assert` did not hold: what and where is on the standard error output.
    Assert,
    /// It used memory that is not there.
    IllegalAddress,
    /// It used memory at an address that is no multiple of the access's size.
    MisalignedAddress,
    /// It used memory by an instruction for another kind of memory.
    WrongAddressSpace,
    /// It went on where no code is.
    InvalidPc,
    /// Its code has an instruction that this device does not have.
    IllegalInstruction,
    /// Its stack was not enough, or a call failed otherwise.
    HardwareStack,
    /// It ran longer than a device may that also shows a screen.
    Timeout,
    /// Something else.
    LaunchFailed,
}

/// By the driver's numbers.
const FAULTS: [(u32, KernelFault); 9] = [
    (700, KernelFault::IllegalAddress),
    (702, KernelFault::Timeout),
    (710, KernelFault::Assert),
    (714, KernelFault::HardwareStack),
    (715, KernelFault::IllegalInstruction),
    (716, KernelFault::MisalignedAddress),
    (717, KernelFault::WrongAddressSpace),
    (718, KernelFault::InvalidPc),
    (719, KernelFault::LaunchFailed),
];

impl Error {
    /// What a kernel did, if this is what the driver says of one. The device is of no use then before it is reset.
    #[must_use]
    pub fn fault(&self) -> Option<KernelFault> {
        let Self::Driver { code, .. } = self else { return None };
        FAULTS.iter().find(|(number, _)| number == code).map(|(_, fault)| *fault)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Container(error) => Some(error),
            Self::Cubin(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::Own(error) => Some(error),
            #[cfg(feature = "driver")]
            Self::TensorMap(error) => Some(error),
            #[cfg(feature = "raw")]
            Self::Raw(error) => Some(error),
            Self::Core(error) => Some(error),
            _ => None,
        }
    }
}

/// Makes `From` of lower errors.
macro_rules! from {
    ($($variant:ident($type:ty);)*) => {
        $(impl From<$type> for Error {
            fn from(error: $type) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from! {
    Container(fatbin::Error);
    Cubin(nvinfo::Error);
    Core(exec_core::Error);
}

from! {
    Launch(crate::launch::LaunchError);
    Own(crate::own::OwnError);
}

#[cfg(feature = "driver")]
from! {
    TensorMap(crate::tensor_map::TensorMapError);
}

#[cfg(feature = "raw")]
from! {
    Raw(crate::raw::Error);
}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self::Cubin(error.into())
    }
}

impl From<Error> for exec_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => error,
            #[cfg(feature = "driver")]
            Error::TensorMap(error) => Self::Refused(Arc::new(error)),
            Error::Launch(error) => Self::Refused(Arc::new(error)),
            error => Self::Device(Arc::new(error)),
        }
    }
}
