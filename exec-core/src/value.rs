//! Numbers and pointers as the C calling convention has them, and as a GPU's parameters are.

use core::ffi::c_void;
use core::fmt;

/// An argument or result of the C calling convention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `int8_t`.
    I8(i8),
    /// `int16_t`.
    I16(i16),
    /// `int32_t`.
    I32(i32),
    /// `int64_t`.
    I64(i64),
    /// `uint8_t`.
    U8(u8),
    /// `uint16_t`.
    U16(u16),
    /// `uint32_t`.
    U32(u32),
    /// `uint64_t`.
    U64(u64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
    /// A pointer.
    Pointer(*mut c_void),
}

/// The type of a [`Scalar`], or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No result.
    Void,
    /// `int8_t`.
    I8,
    /// `int16_t`.
    I16,
    /// `int32_t`.
    I32,
    /// `int64_t`.
    I64,
    /// `uint8_t`.
    U8,
    /// `uint16_t`.
    U16,
    /// `uint32_t`.
    U32,
    /// `uint64_t`.
    U64,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// A pointer.
    Pointer,
}

/// Runs `$do!` with every number type: variant, Rust type.
macro_rules! each_type {
    ($do:ident) => {
        $do! {
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64
        }
    };
}

impl Scalar {
    /// The value's type.
    #[must_use]
    pub const fn r#type(&self) -> Type {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(_) => Type::$variant,)*
                    Self::Pointer(_) => Type::Pointer,
                }
            };
        }
        each_type!(arms)
    }

    /// The value's bytes in this machine's order, the first [`Type::size`] of eight; zeros behind them.
    #[must_use]
    pub fn bytes(&self) -> [u8; 8] {
        fn padded<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
            core::array::from_fn(|index| bytes.get(index).copied().unwrap_or(0))
        }
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(value) => padded(value.to_ne_bytes()),)*
                    Self::Pointer(value) => padded(value.expose_provenance().to_ne_bytes()),
                }
            };
        }
        each_type!(arms)
    }
}

impl Type {
    /// Size in bytes; 0 of `Void`.
    #[must_use]
    pub const fn size(self) -> usize {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    Self::Void => 0,
                    $(Self::$variant => size_of::<$type>(),)*
                    Self::Pointer => size_of::<usize>(),
                }
            };
        }
        each_type!(arms)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! arms {
            ($($variant:ident $type:ident),*) => {
                match self {
                    $(Self::$variant(value) => value.fmt(f),)*
                    // not where the scalar is that holds it
                    Self::Pointer(value) => write!(f, "{:p}", *value),
                }
            };
        }
        each_type!(arms)
    }
}

impl fmt::Display for Type {
    /// As C has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Void => "void",
            Self::I8 => "int8_t",
            Self::I16 => "int16_t",
            Self::I32 => "int32_t",
            Self::I64 => "int64_t",
            Self::U8 => "uint8_t",
            Self::U16 => "uint16_t",
            Self::U32 => "uint32_t",
            Self::U64 => "uint64_t",
            Self::F32 => "float",
            Self::F64 => "double",
            Self::Pointer => "void *",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_value_and_zeros() {
        assert_eq!(Scalar::I16(-2).bytes()[..2], (-2i16).to_ne_bytes());
        assert_eq!(Scalar::I16(-2).bytes()[2..], [0; 6]);
        assert_eq!(Scalar::F64(0.5).bytes(), 0.5f64.to_ne_bytes());
        assert_eq!(Scalar::F32(1.0).r#type().size(), 4);
        assert_eq!(Type::Void.size(), 0);
    }
}
