//! Numbers of variable length (DWARF 5, section 7.6).

use crate::error::{Error, ErrorKind};

/// Bytes that hold one number after another. A byte that makes a number too large is not taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leb<'a>(pub(crate) &'a [u8]);

impl Leb<'_> {
    /// Takes a byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Takes a ULEB128: none if the bytes end in it or it has more than 64 bits.
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        // most are small
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Some(u64::from(*byte));
        }
        let (mut value, mut shift) = (0, 0_u32);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            let bits = u64::from(byte & 0x7f);
            let part = bits.unbounded_shl(shift);
            if part.unbounded_shr(shift) != bits {
                return None;
            }
            self.0 = rest;
            value |= part;
            if byte < 0x80 {
                return Some(value);
            }
            shift = shift.saturating_add(7);
        }
    }

    /// Takes an SLEB128: none if the bytes end in it or it has more than 64 bits.
    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            let bits = u64::from(byte & 0x7f);
            let fill = if value.cast_signed() < 0 { 0x7f } else { 0 };
            let fits = match shift {
                0..63 => true,
                63 => bits == 0 || bits == 0x7f,
                _ => bits == fill,
            };
            if !fits {
                return None;
            }
            self.0 = rest;
            value |= bits.unbounded_shl(shift);
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                let negative = byte & 0x40 != 0;
                return Some(
                    (value | if negative { u64::MAX.unbounded_shl(shift) } else { 0 })
                        .cast_signed(),
                );
            }
        }
    }
}

/// What is wrong where `rest` of `bytes` begins: the end, or a number that is too large.
pub(crate) fn broken(bytes: &[u8], rest: Leb<'_>, at: u64) -> Error {
    let read = (bytes.len().saturating_sub(rest.0.len())) as u64;
    let kind = match rest.0 {
        [] => ErrorKind::Outside { what: "packed relocation", count: 1, file: bytes.len() as u64 },
        [byte, ..] => ErrorKind::Invalid { what: "packed relocation", value: (*byte).into() },
    };
    Error { at: at.saturating_add(read), kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let unsigned: [(&[u8], u64); 5] = [
            (&[2], 2),
            (&[0xb9, 0x64], 12857),
            (&[0x80, 0x80, 0], 0),
            (&[0xff; 9], 0), // cut short
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], u64::MAX),
        ];
        for (bytes, value) in unsigned {
            assert_eq!(Leb(bytes).unsigned().unwrap_or(0), value, "{bytes:x?}");
        }
        let signed: [(&[u8], i64); 7] = [
            (&[2], 2),
            (&[0x7e], -2),
            (&[0xff, 0x00], 127),
            (&[0x80, 0x7f], -128),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], i64::MIN),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00], i64::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], -1),
        ];
        for (bytes, value) in signed {
            assert_eq!(Leb(bytes).signed(), Some(value), "{bytes:x?}");
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits() {
        let mut bytes = [0x80; 12];
        for (byte, last) in [(9, 2), (10, 1), (11, 1)] {
            bytes[byte] = last;
            assert_eq!(Leb(&bytes).unsigned(), None);
            assert_eq!(Leb(&bytes).signed(), None);
            bytes[byte] = 0x80;
        }
        assert_eq!((Leb(&bytes).unsigned(), Leb(&[]).signed()), (None, None));
    }
}
