//! Numbers of IEEE 754 in four sizes: exact sums and products, rounded once at the end.

/// Bits of exponent and fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    exponent: u32,
    fraction: u32,
}

pub(super) const F16: Format = Format { exponent: 5, fraction: 10 };
pub(super) const BF16: Format = Format { exponent: 8, fraction: 7 };
pub(super) const F32: Format = Format { exponent: 8, fraction: 23 };
pub(super) const F64: Format = Format { exponent: 11, fraction: 52 };

/// Rounding, as instructions number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Nearest,
    Down,
    Up,
    Zero,
}

/// What is between operands and result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Nan,
    Infinite(bool),
    /// The sign, and `mantissa * 2^exponent`.
    Finite(bool, u128, i32),
}

use Number::{Finite, Infinite, Nan};

impl Mode {
    pub(super) const fn of(bits: u64) -> Self {
        match bits {
            0 => Self::Nearest,
            1 => Self::Down,
            2 => Self::Up,
            _ => Self::Zero,
        }
    }

    /// Whether a number between two goes away from zero: the rest against the half, and whether the nearer one to zero is odd.
    const fn is_away(self, sign: bool, rest: u128, half: u128, is_odd: bool) -> bool {
        match self {
            Self::Nearest => rest > half || rest == half && is_odd,
            Self::Down => rest > 0 && sign,
            Self::Up => rest > 0 && !sign,
            Self::Zero => false,
        }
    }
}

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub(super) const fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// What NVIDIA's GPUs give for no number: all ones, of 64 bits the usual one.
    pub(super) const fn nan(self) -> u64 {
        match self.fraction {
            52 => 0xfff8_0000_0000_0000,
            _ => self.sign_bit() - 1,
        }
    }

    pub(super) const fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction
    }

    /// A number of this format; denormals are zeros if they are `flushed`.
    pub(super) const fn read(self, bits: u64, flushed: bool) -> Number {
        let sign = bits & self.sign_bit() != 0;
        let fraction = bits & ((1 << self.fraction) - 1);
        let exponent = bits >> self.fraction & ((1 << self.exponent) - 1);
        let lowest = 1 - self.bias() - self.fraction as i32;
        if exponent == (1 << self.exponent) - 1 {
            return if fraction == 0 { Infinite(sign) } else { Nan };
        }
        match exponent {
            0 if flushed => Finite(sign, 0, lowest),
            0 => Finite(sign, fraction as u128, lowest),
            _ => {
                Finite(sign, (fraction | 1 << self.fraction) as u128, lowest + exponent as i32 - 1)
            }
        }
    }

    /// The nearest of this format.
    pub(super) fn write(self, number: Number, mode: Mode, flushed: bool) -> u64 {
        let signed = |sign: bool, bits: u64| if sign { bits | self.sign_bit() } else { bits };
        match number {
            Nan => self.nan(),
            Infinite(sign) => signed(sign, self.infinity()),
            Finite(sign, 0, _) => signed(sign, 0),
            Finite(sign, mantissa, exponent) => {
                let lowest = 1 - self.bias();
                let top = mantissa.ilog2() as i32 + exponent;
                let kept = top.max(lowest);
                let mantissa =
                    integer(sign, mantissa, exponent - (kept - self.fraction as i32), mode);
                let field = (kept - lowest) as u128;
                let bits = (field << self.fraction) + mantissa;
                let largest = self.infinity() - 1;
                if bits > u128::from(largest) {
                    let is_infinite = mode.is_away(sign, 1, 0, false);
                    return signed(sign, if is_infinite { self.infinity() } else { largest });
                }
                let is_denormal = bits < 1 << self.fraction;
                signed(sign, if is_denormal && flushed { 0 } else { bits as u64 })
            }
        }
    }
}

/// `mantissa * 2^exponent` as an integer.
fn integer(sign: bool, mantissa: u128, exponent: i32, mode: Mode) -> u128 {
    if exponent >= 0 {
        return mantissa << exponent;
    }
    let (kept, rest, half) = match exponent.unsigned_abs() {
        shift @ 1..=127 => (mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1)),
        _ => (0, u128::from(mantissa != 0), 2),
    };
    kept + u128::from(mode.is_away(sign, rest, half, kept & 1 == 1))
}

