//! Values written as `hoist run` takes them, `TYPE:VALUE`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// `i8` to `i64`, `u8` to `u64`, `f32`, `f64`.
    name: &'static str,
    /// The same in C.
    pub(crate) c: &'static str,
    /// Bytes.
    pub(crate) size: usize,
}

#[rustfmt::skip]
const SCALARS: &[Scalar] = &[
    Scalar { name: "i8",  c: "signed char",        size: 1 },
    Scalar { name: "u8",  c: "unsigned char",      size: 1 },
    Scalar { name: "i16", c: "short",              size: 2 },
    Scalar { name: "u16", c: "unsigned short",     size: 2 },
    Scalar { name: "i32", c: "int",                size: 4 },
    Scalar { name: "u32", c: "unsigned",           size: 4 },
    Scalar { name: "i64", c: "long long",          size: 8 },
    Scalar { name: "u64", c: "unsigned long long", size: 8 },
    Scalar { name: "f32", c: "float",              size: 4 },
    Scalar { name: "f64", c: "double",             size: 8 },
];

impl Scalar {
    /// The type called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn named(name: &str) -> Result<Self> {
        SCALARS
            .iter()
            .find(|scalar| scalar.name == name)
            .copied()
            .with_context(|| format!("no type {name}"))
    }

    /// The little-endian bytes of `text` in this type.
    ///
    /// # Errors
    /// If `text` is no value of it.
    pub(crate) fn bytes(self, text: &str) -> Result<Vec<u8>> {
        let bytes = match self.name {
            "f32" => text.parse::<f32>()?.to_le_bytes().to_vec(),
            "f64" => text.parse::<f64>()?.to_le_bytes().to_vec(),
            _ => {
                let value: i128 = text.parse()?;
                let bits = u32::try_from(8 * self.size)?;
                let (low, high) = if self.name.starts_with('i') {
                    (-(1 << (bits - 1)), 1 << (bits - 1))
                } else {
                    (0, 1 << bits)
                };
                if !(low..high).contains(&value) {
                    bail!("{text} is no {}", self.name);
                }
                value.to_le_bytes().get(..self.size).unwrap_or_default().to_vec()
            }
        };
        Ok(bytes)
    }

    /// A C expression of this type with exactly these little-endian bytes.
    fn literal(self, bytes: &[u8]) -> String {
        let bits = bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        match self.name {
            "f32" => format!("((union {{ unsigned u; float f; }}){{{bits:#x}u}}).f"),
            "f64" => format!("((union {{ unsigned long long u; double f; }}){{{bits:#x}ull}}).f"),
            _ => format!("({}){bits:#x}ull", self.c),
        }
    }
}

/// An argument of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// A number and its bytes.
    Scalar(Scalar, Vec<u8>),
    /// A pointer to NUL-terminated text.
    Text(String),
    /// A pointer to elements.
    Buffer(Scalar, Vec<u8>),
}

impl Argument {
    /// Reads `TYPE:VALUE`, `str:TEXT`, `buf:TYPE:V,V,...` or `zeros:TYPE:COUNT`.
    ///
    /// # Errors
    /// If `word` is none of them.
    pub(crate) fn parse(word: &str) -> Result<Self> {
        let split = |text: &str| text.split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let (kind, rest) = split(word).with_context(|| format!("{word}: no type"))?;
        let of_type = || {
            let (name, rest) = split(&rest).with_context(|| format!("{word}: no element type"))?;
            Ok::<_, anyhow::Error>((Scalar::named(&name)?, rest))
        };
        Ok(match kind.as_str() {
            "str" => Self::Text(rest),
            "buf" => {
                let (scalar, values) = of_type()?;
                let values: Result<Vec<Vec<u8>>> =
                    values.split(',').map(|value| scalar.bytes(value)).collect();
                Self::Buffer(scalar, values?.concat())
            }
            "zeros" => {
                let (scalar, count) = of_type()?;
                Self::Buffer(scalar, vec![0; scalar.size * count.parse::<usize>()?])
            }
            name => {
                let scalar = Scalar::named(name)?;
                Self::Scalar(scalar, scalar.bytes(&rest)?)
            }
        })
    }

    /// The C type of the parameter.
    pub(crate) fn parameter(&self) -> String {
        match self {
            Self::Scalar(scalar, _) => scalar.c.to_owned(),
            Self::Text(_) => "const char *".to_owned(),
            Self::Buffer(scalar, _) => format!("{} *", scalar.c),
        }
    }

    /// The argument in C; a buffer is `name`.
    pub(crate) fn expression(&self, name: &str) -> String {
        match self {
            Self::Scalar(scalar, bytes) => scalar.literal(bytes),
            Self::Text(text) => string(text),
            Self::Buffer(scalar, _) => format!("({} *){name}", scalar.c),
        }
    }
}

/// `text` as a string literal of C.
pub(crate) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b" .,:_-".contains(&byte) {
            literal.push(char::from(byte));
        } else {
            let _ = write!(literal, "\\{byte:03o}");
        }
    }
    literal.push('"');
    literal
}

/// Bytes in hexadecimal, in the order of memory.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_their_bytes_and_their_limits() {
        assert_eq!(Scalar::named("i8").unwrap().bytes("-1").unwrap(), [0xff]);
        assert_eq!(Scalar::named("u16").unwrap().bytes("258").unwrap(), [2, 1]);
        assert_eq!(Scalar::named("u64").unwrap().bytes("18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(
            Scalar::named("f32").unwrap().bytes("12345999").unwrap(),
            12_345_999_f32.to_le_bytes()
        );
        for (name, text) in [
            ("i8", "128"),
            ("u8", "-1"),
            ("u8", "256"),
            ("i64", "9223372036854775808"),
            ("f32", "x"),
        ] {
            assert!(Scalar::named(name).unwrap().bytes(text).is_err(), "{name}:{text}");
        }
        assert!(Scalar::named("i24").is_err());
    }

    #[test]
    fn arguments() {
        let i32 = Scalar::named("i32").unwrap();
        assert_eq!(Argument::parse("i32:5").unwrap(), Argument::Scalar(i32, vec![5, 0, 0, 0]));
        assert_eq!(Argument::parse("str:a:b").unwrap(), Argument::Text("a:b".into()));
        assert_eq!(
            Argument::parse("buf:i32:1,2").unwrap(),
            Argument::Buffer(i32, vec![1, 0, 0, 0, 2, 0, 0, 0])
        );
        assert_eq!(Argument::parse("zeros:i32:2").unwrap(), Argument::Buffer(i32, vec![0; 8]));
        for bad in ["i32", "i32:", "buf:i32", "zeros:f32:-1", "thing:1"] {
            assert!(Argument::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn text_in_c() {
        assert_eq!(string("a\"b\n"), r#""a\042b\012""#);
    }
}
