//! What can be wrong with a container.

use crate::CompressionMethod;
use core::fmt;

/// Why bytes could not be read as a container of device code, and where.
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
    /// `what` takes `size` bytes, and `left` are left of what holds it.
    Outside {
        /// What was looked for.
        what: &'static str,
        /// The bytes it takes, as far as they are known.
        size: u64,
        /// The bytes that are there.
        left: u64,
    },
    /// The bytes are not `what`: they start with `found`.
    Magic {
        /// What was looked for.
        what: &'static str,
        /// The first four bytes, little-endian.
        found: u32,
    },
    /// A field has a value that has no meaning, or that contradicts another field.
    Invalid {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A size is larger than the caller allows.
    TooLarge {
        /// The size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// More unpacked bytes are claimed than the compressed ones can hold.
    Bomb {
        /// The method of compression.
        method: CompressionMethod,
        /// The unpacked size that is claimed.
        claimed: u64,
        /// The most that so many compressed bytes can unpack to.
        most: u64,
    },
    /// The payload is obfuscated with a key, by a scheme that is not public.
    Obfuscated {
        /// The key.
        key: u64,
    },
    /// This build has no decoder (or no encoder) for the method.
    NoCodec(CompressionMethod),
    /// There is no memory for the decoder (or the encoder).
    NoMemory(CompressionMethod),
    /// The compressed bytes are damaged.
    Damaged(CompressionMethod),
    /// The bytes unpack to another size than the header says.
    UnpackedSize {
        /// The size they unpack to.
        found: u64,
        /// The size in the header.
        expected: u64,
    },
    /// The buffer has another size than what goes there.
    Buffer {
        /// Size of the buffer in bytes.
        size: u64,
        /// The size it must have.
        needed: u64,
    },
    /// The members of a thin archive are files of their own.
    ThinArchive,
    /// The host file, or a part of it, is not valid ELF, or not a valid archive.
    Elf(elf_core::ErrorKind),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.kind {
            ErrorKind::Outside { what, size, left } => {
                write!(f, "{what} of {size:#x} bytes at offset {at:#x}, where {left:#x} are left")
            }
            ErrorKind::Magic { what, found } => {
                write!(f, "no {what} at offset {at:#x}: it starts with {found:#010x}")
            }
            ErrorKind::Invalid { what, value } => {
                write!(f, "{what} is {value:#x} at offset {at:#x}")
            }
            ErrorKind::TooLarge { size, limit } => {
                write!(
                    f,
                    "{size} bytes to unpack at offset {at:#x}, more than the limit of {limit}"
                )
            }
            ErrorKind::Bomb { method, claimed, most } => {
                write!(
                    f,
                    "{claimed} bytes claimed at offset {at:#x}, where {method} can hold {most} at most"
                )
            }
            ErrorKind::Obfuscated { key } => {
                write!(f, "the payload at offset {at:#x} is obfuscated with key {key:#010x}")
            }
            ErrorKind::NoCodec(method) => {
                write!(f, "the payload at offset {at:#x} is {method}, which this build leaves out")
            }
            ErrorKind::NoMemory(method) => {
                write!(f, "no memory for {method} of the payload at offset {at:#x}")
            }
            ErrorKind::Damaged(method) => write!(f, "damaged {method} payload at offset {at:#x}"),
            ErrorKind::UnpackedSize { found, expected } => {
                write!(f, "the payload at offset {at:#x} unpacks to {found} bytes, not {expected}")
            }
            ErrorKind::Buffer { size, needed } => {
                write!(f, "a buffer of {size} bytes for {needed} bytes of offset {at:#x}")
            }
            ErrorKind::ThinArchive => {
                f.write_str("a thin archive: its members are files of their own")
            }
            ErrorKind::Elf(kind) => elf_core::Error { at, kind }.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<elf_core::Error> for Error {
    fn from(error: elf_core::Error) -> Self {
        Self { at: error.at, kind: ErrorKind::Elf(error.kind) }
    }
}
