//! What keeps a GPU from doing what it was asked for.

use core::fmt;
use fatbin::CudaVersion;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        }
    }
}

impl core::error::Error for Error {}
