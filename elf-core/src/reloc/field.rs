//! The bits that a relocation fills.

use super::shift::shr;
use super::value::Role;

/// Parts of a word of 0, 1, 2, 3, 4, 8 or 16 bytes, or a number of variable length.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    pub(crate) bytes: u8,
    /// The bits that take the value.
    pub parts: &'static [Bits],
    /// Whose byte order the word has.
    pub order: Order,
    /// For the few that also change the opcode, or whose encoding is no run of bits: the word with its parts filled, and the
    /// value, make the word.
    pub encode: Option<Encode>,
    /// The third parameter of [`encode`](Self::encode): one encoder for fields that differ in a number.
    pub argument: u8,
    /// What [`encode`](Self::encode) undoes: the addend that the word of a `REL` relocation holds.
    pub decode: Option<Decode>,
    /// A ULEB128 number that keeps its length (DWARF 5, section 7.6).
    pub is_uleb128: bool,
}

/// Makes a word of the old one, whose parts are filled, the value, and the field's [argument](Field::argument).
pub type Encode = fn(word: u64, value: i64, argument: u8) -> Result<u64, Unencodable>;

/// The value that a word holds; `None` if it is no word that the field is for.
pub type Decode = fn(word: u64) -> Option<i64>;

/// Why a field cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unencodable {
    /// No encoding means this value.
    Value,
    /// The instruction is none that the ABI has at such a place.
    Instruction,
}

/// Whose byte order a word has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// That of the file.
    Data,
    /// Little-endian: instructions.
    Little,
    /// Two halfwords of the file's order, the first in the upper half: Thumb instructions of 32 bits.
    Halfwords,
}

impl Field {
    /// No bits at all.
    pub const NONE: Self = Self::data(0, &[]);
    /// A byte.
    pub const DATA8: Self = Self::data(1, &[Bits::new(0, 8)]);
    /// Two bytes.
    pub const DATA16: Self = Self::data(2, &[Bits::new(0, 16)]);
    /// Four bytes.
    pub const DATA32: Self = Self::data(4, &[Bits::new(0, 32)]);
    /// Eight bytes.
    pub const DATA64: Self = Self::data(8, &[Bits::new(0, 64)]);
    /// A ULEB128 number that keeps its length.
    pub const ULEB128: Self = Self { is_uleb128: true, ..Self::data(1, &[]) };

    /// A word of `bytes` bytes in the file's byte order.
    #[must_use]
    pub const fn data(bytes: u8, parts: &'static [Bits]) -> Self {
        Self {
            bytes,
            parts,
            order: Order::Data,
            encode: None,
            argument: 0,
            decode: None,
            is_uleb128: false,
        }
    }

    /// An instruction of `bytes` bytes, little-endian.
    #[must_use]
    pub const fn instruction(bytes: u8, parts: &'static [Bits]) -> Self {
        Self { order: Order::Little, ..Self::data(bytes, parts) }
    }

    /// A Thumb instruction of two halfwords, in the file's byte order each.
    #[must_use]
    pub const fn halfwords(parts: &'static [Bits]) -> Self {
        Self { order: Order::Halfwords, ..Self::data(4, parts) }
    }

    /// Size of the word in bytes; 0 changes nothing. Of a number of variable length the least.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The same with an encoder.
    #[must_use]
    pub const fn encoded(self, encode: Encode) -> Self {
        Self { encode: Some(encode), ..self }
    }

    /// The same with this [argument](Self::argument) of its encoder.
    #[must_use]
    pub const fn with_argument(self, argument: u8) -> Self {
        Self { argument, ..self }
    }

    /// The same with a decoder.
    #[must_use]
    pub const fn decoded(self, decode: Decode) -> Self {
        Self { decode: Some(decode), ..self }
    }

    /// Whether the field is the whole word and takes the value as it is.
    const fn is_whole(&self) -> bool {
        match self.parts {
            [Bits { at: 0, shift: 0, rounded: false, role: None, width, .. }] => {
                *width == self.bytes.saturating_mul(8)
                    && self.encode.is_none()
                    && matches!(self.order, Order::Data | Order::Little)
            }
            _ => false,
        }
    }

    /// How the word is written.
    pub(crate) const fn shape(&self) -> Shape {
        match self.bytes {
            4 if self.is_whole() => Shape::Whole4,
            8 if self.is_whole() => Shape::Whole8,
            2 | 4 | 8 if self.is_pieces() => Shape::Pieces,
            _ => Shape::Parts,
        }
    }

    /// Whether the word is an instruction whose parts take the value and nothing else.
    const fn is_pieces(&self) -> bool {
        let mut rest = self.parts;
        while let [bits, tail @ ..] = rest {
            if bits.role.is_some() {
                return false;
            }
            rest = tail;
        }
        matches!(self.order, Order::Little)
            && self.encode.is_none()
            && !self.is_uleb128
            && !self.parts.is_empty()
    }

    /// Whether the word has a size that exists, and the parts lie inside it and apart.
    pub(crate) const fn is_well_formed(&self) -> bool {
        let coded = self.encode.is_some() || self.decode.is_some();
        if !matches!(self.bytes, 0..=4 | 8 | 16)
            || (coded && self.bytes > 8)
            || (matches!(self.order, Order::Halfwords) && self.bytes != 4)
            || (self.is_uleb128 && !self.parts.is_empty())
        {
            return false;
        }
        let mut rest = self.parts;
        let mut used = 0u128;
        while let [bits, tail @ ..] = rest {
            if bits.width == 0
                || bits.width > 64
                || (bits.rounded && bits.shift == 0)
                || bits.at.saturating_add(bits.width) > self.bytes.saturating_mul(8)
            {
                return false;
            }
            let mask = (bits.mask() as u128).unbounded_shl(bits.at as u32);
            if used & mask != 0 {
                return false;
            }
            used |= mask;
            rest = tail;
        }
        true
    }
}

/// How a word is written: most are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value is the four bytes.
    Whole4,
    /// The value is the eight bytes.
    Whole8,
    /// Parts of an instruction of 2, 4 or 8 bytes take the value.
    Pieces,
    /// In another way.
    Parts,
}

/// Bits `at..at + width` of a word take `value >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bits {
    /// Lowest bit.
    pub at: u8,
    /// Number of bits.
    pub width: u8,
    /// Bits of the value that are dropped below.
    pub shift: u8,
    /// Whether the dropped bits must be 0.
    pub exact: bool,
    /// Whether the value is rounded to the nearest multiple first, as the upper part beside a lower part with a sign.
    pub rounded: bool,
    /// Takes the value of this role instead, which must fit.
    pub role: Option<Role>,
}

impl Bits {
    /// `width` bits at bit `at`.
    #[must_use]
    pub const fn new(at: u8, width: u8) -> Self {
        Self { at, width, shift: 0, exact: false, rounded: false, role: None }
    }

    /// They take the value from bit `shift` on, whatever is below.
    #[must_use]
    pub const fn shr(self, shift: u8) -> Self {
        Self { shift, ..self }
    }

    /// They take the value from bit `shift` on; the bits below must be 0.
    #[must_use]
    pub const fn scaled(self, shift: u8) -> Self {
        Self { shift, exact: true, ..self }
    }

    /// They take the value plus half of 2^`shift` from bit `shift` on.
    #[must_use]
    pub const fn nearest(self, shift: u8) -> Self {
        Self { shift, rounded: true, ..self }
    }

    /// They take the value of `role`.
    #[must_use]
    pub const fn of(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// `width` ones.
    pub(crate) const fn mask(&self) -> u64 {
        shr(u64::MAX, 64u8.saturating_sub(self.width) as u32)
    }
}
