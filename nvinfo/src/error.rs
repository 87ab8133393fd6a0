//! What can be wrong with a cubin, or with a change to one.

use core::fmt;

/// Why bytes could not be read as a cubin, or could not be changed, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// File offset of the bytes at fault.
    pub at: u64,
    /// What is wrong with them.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is no ELF file, or a damaged one.
    Elf(elf_core::ErrorKind),
    /// The file is for another machine than CUDA (`EM_CUDA`, 190).
    NotCuda {
        /// `e_machine`.
        machine: u16,
    },
    /// The file is big-endian, which no cubin is.
    BigEndian,
    /// A record does not fit the bytes that are left of its section.
    Truncated {
        /// What the record is.
        what: &'static str,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The format byte of an attribute is none of the four that are known.
    UnknownFormat(u8),
    /// A value does not fit the place that would take it.
    TooLarge {
        /// What was to be set.
        what: &'static str,
        /// The value.
        value: u64,
        /// The largest value that fits.
        limit: u64,
    },
    /// The cubin has no place that holds this.
    NoPlace {
        /// What was to be set.
        what: &'static str,
    },
    /// The file does not hold what it held when the change was planned.
    Changed {
        /// What was expected there.
        expected: u32,
        /// What is there.
        found: u32,
    },
    /// The place of a change is not inside the file.
    Outside {
        /// Size of the file in bytes.
        file: u64,
    },
    /// The storage lent for the work is too small.
    Storage {
        /// What is stored.
        what: &'static str,
        /// How many there is room for.
        room: u64,
    },
}

impl Error {
    pub(crate) const fn new(at: u64, kind: ErrorKind) -> Self {
        Self { at, kind }
    }
}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self { at: error.at, kind: ErrorKind::Elf(error.kind) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.kind {
            ErrorKind::Elf(kind) => elf_core::Error { at, kind }.fmt(f),
            ErrorKind::NotCuda { machine } => write!(f, "machine {machine} is not CUDA (190)"),
            ErrorKind::BigEndian => write!(f, "a big-endian file is no cubin"),
            ErrorKind::Truncated { what, needed, left } => {
                write!(
                    f,
                    "{what} at offset {at:#x} needs {needed} bytes, its section has {left} left"
                )
            }
            ErrorKind::UnknownFormat(format) => {
                write!(f, "unknown attribute format {format} at offset {at:#x}")
            }
            ErrorKind::TooLarge { what, value, limit } => {
                write!(f, "{what} {value} does not fit offset {at:#x}: at most {limit}")
            }
            ErrorKind::NoPlace { what } => write!(f, "the cubin has no place for {what}"),
            ErrorKind::Changed { expected, found } => {
                write!(f, "offset {at:#x} holds {found:#x}, not {expected:#x} as expected")
            }
            ErrorKind::Outside { file } => {
                write!(f, "offset {at:#x} is outside the file of {file:#x} bytes")
            }
            ErrorKind::Storage { what, room } => {
                write!(f, "more {what} than the {room} there is room for")
            }
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn messages() {
        let not_elf = ErrorKind::Elf(elf_core::ErrorKind::NotElf);
        let truncated = ErrorKind::Truncated { what: "attribute", needed: 12, left: 8 };
        let too_large = ErrorKind::TooLarge { what: "the register count", value: 300, limit: 255 };
        let messages = [
            (not_elf, "not an ELF file"),
            (ErrorKind::NotCuda { machine: 62 }, "machine 62 is not CUDA (190)"),
            (ErrorKind::BigEndian, "a big-endian file is no cubin"),
            (truncated, "attribute at offset 0x10 needs 12 bytes, its section has 8 left"),
            (ErrorKind::UnknownFormat(9), "unknown attribute format 9 at offset 0x10"),
            (too_large, "the register count 300 does not fit offset 0x10: at most 255"),
            (
                ErrorKind::NoPlace { what: "EIATTR_REGCOUNT" },
                "the cubin has no place for EIATTR_REGCOUNT",
            ),
            (
                ErrorKind::Changed { expected: 1, found: 0xff },
                "offset 0x10 holds 0xff, not 0x1 as expected",
            ),
            (ErrorKind::Outside { file: 8 }, "offset 0x10 is outside the file of 0x8 bytes"),
            (
                ErrorKind::Storage { what: "calls", room: 3 },
                "more calls than the 3 there is room for",
            ),
        ];
        for (kind, message) in messages {
            assert_eq!(Error::new(0x10, kind).to_string(), message);
        }
    }
}
