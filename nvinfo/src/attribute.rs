//! `.nv.info`, `.nv.info.K` and `.nv.compat`: records of four formats.

use crate::error::{Error, ErrorKind};
use crate::names::{self, Shape};
use crate::payload::Payload;
use crate::value::AttributeValue;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// File offset of the record.
    pub at: u64,
    /// Number of the attribute: `EIATTR_*`, or `EICOMPAT_ATTR_*` in `.nv.compat`.
    pub number: u8,
    /// Its value.
    pub value: AttributeValue<'a>,
}

impl<'a> Attribute<'a> {
    /// Size of a record's head in bytes: format, number, and two bytes of value or length.
    pub const HEAD: u64 = 4;

    /// The name as the CUDA tools write it, `EIATTR_*`, if they have one. Not for records of `.nv.compat`.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        names::attribute(self.number).map(|row| row.name).filter(|name| !name.is_empty())
    }

    /// What the value means; bytes where that is not known, or where they are not as many as the meaning asks for.
    #[must_use]
    pub fn payload(&self) -> Payload<'a> {
        let shape = names::attribute(self.number).map_or(Shape::Bytes, |row| row.shape);
        Payload::read(shape, self.value)
    }

    /// The number that is all of the value, if it is one number: of one, two or four bytes.
    #[must_use]
    pub fn number_value(&self) -> Option<u32> {
        match self.payload() {
            Payload::Number(number) => Some(number),
            _ => None,
        }
    }

    /// File offset of the value's first byte.
    #[must_use]
    pub const fn value_at(&self) -> u64 {
        match self.value {
            AttributeValue::Bytes(_) => self.at.saturating_add(Self::HEAD),
            _ => self.at.saturating_add(2),
        }
    }

    /// The record at the start of `bytes`, which are at file offset `at`, and the bytes behind it.
    fn split(bytes: &'a [u8], at: u64) -> Result<(Self, &'a [u8]), Error> {
        let left = bytes.len() as u64;
        let truncated =
            |needed| Error::new(at, ErrorKind::Truncated { what: "attribute", needed, left });
        let Some((&[format, number, low, high], rest)) = bytes.split_first_chunk::<4>() else {
            return Err(truncated(Self::HEAD));
        };
        let half = u16::from_le_bytes([low, high]);
        let (value, rest) = match format {
            1 => (AttributeValue::None(half), rest),
            2 => (AttributeValue::Byte(low, high), rest),
            3 => (AttributeValue::Half(half), rest),
            4 => match rest.split_at_checked(half.into()) {
                Some((value, rest)) => (AttributeValue::Bytes(value), rest),
                None => return Err(truncated(Self::HEAD.saturating_add(half.into()))),
            },
            format => return Err(Error::new(at, ErrorKind::UnknownFormat(format))),
        };
        Ok((Self { at, number, value }, rest))
    }
}

/// The records of a section in order. A damaged record is the last: its error, then the end.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Attributes<'a> {
    /// The records in `bytes`, which are at file offset `at`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { rest: bytes, at }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = core::mem::take(&mut self.rest); // stays empty after an error: fused
        if bytes.is_empty() {
            return None;
        }
        let at = self.at;
        Some(Attribute::split(bytes, at).map(|(attribute, rest)| {
            self.at = at.saturating_add(bytes.len().saturating_sub(rest.len()) as u64);
            self.rest = rest;
            attribute
        }))
    }
}

impl core::iter::FusedIterator for Attributes<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: [u8; 24] = [
        4, 0x2f, 8, 0, 7, 0, 0, 0, 40, 0, 0, 0, // REGCOUNT of symbol 7: 40
        1, 4, 0, 0, // CTAIDZ_USED
        2, 0x4c, 3, 0, // NUM_BARRIERS 3
        3, 0x1b, 0xff, 0, // MAXREG_COUNT 255
    ];

    #[test]
    fn known_bytes_are_known_records() {
        let mut records = Attributes::new(&RECORDS, 0x100);
        let mut next = || records.next().unwrap().unwrap();
        let first = next();
        assert_eq!(
            (first.at, first.value_at(), first.name()),
            (0x100, 0x104, Some("EIATTR_REGCOUNT"))
        );
        assert_eq!(first.payload(), Payload::OfSymbol { symbol: 7, value: 40 });
        let flag = next();
        assert_eq!((flag.at, flag.payload()), (0x10c, Payload::Flag));
        assert_eq!(next().number_value(), Some(3));
        assert_eq!(next().number_value(), Some(255));
        assert!(records.next().is_none());
    }

    #[test]
    fn every_truncation_is_an_error_once() {
        for end in 0..RECORDS.len() {
            let mut records = Attributes::new(&RECORDS[..end], 0);
            let errors = records.by_ref().filter(Result::is_err).count();
            assert_eq!(errors, usize::from(![0, 12, 16, 20].contains(&end)), "{end}");
            assert!(records.next().is_none());
        }
    }

    #[test]
    fn an_unknown_format_ends_the_records() {
        let mut records = Attributes::new(&[9, 1, 0, 0, 1, 4, 0, 0], 8);
        let error = records.next().unwrap().unwrap_err();
        assert_eq!(error, Error::new(8, ErrorKind::UnknownFormat(9)));
        assert!(records.next().is_none());
    }
}
