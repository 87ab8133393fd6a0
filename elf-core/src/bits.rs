//! Parts of words: taken from the bytes of a section, and put there.

use crate::apply::ApplyErrorKind;
use crate::reloc::{Bits, Check, Field, Kind};

/// A word that holds all fields of an architecture. Most have none of more than 8 bytes, and small machines no larger words.
pub(crate) trait Word: Copy + From<u64> {
    /// The word of at most 16 bytes at `place`.
    fn load(place: &[u8], big_endian: bool) -> Self;
    /// Stores the low bytes at `place`.
    fn store(self, place: &mut [u8], big_endian: bool);
    /// 64 bits from bit `at` on.
    fn low(self, at: u32) -> u64;
    /// The word with `part` in the bits of `mask`, both from bit `at` on.
    fn with(self, at: u32, mask: u64, part: u64) -> Self;
}

macro_rules! word {
    ($word:ident) => {
        impl Word for $word {
            #[inline]
            fn load(place: &[u8], big_endian: bool) -> Self {
                // most are instructions
                if let Some(&bytes) = place.as_array::<4>() {
                    let word = u32::from_le_bytes(bytes);
                    return (if big_endian { word.swap_bytes() } else { word }).into();
                }
                let next = |word: Self, byte: &u8| word.unbounded_shl(8) | Self::from(*byte);
                let bytes = place.iter();
                if big_endian { bytes.fold(0, next) } else { bytes.rev().fold(0, next) }
            }

            #[inline]
            fn store(mut self, place: &mut [u8], big_endian: bool) {
                if let Some(bytes) = place.as_mut_array::<4>() {
                    let word = self as u32;
                    *bytes = (if big_endian { word.swap_bytes() } else { word }).to_le_bytes();
                    return;
                }
                let put = |byte: &mut u8| {
                    *byte = self as u8;
                    self = self.unbounded_shr(8);
                };
                let bytes = place.iter_mut();
                if big_endian { bytes.rev().for_each(put) } else { bytes.for_each(put) }
            }

            #[inline]
            fn low(self, at: u32) -> u64 {
                self.unbounded_shr(at) as u64
            }

            #[inline]
            fn with(self, at: u32, mask: u64, part: u64) -> Self {
                let (mask, part) = (Self::from(mask), Self::from(part & mask));
                self & !mask.unbounded_shl(at) | part.unbounded_shl(at)
            }
        }
    };
}
word!(u64);
word!(u128);

/// Whether an architecture has fields of more than 8 bytes.
pub(crate) const fn is_wide(kinds: &[Kind]) -> bool {
    let mut rest = kinds;
    while let [kind, tail @ ..] = rest {
        if kind.field.bytes > size_of::<u64>() {
            return true;
        }
        rest = tail;
    }
    false
}

/// See [`Field::addend`].
#[inline]
pub(crate) fn addend(field: &Field, word: impl Word) -> i64 {
    let (mut value, mut width) = (0u64, 0u32);
    for bits in field.parts.iter().filter(|bits| bits.role.is_none()) {
        value |= (word.low(bits.at) & bits.mask()).unbounded_shl(bits.shift);
        width = width.max(bits.shift.saturating_add(bits.width));
    }
    let unused = 64u32.saturating_sub(width);
    value.unbounded_shl(unused).cast_signed().unbounded_shr(unused)
}

/// See [`Bits::put`].
#[inline]
pub(crate) fn put<W: Word>(bits: &Bits, word: W, value: u64) -> Result<W, ApplyErrorKind> {
    let (mask, part) = (bits.mask(), value.unbounded_shr(bits.shift));
    if bits.exact && part.unbounded_shl(bits.shift) != value {
        let alignment = 1u64.unbounded_shl(bits.shift);
        return Err(ApplyErrorKind::Misaligned { value, alignment });
    }
    if bits.role.is_some() && part & !mask != 0 {
        return Err(ApplyErrorKind::Overflow { value, check: Check::Unsigned(bits.width) });
    }
    Ok(word.with(bits.at, mask, part))
}

impl Field {
    /// The addend that the place of a `REL` relocation holds: the field's value, its highest bit the sign.
    #[must_use]
    pub fn addend(&self, word: u128) -> i64 {
        addend(self, word)
    }

    /// The same of a place of at most 8 bytes, little-endian.
    #[must_use]
    pub fn addend_at(&self, place: &[u8]) -> i64 {
        addend(self, u64::load(place, false))
    }
}

impl Bits {
    /// These bits of `word`.
    #[must_use]
    pub fn get(&self, word: u128) -> u64 {
        word.low(self.at) & self.mask()
    }

    /// `word` with these bits taken from `value`.
    ///
    /// # Errors
    /// [`ApplyErrorKind::Misaligned`] if bits below the shift would be lost that must be 0; [`ApplyErrorKind::Overflow`] if the
    /// value of a role of its own is too wide.
    pub fn put(&self, word: u128, value: u64) -> Result<u128, ApplyErrorKind> {
        put(self, word, value)
    }

    /// `width` ones.
    pub(crate) const fn mask(&self) -> u64 {
        u64::MAX.unbounded_shr(64u32.saturating_sub(self.width))
    }
}
