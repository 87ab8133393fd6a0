//! Compact relocations: `SHT_CREL` (LLVM 19; gABI proposal "CREL relocation format").

use crate::error::{Error, ErrorKind};
use crate::records::leb::{Leb, broken};
use crate::views::record::Record;

/// Relocations as differences, each of one byte and more. They are read once to check them: iterating cannot fail.
#[derive(Clone, Copy)]
pub struct Crel<'a> {
    /// Behind the header.
    bytes: &'a [u8],
    len: usize,
    shift: u8,
    has_addends: bool,
    is_64: bool,
}

impl<'a> Crel<'a> {
    /// Checks the section data `bytes`, which lie at file offset `at`. What is behind the last relocation is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the bytes end early, [`ErrorKind::Invalid`] if a number has more than 64 bits.
    pub fn parse(bytes: &'a [u8], is_64: bool, at: u64) -> Result<Self, Error> {
        let mut data = Leb(bytes);
        let header = data.unsigned().ok_or_else(|| broken(bytes, data, at))?;
        let count = header >> 3;
        let outside =
            ErrorKind::Outside { what: "compact relocations", count, file: bytes.len() as u64 };
        // Each has a byte of its own at least.
        let left = usize::try_from(count).ok().filter(|&count| count <= data.0.len());
        let left = left.ok_or(Error { at, kind: outside })?;
        let (has_addends, shift) = (header & 4 != 0, (header & 3) as u8);
        let crel = Self { bytes: data.0, len: left, shift, has_addends, is_64 };
        let mut iter = crel.iter();
        while iter.left != 0 {
            iter.step().ok_or_else(|| broken(bytes, iter.data, at))?;
        }
        Ok(crel)
    }

    /// Number of relocations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the relocations have addends, or else their places hold them.
    #[must_use]
    pub const fn has_addends(&self) -> bool {
        self.has_addends
    }

    /// The relocations in order.
    #[must_use]
    pub const fn iter(&self) -> CrelIter<'a> {
        let Self { bytes, len, shift, has_addends, is_64 } = *self;
        let addend = if has_addends { Some(0) } else { None };
        let record = Record { offset: 0, symbol: 0, r#type: 0, addend };
        CrelIter { data: Leb(bytes), left: len, shift, is_64, record }
    }
}

/// The relocations of a [`Crel`] in order.
#[derive(Clone, Copy)]
pub struct CrelIter<'a> {
    data: Leb<'a>,
    left: usize,
    shift: u8,
    is_64: bool,
    /// The last one, its offset not shifted.
    record: Record,
}

impl CrelIter<'_> {
    #[cfg(feature = "packed-relocations")]
    pub(crate) const EMPTY: Self = Self {
        data: Leb(&[]),
        left: 0,
        shift: 0,
        is_64: true,
        record: Record { offset: 0, symbol: 0, r#type: 0, addend: None },
    };

    /// Reads a relocation: none if its bytes are not all there.
    #[inline]
    fn step(&mut self) -> Option<Record> {
        let Self { data, record, .. } = self;
        self.left = self.left.saturating_sub(1);
        // The lowest bits of the first byte say which members follow; the others begin the offset's difference.
        let flags = if record.addend.is_some() { 3 } else { 2 };
        let first = data.byte()?;
        let mut delta = u64::from(first) >> flags;
        if first >= 0x80 {
            let high = data.unsigned()?.unbounded_shl(7_u32.saturating_sub(flags));
            delta = delta.wrapping_add(high).wrapping_sub(0x80 >> flags);
        }
        record.offset = record.offset.wrapping_add(delta);
        if first & 1 != 0 {
            record.symbol = record.symbol.wrapping_add(data.signed()? as u32);
        }
        if first & 2 != 0 {
            record.r#type = record.r#type.wrapping_add(data.signed()? as u32);
        }
        if let Some(addend) = &mut record.addend
            && first & 4 != 0
        {
            *addend = addend.wrapping_add(data.signed()?);
        }
        let offset = record.offset.unbounded_shl(self.shift.into());
        Some(match self.is_64 {
            true => Record { offset, ..*record },
            false => Record {
                offset: offset & 0xffff_ffff,
                addend: record.addend.map(|addend| (addend as i32).into()),
                ..*record
            },
        })
    }
}

impl Iterator for CrelIter<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        if self.left == 0 { None } else { self.step() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for CrelIter<'_> {}
impl core::iter::FusedIterator for CrelIter<'_> {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// Two records with addends, offsets in units of 2; made by hand from the proposal's text.
    const BYTES: [u8; 11] = [
        2 << 3 | 4 | 1, // header
        2 << 3 | 7,     // offset 2, all members
        3,
        10,
        0x7c,                       // symbol 3, type 10, addend -4
        0x80 | (5 << 3 & 0x7f) | 2, // offset + 5 + 16 * 1: five bits were here
        1,
        0x7f, // type - 1
        0xaa,
        0xaa,
        0xaa, // not ours
    ];

    fn records(is_64: bool) -> Vec<Record> {
        Crel::parse(&BYTES, is_64, 0).unwrap().iter().collect()
    }

    #[test]
    fn differences() {
        let first = Record { offset: 4, symbol: 3, r#type: 10, addend: Some(-4) };
        let second = Record { offset: 4 + 2 * (5 + 16), r#type: 9, ..first };
        assert_eq!(records(true), [first, second]);
        assert_eq!(records(false), [first, second]);
        let crel = Crel::parse(&BYTES, true, 0).unwrap();
        assert_eq!((crel.len(), crel.is_empty(), crel.has_addends()), (2, false, true));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for end in 0..8 {
            let error = Crel::parse(&BYTES[..end], true, 0x40).err().unwrap();
            assert!(error.at >= 0x40 && error.at <= 0x40 + end as u64, "{error}");
        }
        assert!(Crel::parse(&BYTES[..8], true, 0).is_ok());
        let error = Crel::parse(&BYTES[..2], true, 0x40).err().unwrap();
        assert_eq!(
            error.to_string(),
            "2 compact relocations at offset 0x40 are outside its 0x2 bytes"
        );
        let error = Crel::parse(&BYTES[..4], true, 0x40).err().unwrap();
        assert_eq!(error.to_string(), "packed relocation at offset 0x44 is outside its 0x4 bytes");
        let long = [8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let error = Crel::parse(&long, true, 0x40).err().unwrap();
        assert_eq!(error.to_string(), "packed relocation is 0xff at offset 0x4b");
    }

    #[test]
    fn none() {
        let crel = Crel::parse(&[0], true, 0).unwrap();
        assert!(crel.is_empty() && crel.iter().next().is_none() && !crel.has_addends());
    }
}
