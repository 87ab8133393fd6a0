//! What can go wrong on the way to a GPU without CUDA.

use core::fmt;
use core::time::Duration;

use super::call::Call;
use super::mmu_fault::MmuFault;
use super::notifier::ChannelError;
use super::qmd::Field;
use super::status::{OK, Status};

/// What went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A file of the kernel driver could not be opened: no driver, no GPU, no permission.
    Open {
        /// Which.
        path: String,
        /// What the system said (`errno`).
        errno: i32,
    },
    /// An ioctl failed before the driver's resource manager saw it.
    Ioctl {
        /// What was asked for.
        call: &'static str,
        /// What the system said (`errno`).
        errno: i32,
    },
    /// The resource manager, or UVM, refused.
    Refused {
        /// What was asked for.
        call: &'static str,
        /// Its class, control command or object, as far as there is one.
        number: u32,
        /// Why.
        status: Status,
    },
    /// Memory could not be mapped.
    Map {
        /// Bytes.
        size: u64,
        /// What the system said (`errno`).
        errno: i32,
    },
    /// The driver's version is none whose structures are known.
    Version {
        /// As the driver writes it.
        found: String,
    },
    /// There is no GPU of this number.
    NoDevice {
        /// Which was asked for, from 0.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU offers none of the classes that this crate can use.
    NoClass {
        /// For what: channel, compute, copy, usermode.
        purpose: &'static str,
    },
    /// Every copy engine of the GPU is one of graphics and compute.
    NoCopyEngine,
    /// There are not so many free addresses in a row.
    NoAddresses {
        /// Bytes asked for.
        size: u64,
    },
    /// This process does not see the memory, or not so far.
    NotSeen,
    /// A queue of one device, and a program or queue of another.
    OtherDevice,
    /// The GPU stopped a channel.
    Stopped {
        /// Why.
        error: ChannelError,
        /// More about it: the engine.
        info: u16,
        /// The access that failed, if it was one and the driver tells.
        fault: Option<MmuFault>,
    },
    /// A channel did not come to a point in time.
    TimeOut {
        /// How long was waited.
        limit: Duration,
        /// The point.
        wanted: u64,
        /// How far it has come.
        reached: u64,
    },
    /// The kernel cannot be launched without the CUDA driver.
    Kernel {
        /// Its name.
        name: String,
        /// What it takes.
        what: &'static str,
    },
    /// A number of an architecture that is not known here.
    UnknownSm {
        /// 90 for sm_90.
        sm: u32,
    },
    /// More shared memory than an SM has.
    SharedMemory {
        /// The SM.
        sm: u32,
        /// Bytes that a block asks for.
        bytes: u32,
        /// Bytes that there are.
        limit: u32,
    },
    /// More local memory than a thread's window has.
    LocalMemory {
        /// Bytes that a thread asks for.
        bytes: u32,
    },
    /// The version of the launch block has no such field.
    NoField {
        /// Which.
        field: Field,
        /// Which of several.
        index: u32,
        /// The version.
        version: u64,
    },
    /// A value is too large for its bits.
    DoesNotFit {
        /// Which field.
        field: Field,
        /// The value.
        value: u64,
        /// How many bits there are.
        bits: u32,
    },
    /// Low bits that a field does not store are not zero.
    Misaligned {
        /// Which field.
        field: Field,
        /// The value.
        value: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// An address that the hardware cannot be told.
    Address {
        /// Of what.
        what: &'static str,
        /// The address.
        address: u64,
        /// It must be below this.
        limit: u64,
        /// It must be a multiple of this.
        alignment: u64,
    },
    /// More than a ring entry or method header can count.
    TooLong {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
}

impl Status {
    /// Success, or an error that says what was asked for.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub const fn check(self, call: &'static str, number: u32) -> Result<(), Error> {
        match self {
            OK => Ok(()),
            status => Err(Error::Refused { call, number, status }),
        }
    }

    /// The same of a call that has its number only.
    pub(super) const fn of(self, call: Call) -> Result<(), Error> {
        self.check(call.name, call.number)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, errno } => write!(f, "{path} cannot be opened: errno {errno}"),
            Self::Ioctl { call, errno } => write!(f, "{call}: the kernel answers errno {errno}"),
            Self::Refused { call, number, status } => {
                write!(f, "{call} {number:#x}: the driver answers {status}")
            }
            Self::Map { size, errno } => write!(f, "{size} bytes cannot be mapped: errno {errno}"),
            Self::Version { found } => {
                write!(f, "driver {found}: its structures are not known (known: 570 to 595)")
            }
            Self::NoDevice { index, count } => write!(f, "no GPU {index}: there are {count}"),
            Self::NoClass { purpose } => write!(f, "the GPU offers no {purpose} class known here"),
            Self::NoCopyEngine => f.write_str("no copy engine is free of graphics and compute"),
            Self::NoAddresses { size } => write!(f, "no room for {size} bytes of addresses"),
            Self::NotSeen => f.write_str("memory that this process does not see"),
            Self::OtherDevice => f.write_str("the queue is of another device"),
            Self::Stopped { error, info, fault } => {
                write!(f, "the GPU stopped a channel: {error}, {info:#x}")?;
                fault.map_or(Ok(()), |fault| write!(f, ": {fault}"))
            }
            Self::TimeOut { limit, wanted, reached } => write!(
                f,
                "a channel is at point {reached} and not at {wanted} after {} ms",
                limit.as_millis()
            ),
            Self::Kernel { name, what } => {
                write!(f, "{name} takes {what}, which the CUDA driver has")
            }
            Self::UnknownSm { sm } => write!(f, "sm_{sm} is not known"),
            Self::SharedMemory { sm, bytes, limit } => {
                write!(f, "a block of {bytes} bytes of shared memory: sm_{sm} has {limit}")
            }
            Self::LocalMemory { bytes } => {
                write!(f, "{bytes} bytes of local memory: a thread has less than 2^24")
            }
            Self::NoField { field, index, version } => {
                write!(f, "QMD version {version} has no field {field:?}[{index}]")
            }
            Self::DoesNotFit { field, value, bits } => {
                write!(f, "{field:?} takes {bits} bits, and {value} does not fit")
            }
            Self::Misaligned { field, value, alignment } => {
                write!(f, "{field:?} is stored in units of {alignment}, and {value:#x} is none")
            }
            Self::Address { what, address, limit, alignment } => write!(
                f,
                "{what} at {address:#x}: must be a multiple of {alignment} below {limit:#x}"
            ),
            Self::TooLong { what, count, limit } => write!(f, "{count} {what}: at most {limit}"),
        }
    }
}

impl core::error::Error for Error {}
