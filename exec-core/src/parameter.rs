//! What a function takes in one place, and what fits there.

use core::fmt;

use crate::value::Type;

/// What a function takes in one place, or is given there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// A buffer of at least so many bytes.
    Buffer(u64),
    /// A value of this type.
    Value(Type),
    /// A value of so many bytes, of whatever type: what a GPU's image says.
    Bytes(u32),
}

impl Parameter {
    /// Whether what is given fits.
    pub(crate) fn takes(self, given: Self) -> bool {
        match (self, given) {
            (Self::Buffer(least), Self::Buffer(size)) => size >= least,
            (Self::Value(expected), Self::Value(found)) => expected == found,
            (Self::Bytes(size), Self::Value(found)) => size as usize == found.size(),
            // a device address
            (Self::Bytes(size), Self::Buffer(_)) => size == 8,
            _ => false,
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(size) => write!(f, "a buffer of {size} bytes"),
            Self::Value(r#type) => write!(f, "a value of type {type}"),
            Self::Bytes(size) => write!(f, "a value of {size} bytes"),
        }
    }
}
