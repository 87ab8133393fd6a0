//! The words in which a command line gives arguments: `i32:5`, `str:text`, `buf:f32:1,2,3`, `zeros:f32:1024`, `file:PATH`.

use core::fmt;
use core::str::FromStr;
use std::ffi::CString;

use anyhow::{Context as _, Result, anyhow, bail};
use exec_core::{Scalar, Type};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An argument together with the memory that it points to.
#[derive(Debug)]
pub enum Argument {
    /// A number.
    Number(Scalar),
    /// A pointer to bytes that end in NUL.
    Text(CString),
    /// A pointer to a buffer.
    Buffer(Buffer),
}

/// Numbers in memory, aligned to 64 bytes.
#[derive(Clone, Debug)]
pub struct Buffer {
    element: Element,
    blocks: Vec<Block>,
    /// Bytes in use.
    size: usize,
}

/// A cache line.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
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
}

/// Runs `$do!` with every number type: variant, Rust type, word.
macro_rules! each_element {
    ($do:ident) => {
        $do! {
            I8 i8 "i8", I16 i16 "i16", I32 i32 "i32", I64 i64 "i64", U8 u8 "u8", U16 u16 "u16", U32 u32 "u32", U64 u64 "u64",
            F32 f32 "f32", F64 f64 "f64"
        }
    };
}

impl Element {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self {
                    $(Self::$variant => $word,)*
                }
            };
        }
        each_element!(arms)
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self {
                    $(Self::$variant => size_of::<$type>(),)*
                }
            };
        }
        each_element!(arms)
    }

    /// The type of a number of this sort.
    #[must_use]
    pub const fn r#type(self) -> Type {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self {
                    $(Self::$variant => Type::$variant,)*
                }
            };
        }
        each_element!(arms)
    }

    /// Reads a number. Integers may be hexadecimal, with `0x` before them.
    fn number(self, text: &str) -> Result<Scalar> {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self {
                    $(Self::$variant => Scalar::$variant(<$type as Number>::read(text).ok_or_else(|| {
                        anyhow!("{text:?} is no {}", self.word())
                    })?),)*
                }
            };
        }
        Ok(each_element!(arms))
    }

    /// Appends a number's bytes.
    fn append(self, text: &str, bytes: &mut Vec<u8>) -> Result<()> {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self.number(text)? {
                    $(Scalar::$variant(value) => bytes.extend_from_slice(&value.to_ne_bytes()),)*
                    Scalar::Pointer(_) => {}
                }
            };
        }
        each_element!(arms);
        Ok(())
    }

    /// Writes the numbers in `bytes`, with commas between them.
    fn write(self, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! arms {
            ($($variant:ident $type:ident $word:literal),*) => {
                match self {
                    $(Self::$variant => {
                        for (index, element) in bytes.as_chunks::<{ size_of::<$type>() }>().0.iter().enumerate() {
                            let comma = if index == 0 { "" } else { "," };
                            write!(f, "{comma}{}", <$type>::from_ne_bytes(*element))?;
                        }
                    })*
                }
            };
        }
        each_element!(arms);
        Ok(())
    }
}

impl FromStr for Element {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        macro_rules! arms {
            ($($variant:ident $type:ident $name:literal),*) => {
                match word {
                    $($name => Ok(Self::$variant),)*
                    _ => bail!("unknown type {word:?}: one of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64"),
                }
            };
        }
        each_element!(arms)
    }
}

/// Numbers as text.
trait Number: Sized {
    fn read(text: &str) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ident)*) => {
        $(impl Number for $type {
            fn read(text: &str) -> Option<Self> {
                let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
                let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) else {
                    return text.parse().ok();
                };
                if hexadecimal.starts_with(['+', '-']) {
                    return None;
                }
                let magnitude = i128::from_str_radix(hexadecimal, 16).ok()?;
                Self::try_from(if negative { magnitude.checked_neg()? } else { magnitude }).ok()
            }
        })*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ident)*) => {
        $(impl Number for $type {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}
floats!(f32 f64);

impl Buffer {
    fn new(element: Element, bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::zeros(element, bytes.len())?;
        if let Some(place) = buffer.blocks.as_mut_bytes().get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        Ok(buffer)
    }

    fn zeros(element: Element, size: usize) -> Result<Self> {
        let count = size.div_ceil(size_of::<Block>());
        let mut blocks = Vec::new();
        blocks
            .try_reserve_exact(count)
            .with_context(|| format!("no memory for a buffer of {size} bytes"))?;
        blocks.resize(count, Block([0; 64]));
        Ok(Self { element, blocks, size })
    }

    /// The bytes in use.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.blocks.as_bytes().get(..self.size).unwrap_or_default()
    }

    /// The bytes in use, to be changed.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.blocks.as_mut_bytes().get_mut(..self.size).unwrap_or_default()
    }
}

