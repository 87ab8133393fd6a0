//! Why an unwinder could not take a table.

use core::fmt;

/// What is wrong with a table, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset in the section of the bytes at fault.
    pub at: u64,
    /// What is wrong with them.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The table, its entry or a part of it ends before `what` does, or the number has more than 64 bits.
    Outside {
        /// What was to be read.
        what: &'static str,
    },
    /// An entry is said to have so many bytes, which hold no entry or are not there.
    Length {
        /// The length.
        length: u32,
        /// Bytes behind it.
        left: u64,
    },
    /// The length is one of 64 bits, or reserved: no unwinder reads such entries out of memory.
    LongLength {
        /// Its first word.
        length: u32,
    },
    /// No CIE is so many bytes before this word.
    NoCie {
        /// Bytes.
        distance: i32,
    },
    /// CIEs are used in such an order that reading them takes more than a multiple of the table's size.
    TooManyCies,
    /// A CIE of a version that unwinders do not know.
    Version(u8),
    /// The augmentation has a letter that the unwinder does not know, twice, or in a place where it would misread what follows.
    Augmentation {
        /// The letter.
        letter: u8,
    },
    /// Addresses or segment selectors are not of the machine's size.
    AddressSize {
        /// Size of an address in bytes.
        address: u8,
        /// Size of a segment selector in bytes.
        segment: u8,
    },
    /// A pointer's encoding is unknown, or not possible where it is used.
    Encoding {
        /// The pointer.
        what: &'static str,
        /// The encoding.
        encoding: u8,
    },
    /// An entry speaks of code that is not of this load.
    Code {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A pointer leads to where no such thing can be.
    Pointer {
        /// The pointer.
        what: &'static str,
        /// The address.
        address: u64,
    },
    /// The machine has no such register, or its unwinder has no room for it.
    Register {
        /// Its number.
        register: u64,
        /// The first number that is too high.
        limit: u64,
    },
    /// An unknown instruction or operation.
    Opcode {
        /// Which of the two.
        what: &'static str,
        /// Its number.
        opcode: u8,
    },
    /// More than so many states are remembered at a time.
    TooManyStates(u32),
    /// A state is restored that was not remembered.
    NoState,
    /// There is code for which nothing says where its frame is.
    NoFrame,
    /// An expression takes more from its stack than there is, or leaves nothing there, or has more than 64 values there.
    Stack {
        /// Values that were there.
        depth: u32,
    },
    /// A jump leads backwards, out of its expression, into an operation, or there with a stack unlike that of others.
    Jump {
        /// Bytes from the next operation.
        distance: i16,
    },
    /// A division may be one by 0.
    Division,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Outside { what } => write!(f, "{what} is cut short"),
            ErrorKind::Length { length, left } => {
                write!(f, "an entry of {length:#x} bytes where {left:#x} are left")
            }
            ErrorKind::LongLength { length } => {
                write!(
                    f,
                    "length {length:#x} stands for one of 64 bits, which unwinders do not read"
                )
            }
            ErrorKind::NoCie { distance } => write!(f, "no CIE is {distance:#x} bytes before"),
            ErrorKind::TooManyCies => write!(f, "too many CIEs take turns"),
            ErrorKind::Version(version) => write!(f, "a CIE of unknown version {version}"),
            ErrorKind::Augmentation { letter } => {
                let letter = core::ascii::escape_default(letter);
                write!(f, "augmentation letter '{letter}' is unknown here")
            }
            ErrorKind::AddressSize { address, segment } => {
                write!(f, "addresses of {address} bytes and segment selectors of {segment}")
            }
            ErrorKind::Encoding { what, encoding } => {
                write!(f, "encoding {encoding:#x} of the {what} is unknown here")
            }
            ErrorKind::Code { address, size } => {
                write!(f, "code at {address:#x}, {size:#x} bytes, is not of this load")
            }
            ErrorKind::Pointer { what, address } => write!(f, "no {what} is at {address:#x}"),
            ErrorKind::Register { register, limit } => {
                write!(f, "register {register} of {limit}")
            }
            ErrorKind::Opcode { what, opcode } => write!(f, "unknown {what} {opcode:#x}"),
            ErrorKind::TooManyStates(limit) => write!(f, "more than {limit} states remembered"),
            ErrorKind::NoState => write!(f, "restores a state that was not remembered"),
            ErrorKind::NoFrame => write!(f, "nothing says where the frame is"),
            ErrorKind::Stack { depth } => {
                write!(f, "an expression cannot go on with {depth} values on its stack")
            }
            ErrorKind::Jump { distance } => write!(f, "an expression jumps by {distance}"),
            ErrorKind::Division => write!(f, "an expression may divide by 0"),
        }?;
        write!(f, ", at offset {:#x}", self.at)
    }
}

impl core::error::Error for Error {}
