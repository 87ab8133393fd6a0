//! Android's packed relocations: `SHT_ANDROID_REL` and `SHT_ANDROID_RELA` (bionic, `linker_reloc_iterators.h`).

use crate::error::{Error, ErrorKind};
use crate::records::leb::{Leb, broken};
use crate::views::record::{Record, of_info};

/// What the data begin with.
const MAGIC: &[u8; 4] = b"APS2";

/// Relocations in groups that share members. They are read once to check them: iterating cannot fail.
#[derive(Clone, Copy)]
pub struct AndroidPacked<'a> {
    /// Behind the magic.
    bytes: &'a [u8],
    len: usize,
    has_addends: bool,
    is_64: bool,
}

impl<'a> AndroidPacked<'a> {
    /// Checks the section data `bytes`, which lie at file offset `at`, and have addends if they are of
    /// `SHT_ANDROID_RELA`. What is behind the last relocation is ignored.
    ///
    /// A few bytes can stand for any number of relocations; `limit` is how many may be.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if the bytes end early or there are more than `limit` relocations;
    /// [`ErrorKind::Invalid`] if the magic or the size of a group is wrong, or a number has more than 64 bits.
    pub fn parse(
        bytes: &'a [u8],
        has_addends: bool,
        is_64: bool,
        limit: usize,
        at: u64,
    ) -> Result<Self, Error> {
        let Some(data) = bytes.strip_prefix(MAGIC) else {
            let value = bytes.iter().take(4).fold(0, |value, &byte| value << 8 | u64::from(byte));
            return Err(Error {
                at,
                kind: ErrorKind::Invalid { what: "magic of packed relocations", value },
            });
        };
        let mut packed = Self { bytes: data, len: 0, has_addends, is_64 };
        let mut rest = Leb(data);
        let head = rest.signed().zip(rest.signed());
        let (count, _) = head.ok_or_else(|| broken(bytes, rest, at))?;
        let count = count.cast_unsigned();
        let outside = ErrorKind::Outside { what: "packed relocations", count, file: limit as u64 };
        packed.len = match usize::try_from(count) {
            Ok(count) if count <= limit => count,
            _ => return Err(Error { at, kind: outside }),
        };
        let mut iter = packed.iter();
        while iter.left != 0 {
            if iter.step().is_none() {
                let group = iter.group.left;
                let size = ErrorKind::Invalid {
                    what: "size of a group of packed relocations",
                    value: group,
                };
                let read = bytes.len().saturating_sub(iter.data.0.len()) as u64;
                return Err(
                    match group > iter.left as u64 || group == 0 && !iter.data.0.is_empty() {
                        true => Error { at: at.saturating_add(read), kind: size },
                        false => broken(bytes, iter.data, at),
                    },
                );
            }
        }
        Ok(packed)
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

    /// The relocations in order.
    #[must_use]
    pub fn iter(&self) -> AndroidPackedIter<'a> {
        let Self { bytes, len, has_addends, is_64 } = *self;
        let mut data = Leb(bytes);
        let head = data.signed().zip(data.signed());
        let offset = head.map_or(0, |(_, offset)| offset.cast_unsigned());
        AndroidPackedIter {
            data,
            left: len,
            is_64,
            has_addends,
            offset,
            addend: 0,
            group: Group::default(),
        }
    }
}

/// What the relocations of a group share.
#[derive(Clone, Copy, Default)]
struct Group {
    left: u64,
    /// `r_info`, if it is the same.
    info: Option<u64>,
    /// From one offset to the next, if it is the same.
    delta: Option<u64>,
    /// Whether each relocation has a difference of addends.
    addends: bool,
}

/// The relocations of an [`AndroidPacked`] in order.
#[derive(Clone, Copy)]
pub struct AndroidPackedIter<'a> {
    data: Leb<'a>,
    left: usize,
    is_64: bool,
    has_addends: bool,
    offset: u64,
    addend: u64,
    group: Group,
}

