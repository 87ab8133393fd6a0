//! What can go wrong with devices, their memory and their programs.

use alloc::string::String;
use alloc::sync::Arc;
use core::error::Error as StdError;
use core::fmt;

use crate::device_id::DeviceId;
use crate::parameter::Parameter;

/// What a lower layer says.
pub type Cause = Arc<dyn StdError + Send + Sync>;

/// Why something was not done. Nothing was lost and nothing runs on, unless a variant says so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A buffer of no bytes was asked for.
    Empty,
    /// The device has not so much memory left.
    OutOfMemory {
        /// Bytes asked for.
        size: u64,
    },
    /// The alignment is no power of two, or more than the device can do.
    Alignment {
        /// Bytes asked for.
        alignment: u64,
    },
    /// The device cannot do this at all.
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The buffer was freed.
    Freed,
    /// A queued call or a host view uses the buffer.
    InUse,
    /// The memory went when the device was reset.
    Lost,
    /// The bytes are not inside the buffer or view.
    Outside {
        /// First byte wanted.
        offset: u64,
        /// Bytes wanted.
        size: u64,
        /// Bytes there are.
        available: u64,
    },
    /// Two sides of a copy are not of one size.
    Sizes {
        /// Bytes of the source.
        from: u64,
        /// Bytes of the destination.
        to: u64,
    },
    /// What is used - a buffer, queue, image, mark - is one of another device.
    OtherDevice {
        /// The device it is used on.
        expected: DeviceId,
        /// The device it is of.
        found: DeviceId,
    },
    /// Source and destination of a copy have bytes in common, which a device may read after they were written.
    Overlap {
        /// How many.
        bytes: u64,
    },
    /// The image could not be loaded.
    Load(Cause),
    /// The image has no such function.
    NoFunction {
        /// The function's name.
        name: String,
        /// What the loader says.
        cause: Cause,
    },
    /// A call has too many or too few arguments.
    ArgumentCount {
        /// Number of the function's parameters.
        expected: usize,
        /// Number of arguments given.
        found: usize,
    },
    /// An argument is not what the function takes.
    Argument {
        /// Its index.
        index: usize,
        /// What the function takes.
        expected: Parameter,
        /// What it was given: a buffer of so many bytes, or a value.
        found: Parameter,
    },
    /// The launch has no threads, more than the device can run, or dimensions that it does not have.
    Launch {
        /// What is wrong.
        what: &'static str,
    },
    /// The launch is not one that the function or the device can do.
    Refused(Cause),
    /// A loaded function did something that stopped it.
    Fault {
        /// What it was stopped by.
        signal: Signal,
        /// The address it wanted, if the fault is about one, else that of the instruction.
        address: u64,
        /// Where the instruction is.
        instruction: u64,
        /// The function that the instruction is in, or that was called, if it is in none of the image.
        function: String,
        /// Bytes from the start of that function to the instruction; `None` if the instruction is outside of the image.
        offset: Option<u64>,
    },
    /// The device does not answer any more, or says that something is wrong with it.
    Device(Cause),
}

/// What stops a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// Memory that is not there, or not for this (`SIGSEGV`).
    Access,
    /// Memory that cannot be had, or a misaligned access (`SIGBUS`).
    Bus,
    /// No instruction, or one that is there to stop (`SIGILL`, `SIGTRAP`).
    Instruction,
    /// Division by zero and other arithmetic (`SIGFPE`).
    Arithmetic,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Access => "memory access",
            Self::Bus => "bus error",
            Self::Instruction => "illegal instruction",
            Self::Arithmetic => "arithmetic error",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a buffer of no bytes"),
            Self::OutOfMemory { size } => write!(f, "no memory for {size} bytes"),
            Self::Alignment { alignment } => write!(f, "no alignment to {alignment} bytes"),
            Self::Unsupported { what } => write!(f, "the device does not support {what}"),
            Self::Freed => write!(f, "the buffer was freed"),
            Self::InUse => write!(f, "the buffer is in use"),
            Self::Lost => f.write_str("the memory went when the device was reset"),
            Self::Outside { offset, size, available } => {
                write!(f, "{size} bytes at {offset} are not inside of {available} bytes")
            }
            Self::Sizes { from, to } => write!(f, "{from} bytes do not go into {to} bytes"),
            Self::OtherDevice { expected, found } => {
                write!(f, "of device {found}, and used on device {expected}")
            }
            Self::Overlap { bytes } => {
                write!(f, "source and destination have {bytes} bytes in common")
            }
            Self::Load(cause) => write!(f, "the image cannot be loaded: {cause}"),
            Self::NoFunction { name, cause } => write!(f, "no function {name}: {cause}"),
            Self::ArgumentCount { expected, found } => {
                write!(f, "{found} arguments, expected {expected}")
            }
            Self::Argument { index, expected, found } => {
                write!(f, "argument {index}: {found}, expected {expected}")
            }
            Self::Launch { what } => write!(f, "cannot launch: {what}"),
            Self::Refused(cause) => write!(f, "cannot launch: {cause}"),
            Self::Fault { signal, address, instruction, function, offset } => {
                write!(f, "{signal} at {address:#x}, ")?;
                match offset {
                    Some(offset) => write!(f, "in {function}+{offset:#x}"),
                    None => {
                        write!(f, "called by {function}, by the instruction at {instruction:#x}")
                    }
                }
            }
            Self::Device(cause) => write!(f, "the device has failed: {cause}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Load(cause)
            | Self::NoFunction { cause, .. }
            | Self::Refused(cause)
            | Self::Device(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Why a cache could not be read or written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CacheError {
    /// The cache cannot be opened.
    Open(Cause),
    /// Others than the user of this process could have put something there, which would be run.
    Untrusted {
        /// The folder or file.
        path: String,
        /// What is wrong with it.
        what: &'static str,
        /// The number of the user whom it belongs to.
        owner: u32,
        /// Its permissions, as for `chmod`.
        mode: u32,
    },
    /// An entry cannot be read.
    Read(Cause),
    /// An entry cannot be written: the disk is full or read-only, or another process holds the cache for too long.
    Write(Cause),
    /// The image is larger than the whole cache may be.
    TooLarge {
        /// Bytes of the image.
        size: u64,
        /// Bytes the cache may hold.
        limit: u64,
    },
    /// The cache was opened for reading only.
    ReadOnly,
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(cause) => write!(f, "cannot open the cache: {cause}"),
            Self::Untrusted { path, what, owner, mode } => {
                write!(f, "the cache is refused: {path} {what} (owner {owner}, mode {mode:04o})")
            }
            Self::Read(cause) => write!(f, "cannot read the cache: {cause}"),
            Self::Write(cause) => write!(f, "cannot write the cache: {cause}"),
            Self::TooLarge { size, limit } => {
                write!(f, "{size} bytes are more than the cache may hold, {limit}")
            }
            Self::ReadOnly => write!(f, "the cache is open for reading only"),
        }
    }
}

impl StdError for CacheError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Open(cause) | Self::Read(cause) | Self::Write(cause) => Some(cause),
            _ => None,
        }
    }
}
