//! What is wrong with a tensor map.

use core::fmt;

use fatbin::CudaVersion;

/// What is wrong with a tensor map. The driver was not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorMapError {
    /// The device has no such copies.
    Device {
        /// What it has not.
        what: &'static str,
        /// Number of its architecture.
        sm: u32,
        /// Number of the first architecture that has it.
        needed: u32,
    },
    /// The driver does not know that yet.
    Driver {
        /// What.
        what: &'static str,
        /// The version of CUDA that it has.
        found: CudaVersion,
        /// The version that is needed.
        needed: CudaVersion,
    },
    /// There are too few or too many dimensions.
    Rank {
        /// Dimensions.
        found: usize,
        /// The least; 5 are the most.
        least: usize,
    },
    /// There are not as many numbers as dimensions ask for.
    Count {
        /// `strides`, `steps`, `sizes of the box`, `numbers of the corner`.
        what: &'static str,
        /// Numbers.
        found: usize,
        /// What there must be.
        expected: usize,
    },
    /// Something is no multiple of what it must be one of.
    Multiple {
        /// What.
        what: &'static str,
        /// The dimension, from 0, if it is of one.
        dimension: Option<usize>,
        /// Its value.
        found: u64,
        /// What it must be a multiple of.
        of: u64,
    },
    /// Something is too small or too large.
    Range {
        /// What.
        what: &'static str,
        /// The dimension, from 0, if it is of one.
        dimension: Option<usize>,
        /// Its value.
        found: i64,
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A row of the box is longer than what is swizzled.
    Swizzle {
        /// Bytes of a row.
        found: u64,
        /// Bytes that are swizzled.
        span: u64,
    },
    /// Two things do not go together.
    Together {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// The tensor ends behind the memory.
    Outside {
        /// Bytes of the tensor.
        extent: u64,
        /// Bytes of the memory.
        available: u64,
    },
}

/// ` of dimension 2`.
struct At(Option<usize>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |dimension| write!(f, " of dimension {dimension}"))
    }
}

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Device { what, sm, needed } => {
                write!(f, "{what} from sm_{needed} on, and the device is sm_{sm}")
            }
            Self::Driver { what, found, needed } => {
                write!(f, "{what} from CUDA {needed} on, and the driver has {found}")
            }
            Self::Rank { found, least } => {
                write!(f, "{found} dimensions, where {least} to 5 can be")
            }
            Self::Count { what, found, expected } => {
                write!(f, "{found} {what}, expected {expected}")
            }
            Self::Multiple { what, dimension, found, of } => {
                write!(f, "{what}{} is {found}, no multiple of {of}", At(dimension))
            }
            Self::Range { what, dimension, found, least, most } => {
                write!(f, "{what}{} is {found}, where {least} to {most} can be", At(dimension))
            }
            Self::Swizzle { found, span } => {
                write!(f, "a row of the box has {found} bytes, where {span} are swizzled")
            }
            Self::Together { one, other } => write!(f, "{one} does not go with {other}"),
            Self::Outside { extent, available } => {
                write!(f, "the tensor has {extent} bytes, and the memory {available}")
            }
        }
    }
}

impl core::error::Error for TensorMapError {}