impl AndroidPackedIter<'_> {
    /// Reads a relocation, before it the head of its group: none if its bytes are not all there or too many.
    fn step(&mut self) -> Option<Record> {
        if self.group.left == 0 {
            self.open()?;
        }
        self.group.left = self.group.left.checked_sub(1)?;
        let Self { data, group, .. } = self;
        let mut number = || data.signed().map(i64::cast_unsigned);
        let delta = group.delta.map_or_else(&mut number, Some)?;
        let info = group.info.map_or_else(&mut number, Some)?;
        if group.addends {
            self.addend = self.addend.wrapping_add(number()?);
        }
        self.offset = self.offset.wrapping_add(delta);
        self.left = self.left.saturating_sub(1);
        let (symbol, r#type) = of_info(info, self.is_64);
        let narrow = |value: u64| if self.is_64 { value } else { value & 0xffff_ffff };
        let addend =
            if self.is_64 { self.addend.cast_signed() } else { (self.addend as i32).into() };
        Some(Record {
            offset: narrow(self.offset),
            symbol,
            r#type,
            addend: self.has_addends.then_some(addend),
        })
    }

    /// Reads the head of a group. One that is not as it should be is left with a size that tells.
    fn open(&mut self) -> Option<()> {
        let mut number = || self.data.signed().map(i64::cast_unsigned);
        let (size, flags) = (number()?, number()?);
        self.group.left = size;
        if size == 0 || size > self.left as u64 {
            return None;
        }
        self.group.delta = if flags & 2 != 0 { Some(number()?) } else { None };
        self.group.info = if flags & 1 != 0 { Some(number()?) } else { None };
        let (grouped, has_addend) = (flags & 4 != 0, flags & 8 != 0);
        self.group.addends = has_addend && !grouped;
        match (has_addend, grouped) {
            (true, true) => self.addend = self.addend.wrapping_add(number()?),
            (true, false) => {}
            (false, _) => self.addend = 0,
        }
        Some(())
    }
}

impl Iterator for AndroidPackedIter<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.left == 0 { None } else { self.step() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for AndroidPackedIter<'_> {}
impl core::iter::FusedIterator for AndroidPackedIter<'_> {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    /// Three relative relocations 8 bytes apart, then one with members of its own.
    #[rustfmt::skip]
    const BYTES: [u8; 21] = [
        b'A', b'P', b'S', b'2', 4, 0x80, 0x20, // 4 of them, from 0x1000
        3, 1 | 2 | 4 | 8, 8, 23, 0x10,         // delta 8, info 23, addend + 16
        1, 8, 0x78, 0x81, 0x80, 0x80, 0x80, 0x10, 0x7f, // delta -8, info 1 | 1 << 32, addend - 1
    ];

    #[test]
    fn groups() {
        let packed = AndroidPacked::parse(&BYTES, true, true, 4, 0).unwrap();
        let record = |offset, symbol, r#type, addend| Record {
            offset,
            symbol,
            r#type,
            addend: Some(addend),
        };
        let first = [0x1008, 0x1010, 0x1018].map(|offset| record(offset, 0, 23, 16));
        assert!(packed.iter().eq(first.into_iter().chain([record(0x1010, 1, 1, 15)])));
        assert_eq!((packed.len(), packed.is_empty()), (4, false));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for end in 0..BYTES.len() {
            assert!(AndroidPacked::parse(&BYTES[..end], true, true, 4, 0x40).is_err(), "{end}");
        }
    }

    #[test]
    fn errors() {
        let error = |bytes: &[u8], limit| {
            AndroidPacked::parse(bytes, true, true, limit, 0x40).err().unwrap().to_string()
        };
        assert_eq!(error(b"APS1", 9), "magic of packed relocations is 0x41505331 at offset 0x40");
        assert_eq!(
            error(&BYTES, 3),
            "4 packed relocations at offset 0x40 are outside its 0x3 bytes"
        );
        assert_eq!(
            error(&BYTES[..9], 4),
            "packed relocation at offset 0x49 is outside its 0x9 bytes"
        );
        let group = "size of a group of packed relocations is";
        assert_eq!(
            error(b"APS2\x02\0\x03\x0f\0\0\0", 9),
            std::format!("{group} 0x3 at offset 0x48")
        );
        assert_eq!(error(b"APS2\x02\0\0\0\0\0\0", 9), std::format!("{group} 0x0 at offset 0x48"));
        assert_eq!(
            error(b"APS2\x02\0\x7f\0\0\0\0", 9),
            std::format!("{group} 0xffffffffffffffff at offset 0x48")
        );
    }
}