impl fmt::Display for Buffer {
    /// As the argument that would make it: `buf:TYPE:...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buf:{}:", self.element.word())?;
        self.element.write(self.bytes(), f)
    }
}

impl Argument {
    /// Whether `word` looks like an argument: it starts with a type and a colon.
    #[must_use]
    pub fn is_one(word: &str) -> bool {
        word.split_once(':').is_some_and(|(r#type, _)| {
            matches!(r#type, "str" | "buf" | "zeros" | "file") || r#type.parse::<Element>().is_ok()
        })
    }

    /// Splits words where the arguments at their end begin.
    #[must_use]
    pub fn behind(words: &[String]) -> (&[String], &[String]) {
        let count = words.iter().rev().take_while(|word| Self::is_one(word)).count();
        words.split_at(words.len().saturating_sub(count))
    }

    /// Splits words into what is loaded, the function, and its arguments at their end. `loaded` is what errors call the first.
    ///
    /// # Errors
    /// If one of the first two is missing, or what stands for the function is an argument without a type, or with none that there is.
    pub fn behind_function<'w>(
        words: &'w [String],
        loaded: &str,
    ) -> Result<(&'w [String], &'w str, &'w [String])> {
        let (names, arguments) = Self::behind(words);
        let (function, names) = match names {
            [] | [_] => bail!("{loaded} and FUNCTION are needed before the arguments"),
            [names @ .., function] => (function, names),
        };
        if function.starts_with(|first: char| first.is_ascii_digit()) {
            let r#type = if function.contains('.') { "f64" } else { "i32" };
            bail!("{function} is no function: arguments have a type, as {type}:{function}");
        }
        let is_type = |word: &str| word.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9'));
        if let Some((r#type, value)) = function.split_once(':')
            && is_type(r#type)
            && !value.starts_with(':')
        {
            function.parse::<Self>()?;
        }
        Ok((names, function, arguments))
    }

    /// What the function is passed. The pointer is good as long as the argument is not touched.
    #[must_use]
    pub fn value(&mut self) -> Scalar {
        match self {
            Self::Number(value) => *value,
            Self::Text(text) => Scalar::Pointer(text.as_ptr().cast_mut().cast()),
            Self::Buffer(buffer) => Scalar::Pointer(buffer.blocks.as_mut_ptr().cast()),
        }
    }
}

impl FromStr for Argument {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        let context = || format!("argument {word:?}");
        let (r#type, rest) =
            word.split_once(':').ok_or_else(|| anyhow!("{}: no TYPE:VALUE", context()))?;
        let typed = || -> Result<(Element, &str)> {
            let (element, rest) = rest.split_once(':').context("no type of the elements")?;
            Ok((element.parse()?, rest))
        };
        let parse = || -> Result<Self> {
            Ok(match r#type {
                "str" => Self::Text(CString::new(rest).context("a NUL inside")?),
                "file" => Self::Buffer(Buffer::new(Element::U8, &std::fs::read(rest)?)?),
                "zeros" => {
                    let (element, count) = typed()?;
                    let count: usize = count
                        .parse()
                        .with_context(|| format!("{count:?} is no number of elements"))?;
                    let size = count
                        .checked_mul(element.size())
                        .context("more than the address space holds")?;
                    Self::Buffer(Buffer::zeros(element, size)?)
                }
                "buf" => {
                    let (element, numbers) = typed()?;
                    let mut bytes = Vec::new();
                    for number in numbers.split(',').filter(|_| !numbers.is_empty()) {
                        element.append(number.trim(), &mut bytes)?;
                    }
                    Self::Buffer(Buffer::new(element, &bytes)?)
                }
                _ => Self::Number(r#type.parse::<Element>()?.number(rest)?),
            })
        };
        parse().with_context(context)
    }
}
