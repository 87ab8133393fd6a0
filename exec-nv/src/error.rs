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
    /// A name has a NUL inside.
    Name,
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

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Container(error) => Some(error),
            Self::Cubin(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::Own(error) => Some(error),
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
            Error::Launch(error) => Self::Refused(Arc::new(error)),
            error => Self::Device(Arc::new(error)),
        }
    }
}