impl Number {
    pub(super) fn of(value: i128) -> Self {
        Finite(value < 0, value.unsigned_abs(), 0)
    }

    pub(super) const fn is_nan(self) -> bool {
        matches!(self, Nan)
    }

    pub(super) fn times(self, other: Self) -> Self {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite(_), Finite(_, 0, _)) | (Finite(_, 0, _), Infinite(_)) => Nan,
            (Infinite(a), Infinite(b) | Finite(b, ..)) | (Finite(a, ..), Infinite(b)) => {
                Infinite(a != b)
            }
            (Finite(a, m, e), Finite(b, n, f)) => Finite(a != b, m * n, e + f),
        }
    }

    /// The sum: exact, or with a last bit that says that there is more.
    pub(super) fn plus(self, other: Self, mode: Mode) -> Self {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite(a), Infinite(b)) if a != b => Nan,
            (Infinite(a), _) | (_, Infinite(a)) => Infinite(a),
            (Finite(a, 0, _), Finite(b, 0, e)) => {
                Finite(if a == b { a } else { mode == Mode::Down }, 0, e)
            }
            (Finite(_, 0, _), number) | (number, Finite(_, 0, _)) => number,
            (Finite(a, m, e), Finite(b, n, f)) => {
                let top = |mantissa: u128, exponent: i32| mantissa.ilog2() as i32 + exponent;
                let ((a, m, e), (b, n, f)) = if top(m, e) >= top(n, f) {
                    ((a, m, e), (b, n, f))
                } else {
                    ((b, n, f), (a, m, e))
                };
                let up = 125 - m.ilog2();
                let (m, e) = (m << up, e - up as i32);
                let n = match f - e {
                    left @ 0.. => n << left,
                    right @ -127..0 => {
                        let right = right.unsigned_abs();
                        n >> right | u128::from(n & ((1 << right) - 1) != 0)
                    }
                    _ => 1,
                };
                if a == b {
                    Finite(a, m + n, e)
                } else if m == n {
                    Finite(mode == Mode::Down, 0, e)
                } else {
                    Finite(if m > n { a } else { b }, m.abs_diff(n), e)
                }
            }
        }
    }

    /// An integer of that many bits, the nearest there is. What is no number gives zero, or the highest bit alone.
    pub(super) fn to_integer(
        self,
        mode: Mode,
        bits: u32,
        is_signed: bool,
        nan_is_zero: bool,
    ) -> u64 {
        let all = u64::MAX >> (64 - bits);
        let (low, high) = match is_signed {
            true => (1u128 << (bits - 1), u128::from(all >> 1)),
            false => (0, all.into()),
        };
        match self {
            Nan => {
                if nan_is_zero {
                    0
                } else {
                    1 << (bits - 1)
                }
            }
            Infinite(true) => low as u64,
            Infinite(false) => high as u64,
            Finite(sign, mantissa, exponent) => {
                let is_large = mantissa > 0 && mantissa.ilog2() as i32 + exponent > 70;
                let value =
                    if is_large { u128::MAX } else { integer(sign, mantissa, exponent, mode) };
                if sign {
                    value.min(low).wrapping_neg() as u64 & all
                } else {
                    value.min(high) as u64
                }
            }
        }
    }

    /// The nearest number without a fraction.
    pub(super) fn whole(self, mode: Mode) -> Self {
        match self {
            Finite(sign, mantissa, exponent @ ..0) => {
                Finite(sign, integer(sign, mantissa, exponent, mode), 0)
            }
            number => number,
        }
    }

    /// What holds of the two: less 1, equal 2, greater 4, not comparable 8.
    pub(super) fn against(self, other: Self) -> u64 {
        if self.is_nan() || other.is_nan() {
            return 8;
        }
        let exact = |number: Self| f64::from_bits(F64.write(number, Mode::Nearest, false));
        match exact(self).partial_cmp(&exact(other)) {
            Some(core::cmp::Ordering::Less) => 1,
            Some(core::cmp::Ordering::Equal) => 2,
            _ => 4,
        }
    }
}
