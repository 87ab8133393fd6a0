//! What can be wrong with a file.

use core::fmt;

use crate::foreign::Foreign;

/// Why bytes could not be read as ELF, and where.
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
// whole words are copied in fewer instructions where words are small
#[cfg_attr(not(target_pointer_width = "64"), repr(u32))]
pub enum ErrorKind {
    /// The file does not start with `7f 45 4c 46`.
    NotElf,
    /// The file is something else, or has no machine code.
    Foreign(Foreign),
    /// `e_ident[EI_CLASS]` is neither 32-bit nor 64-bit.
    UnknownClass(u8),
    /// `e_ident[EI_DATA]` is neither little- nor big-endian.
    UnknownByteOrder(u8),
    /// What the bytes hold is only read with this feature of the crate, which was off when the program was built.
    FeatureOff(&'static str),
    /// `count` of `what` do not fit a file of `file` bytes.
    Outside {
        /// What was looked for.
        what: &'static str,
        /// How many of them.
        count: u64,
        /// Size of the file, or of the table, in bytes.
        file: u64,
    },
    /// The entries of a table have a size that is not the one of the specification.
    EntrySize {
        /// The field that says so.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The size that the specification gives.
        expected: u64,
    },
    /// The size of a table is no multiple of its entries' size.
    UnevenTable {
        /// What the table holds.
        what: &'static str,
        /// Size of the table in bytes.
        size: u64,
        /// Size of an entry in bytes.
        entry: u64,
    },
    /// There is no section of this index.
    NoSection {
        /// The field that names it.
        what: &'static str,
        /// The index.
        index: u32,
        /// Number of sections in the file.
        count: u64,
    },
    /// There is no symbol of this index.
    NoSymbol {
        /// The index.
        index: u32,
        /// Number of symbols in the table.
        count: u64,
    },
    /// A section has another type than its use asks for.
    SectionType {
        /// What the section was to be used as.
        what: &'static str,
        /// Its `sh_type`.
        found: u32,
    },
    /// A string starts outside its table or does not end in it.
    NoString {
        /// Offset of the string in the table.
        offset: u32,
        /// Size of the table in bytes.
        table: u64,
    },
    /// No segment of the file is loaded where something is said to be.
    NoAddress {
        /// What was looked for.
        what: &'static str,
        /// Its address.
        address: u64,
    },
    /// The names of a table of symbols have more than `limit` bytes together.
    NamesTooLong {
        /// Bytes they may have.
        limit: u64,
    },
    /// Something is missing that the specification asks for beside what is there.
    Missing(&'static str),
    /// A value that the specification does not allow.
    Invalid {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.kind {
            ErrorKind::NotElf => write!(f, "not an ELF file"),
            ErrorKind::Foreign(foreign) => foreign.fmt(f),
            ErrorKind::UnknownClass(class) => {
                write!(f, "unknown ELF class {class} at offset {at:#x}")
            }
            ErrorKind::UnknownByteOrder(data) => {
                write!(f, "unknown byte order {data} at offset {at:#x}")
            }
            ErrorKind::FeatureOff(feature) => {
                write!(f, "built without what reads the bytes at offset {at:#x}: feature {feature}")
            }
            ErrorKind::Outside { what, count: 1, file } => {
                write!(f, "{what} at offset {at:#x} is outside its {file:#x} bytes")
            }
            ErrorKind::Outside { what, count, file } => {
                write!(f, "{count} {what} at offset {at:#x} are outside its {file:#x} bytes")
            }
            ErrorKind::EntrySize { what, found, expected } => {
                write!(f, "{what} is {found}, not {expected}, at offset {at:#x}")
            }
            ErrorKind::UnevenTable { what, size, entry } => {
                write!(
                    f,
                    "the size {size:#x} of the {what} at offset {at:#x} is no multiple of {entry}"
                )
            }
            ErrorKind::NoSection { what, index, count } => {
                write!(f, "{what} names section {index} of {count}, at offset {at:#x}")
            }
            ErrorKind::NoSymbol { index, count } => {
                write!(f, "no symbol {index} in a table of {count}, at offset {at:#x}")
            }
            ErrorKind::SectionType { what, found } => {
                write!(f, "a section of type {found:#x} at offset {at:#x} is no {what}")
            }
            ErrorKind::NoString { offset, table } => {
                write!(
                    f,
                    "no string at {offset:#x} in the string table of {table:#x} bytes at offset {at:#x}"
                )
            }
            ErrorKind::Missing(what) => write!(f, "{what} is missing, at offset {at:#x}"),
            ErrorKind::Invalid { what, value } => {
                write!(f, "{what} is {value:#x} at offset {at:#x}")
            }
            ErrorKind::NamesTooLong { limit } => {
                write!(
                    f,
                    "the names of the symbols at offset {at:#x} have more than {limit} bytes together"
                )
            }
            ErrorKind::NoAddress { what, address } => {
                write!(
                    f,
                    "{what} at address {address:#x} is in no segment of the file, at offset {at:#x}"
                )
            }
        }
    }
}

impl core::error::Error for Error {}
