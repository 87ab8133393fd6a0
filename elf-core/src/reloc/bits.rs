//! Parts of words: taken from the bytes of a section, and put there.

use super::check::Check;
use super::error::ApplyErrorKind;
use super::field::{Bits, Field, Order};
use super::shift::{shl, shr};

/// A word that holds all fields of an architecture. Most have none of more than 8 bytes, and small machines no larger words.
pub(crate) trait Word: Copy {
    /// The low bits of `value`.
    fn of(value: u64) -> Self;
    /// The word of at most 16 bytes at `place`.
    fn load(place: &[u8], order: Sequence) -> Self;
    /// Stores the low bytes at `place`.
    fn store(self, place: &mut [u8], order: Sequence);
    /// 64 bits from bit `at` on.
    fn low(self, at: u32) -> u64;
    /// The word with `part` in the bits of `mask`, both from bit `at` on.
    fn with(self, at: u32, mask: u64, part: u64) -> Self;
}

/// How the bytes of a word follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
    /// The upper two first, of each two the lower first.
    LittleHalves,
}

impl Sequence {
    /// Of a field, in a file of this byte order.
    pub(crate) const fn of(order: Order, big_endian: bool) -> Self {
        match (order, big_endian) {
            (Order::Little, _) | (Order::Data, false) => Self::Little,
            (Order::Data | Order::Halfwords, true) => Self::Big,
            (Order::Halfwords, false) => Self::LittleHalves,
        }
    }

    /// Four bytes as they are in memory, read little-endian, to the word that they mean, and back.
    const fn exchange(self, bytes: u32) -> u32 {
        match self {
            Self::Little => bytes,
            Self::Big => bytes.swap_bytes(),
            Self::LittleHalves => bytes.rotate_left(16),
        }
    }
}

macro_rules! word {
    ($word:ident, $shl:path, $shr:path) => {
        impl Word for $word {
            #[inline]
            fn of(value: u64) -> Self {
                value as Self
            }

            #[inline]
            fn load(place: &[u8], order: Sequence) -> Self {
                // most are instructions
                // elsewhere than in instructions small machines have the loop below alone, which is less code
                if cfg!(target_pointer_width = "64") || order == Sequence::LittleHalves {
                    if let Some(&bytes) = place.as_array::<4>() {
                        return Self::of(order.exchange(u32::from_le_bytes(bytes)).into());
                    }
                }
                let next = |word: Self, byte: &u8| word.unbounded_shl(8) | Self::from(*byte);
                let bytes = place.iter();
                match order {
                    Sequence::Big => bytes.fold(0, next),
                    _ => bytes.rev().fold(0, next),
                }
            }

            #[inline]
            fn store(mut self, place: &mut [u8], order: Sequence) {
                // as in `load`
                if cfg!(target_pointer_width = "64") || order == Sequence::LittleHalves {
                    if let Some(bytes) = place.as_mut_array::<4>() {
                        *bytes = order.exchange(self as u32).to_le_bytes();
                        return;
                    }
                }
                let put = |byte: &mut u8| {
                    *byte = self as u8;
                    self = self.unbounded_shr(8);
                };
                let bytes = place.iter_mut();
                match order {
                    Sequence::Big => bytes.rev().for_each(put),
                    _ => bytes.for_each(put),
                }
            }

            #[inline]
            fn low(self, at: u32) -> u64 {
                $shr(self, at) as u64
            }

            #[inline]
            fn with(self, at: u32, mask: u64, part: u64) -> Self {
                let (mask, part) = (Self::of(mask), Self::of(part & mask));
                self & !$shl(mask, at) | $shl(part, at)
            }
        }
    };
}
word!(u32, u32::unbounded_shl, u32::unbounded_shr);
word!(u64, shl, shr);
word!(u128, u128::unbounded_shl, u128::unbounded_shr);

/// The value that the bits of a field hold, its highest bit the sign.
#[inline]
pub(crate) fn held(field: &Field, word: impl Word) -> i64 {
    let (mut value, mut width) = (0u64, 0u8);
    for bits in field.parts.iter().filter(|bits| bits.role.is_none()) {
        value |= shl(word.low(bits.at.into()) & bits.mask(), bits.shift.into());
        width = width.max(bits.shift.saturating_add(bits.width));
    }
    let sign = shl(1, width.saturating_sub(1).into());
    (value ^ sign).wrapping_sub(sign).cast_signed()
}

/// See [`Field::addend`].
#[inline]
pub(crate) fn addend(field: &Field, word: impl Word) -> Option<i64> {
    match field.decode {
        Some(decode) => decode(word.low(0)),
        None => Some(held(field, word)),
    }
}

/// See [`Bits::put`].
#[inline]
pub(crate) fn put<W: Word>(bits: &Bits, word: W, value: u64) -> Result<W, ApplyErrorKind> {
    let half = if bits.rounded { shl(1, bits.shift.saturating_sub(1).into()) } else { 0 };
    let (mask, part) = (bits.mask(), shr(value.wrapping_add(half), bits.shift.into()));
    if bits.exact && shl(part, bits.shift.into()) != value {
        let alignment = shl(1, bits.shift.into());
        return Err(ApplyErrorKind::Misaligned { value, alignment });
    }
    if bits.role.is_some() && part & !mask != 0 {
        return Err(ApplyErrorKind::Overflow { value, check: Check::Unsigned(bits.width) });
    }
    Ok(word.with(bits.at.into(), mask, part))
}

impl Field {
    /// The addend that the place of a `REL` relocation holds: what [`decode`](Self::decode) says, else the field's value, its
    /// highest bit the sign. `None` if the word is none that the field is for.
    #[must_use]
    pub fn addend(&self, word: u128) -> Option<i64> {
        addend(self, word)
    }

    /// The same of a place of at most 8 bytes in a file of this byte order.
    #[must_use]
    pub fn addend_at(&self, place: &[u8], big_endian: bool) -> Option<i64> {
        addend(self, u64::load(place, Sequence::of(self.order, big_endian)))
    }
}

impl Bits {
    /// These bits of `word`.
    #[must_use]
    pub fn get(&self, word: u128) -> u64 {
        word.low(self.at.into()) & self.mask()
    }

    /// `word` with these bits taken from `value`.
    ///
    /// # Errors
    /// [`ApplyErrorKind::Misaligned`] if bits below the shift would be lost that must be 0; [`ApplyErrorKind::Overflow`] if the
    /// value of a role of its own is too wide.
    pub fn put(&self, word: u128, value: u64) -> Result<u128, ApplyErrorKind> {
        put(self, word, value)
    }
}
