//! Why a relocation was not applied.

use super::check::Check;
use super::value::Role;
use crate::views::record::Record;
use core::fmt;

/// Why a relocation was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// `r_offset`: bytes from the start of the section.
    pub offset: u64,
    /// `r_type`.
    pub r#type: u32,
    /// Name of the type, if there is such a type.
    pub name: Option<&'static str>,
    /// Index of the symbol.
    pub symbol: u32,
    /// What went wrong.
    pub kind: ApplyErrorKind,
}

impl ApplyError {
    /// What went wrong with `record`, whose type has this name.
    #[must_use]
    pub const fn new(record: &Record, name: Option<&'static str>, kind: ApplyErrorKind) -> Self {
        Self { offset: record.offset, r#type: record.r#type, name, symbol: record.symbol, kind }
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
// whole words are copied in fewer instructions where words are small
#[cfg_attr(not(target_pointer_width = "64"), repr(u32))]
pub enum ApplyErrorKind {
    /// The architecture has no type of this number.
    UnknownType,
    /// The type is one that only a dynamic loader resolves.
    Dynamic,
    /// The type is known, and not supported.
    Unsupported,
    /// The place is not inside the section of so many bytes.
    OutsideSection {
        /// Size of the section.
        size: u64,
    },
    /// Nobody knows this of the symbol.
    Unresolved(Role),
    /// The value is outside the type's limits.
    Overflow {
        /// The value, modulo 2^64.
        value: u64,
        /// The limits.
        check: Check,
    },
    /// The instructions are not those that the ABI wants at such a place, and so were not rewritten.
    Sequence,
    /// The relocation that this one belongs with is not there, or not the only one.
    Unpaired,
    /// No encoding of the instruction means the value.
    Unencodable {
        /// The value, modulo 2^64.
        value: u64,
    },
    /// The value is no multiple of the alignment that the instruction needs.
    Misaligned {
        /// The value, modulo 2^64.
        value: u64,
        /// The alignment in bytes.
        alignment: u64,
    },
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{name}")?,
            None => write!(f, "relocation type {}", self.r#type)?,
        }
        write!(f, " at offset {:#x}: ", self.offset)?;
        match self.kind {
            ApplyErrorKind::UnknownType => write!(f, "unknown type"),
            ApplyErrorKind::Dynamic => write!(f, "only a dynamic loader resolves this type"),
            ApplyErrorKind::Unsupported => write!(f, "this type is not supported"),
            ApplyErrorKind::OutsideSection { size } => {
                write!(f, "outside the section of {size:#x} bytes")
            }
            ApplyErrorKind::Unresolved(role) => write!(f, "no {role} for symbol {}", self.symbol),
            ApplyErrorKind::Overflow { value, check } => {
                // every limit is one of these, and they take less code to show than 128 bits
                let (least, most) = check.limits();
                let (least, most) = (least as i64, most as u64);
                let value = value.cast_signed();
                write!(f, "value {} ({value:#x}) is not in {least}..={most}", Shown(value, check))
            }
            ApplyErrorKind::Sequence => {
                write!(f, "the instructions are not those that the ABI has for it")
            }
            ApplyErrorKind::Unpaired => {
                write!(f, "there is no single relocation that it belongs with")
            }
            ApplyErrorKind::Unencodable { value } => {
                write!(f, "no encoding of the instruction means {value:#x}")
            }
            ApplyErrorKind::Misaligned { value, alignment } => {
                write!(f, "value {value:#x} is no multiple of {alignment}")
            }
        }
    }
}

/// A value as its check sees it: negative only where negative values are allowed.
struct Shown(i64, Check);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Check::Unsigned(_) => fmt::Display::fmt(&self.0.cast_unsigned(), f),
            _ => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl core::error::Error for ApplyError {}
