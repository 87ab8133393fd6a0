//! What the own loader cannot load.

use core::fmt;

use reloc_cuda::LoadError;

/// Why a cubin or kernel cannot be loaded by the own loader. The driver's may.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnError {
    /// The image cannot be laid out or relocated.
    Load(LoadError),
    /// Code for this architecture has other instructions than those that go on elsewhere.
    Architecture {
        /// Its number.
        sm: u32,
    },
    /// The file is one of 32 bits.
    Not64,
    /// Code or data has the address of something that only the driver's loader knows. In constant banks it may be.
    Undefined {
        /// The symbol's name.
        symbol: String,
        /// The section that asks.
        section: String,
    },
    /// The variable moves between host and device, which takes the driver's loader.
    Managed {
        /// The variable's name.
        symbol: String,
    },
    /// The kernel has textures, samplers or surfaces that the driver numbers.
    Textures {
        /// The kernel's name.
        kernel: String,
    },
    /// The file is only PTX for this device: there is nothing to lay out.
    Ptx,
    /// A part of the file is not where it should be.
    Damaged {
        /// What.
        what: &'static str,
    },
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Architecture { sm } => {
                write!(
                    f,
                    "code for sm_{sm}, where the own loader begins with sm_{}",
                    super::FIRST_SM
                )
            }
            Self::Not64 => f.write_str("a cubin of 32 bits"),
            Self::Undefined { symbol, section } => {
                write!(f, "{section} has the address of {symbol}, which the driver's loader knows")
            }
            Self::Managed { symbol } => {
                write!(f, "{symbol} is managed memory, which takes the driver's loader")
            }
            Self::Textures { kernel } => {
                write!(f, "{kernel} has textures or surfaces, which take the driver's loader")
            }
            Self::Ptx => f.write_str("PTX, which takes the driver's loader"),
            Self::Damaged { what } => write!(f, "damaged: {what}"),
        }
    }
}

impl core::error::Error for OwnError {}
