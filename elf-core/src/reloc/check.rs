//! Which values a field may take.

use super::shift::{shl, shr};

/// Which values a field may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// All: what does not fit is cut off, as the ABI wants it.
    Any,
    /// Those of a signed integer of so many bits.
    Signed(u8),
    /// Those of an unsigned integer of so many bits.
    Unsigned(u8),
    /// Those of either: `-2^(n-1) <= X < 2^n`.
    Either(u8),
    /// Those of a signed integer of `bits` bits whose upper part, from bit `low` on, is rounded to the nearest: its lower part is
    /// added with a sign. `-2^(bits-1) <= X + 2^(low-1) < 2^(bits-1)`.
    SignedRounded {
        /// Bits of both parts.
        bits: u8,
        /// Bits of the lower part.
        low: u8,
    },
}

impl Check {
    /// Whether `value`, an address or a difference modulo 2^64, is allowed.
    #[must_use]
    #[inline]
    pub const fn holds(self, value: u64) -> bool {
        // those of a signed integer are the first 2^n once they are moved up to start at 0
        let (value, bits) = match self {
            Self::Any => return true,
            Self::Either(bits) if value >> 63 == 0 => (value, bits),
            Self::Unsigned(bits) => (value, bits),
            Self::Signed(bits) | Self::Either(bits) => (value.wrapping_add(half(bits)), bits),
            Self::SignedRounded { bits, low } => {
                (value.wrapping_add(half(low)).wrapping_add(half(bits)), bits)
            }
        };
        shr(value, bits as u32) == 0
    }

    /// The same for addresses of `size` bytes: 32 bits hold all values that are computed modulo 2^32.
    #[must_use]
    #[inline]
    pub const fn modulo(self, size: u64) -> Self {
        match self {
            Self::SignedRounded { bits: 32, .. } if size == 4 => Self::Any,
            check => check,
        }
    }

    /// The least and the greatest value allowed.
    #[must_use]
    pub const fn limits(self) -> (i128, i128) {
        const fn power(bits: u8) -> i128 {
            1i128.unbounded_shl(bits as u32)
        }
        match self {
            Self::Any => (i64::MIN as i128, u64::MAX as i128),
            Self::Signed(bits) => {
                let half = power(bits.saturating_sub(1));
                (half.wrapping_neg(), half.wrapping_sub(1))
            }
            Self::Unsigned(bits) => (0, power(bits).wrapping_sub(1)),
            Self::Either(bits) => {
                (power(bits.saturating_sub(1)).wrapping_neg(), power(bits).wrapping_sub(1))
            }
            Self::SignedRounded { bits, low } => {
                let (least, most) = Self::Signed(bits).limits();
                let half = half(low) as i128;
                (least.wrapping_sub(half), most.wrapping_sub(half))
            }
        }
    }
}

/// Half of what so many bits count to.
#[inline]
const fn half(bits: u8) -> u64 {
    shl(1, bits.saturating_sub(1) as u32)
}

#[cfg(test)]
mod tests {
    use super::Check;

    /// The limits are the last values that hold.
    #[test]
    fn limits() {
        let checks = (1..=64).flat_map(|bits| {
            let rounded = [1, 12, 63].map(|low| Check::SignedRounded { bits, low });
            [Check::Signed(bits), Check::Unsigned(bits), Check::Either(bits)]
                .into_iter()
                .chain(rounded)
        });
        for check in checks {
            let (least, most) = check.limits();
            // beside the largest limits there are no more values, or they mean others
            let wraps = least <= i64::MIN.into() || most >= i64::MAX.into();
            for (value, holds) in
                [(least, true), (most, true), (least - 1, false), (most + 1, false)]
            {
                if !wraps || holds {
                    assert_eq!(check.holds(value as u64), holds, "{check:?}: {value:#x}");
                }
            }
        }
        assert!(Check::Any.holds(u64::MAX));
        assert!(!Check::Unsigned(63).holds(u64::MAX));
        assert!(Check::Either(64).holds(u64::MAX));
    }

    #[test]
    fn rounded() {
        let check = Check::SignedRounded { bits: 32, low: 12 };
        let (least, most) = check.limits();
        assert_eq!((least, most), (-0x8000_0800, 0x7fff_f7ff));
        for (value, holds) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            assert_eq!(check.holds(value as i64 as u64), holds, "{value:#x}");
        }
        assert!(!check.holds(i64::MAX as u64));
        assert!(check.modulo(4).holds(0x8000_0000));
        assert!(!check.modulo(8).holds(0x8000_0000));
    }
}
