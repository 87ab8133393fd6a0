//! Program properties: the descriptor of a note `NT_GNU_PROPERTY_TYPE_0` (Linux Extensions to gABI).

use crate::error::{Error, ErrorKind};
use crate::structs::raw;
use crate::table::class::Class;
use crate::table::entry;
use crate::table::entry::Entry;
use crate::table::word::{Word, Xword};
use crate::views::encoding::Encoding;
use zerocopy::byteorder::ByteOrder;

/// A program property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property<'a> {
    /// File offset of its head.
    pub at: u64,
    /// `pr_type`: [`property_type`](crate::names::property_type).
    pub r#type: u32,
    /// The data, without the padding.
    pub data: &'a [u8],
    encoding: Encoding,
}

impl Property<'_> {
    /// The data as a number, if they have 4 or 8 bytes: bits or a size, by type.
    #[must_use]
    pub fn value(&self) -> Option<u64> {
        match self.data.len() {
            4 => entry::row::<Word>(self.data, self.encoding, 0, 0).ok().map(u64::from),
            8 => entry::row::<Xword>(self.data, self.encoding, 0, 0).ok(),
            _ => None,
        }
    }
}

/// The properties of a note in order. One that cannot be read is the last.
#[derive(Clone, Debug)]
pub struct Properties<'a> {
    rest: &'a [u8],
    at: u64,
    encoding: Encoding,
}

impl<'a> Properties<'a> {
    /// The properties in `bytes`, which lie at file offset `at`.
    pub(crate) const fn new(bytes: &'a [u8], encoding: Encoding, at: u64) -> Self {
        Self { rest: bytes, at, encoding }
    }

    /// Takes a property; what is left is nothing after an error.
    fn step(&mut self) -> Result<Property<'a>, Error> {
        let (bytes, at) = (core::mem::take(&mut self.rest), self.at);
        let Head { r#type, size } = entry::row::<Head>(bytes, self.encoding, 0, at)?;
        let (start, align) =
            (size_of::<raw::Property>(), if self.encoding.is_64() { 8 } else { 4 });
        let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
        let data = end
            .and_then(|end| Some((bytes.get(start..end)?, end.checked_next_multiple_of(align)?)));
        let outside =
            ErrorKind::Outside { what: "program property", count: 1, file: bytes.len() as u64 };
        let (data, next) = data.ok_or(Error { at, kind: outside })?;
        self.rest = bytes.get(next..).unwrap_or(&[]);
        self.at = at.saturating_add(next as u64);
        Ok(Property { at, r#type, data, encoding: self.encoding })
    }
}

impl<'a> Iterator for Properties<'a> {
    type Item = Result<Property<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() { None } else { Some(self.step()) }
    }
}

impl core::iter::FusedIterator for Properties<'_> {}

/// The head of a property.
struct Head {
    r#type: u32,
    size: u32,
}

impl Entry for Head {
    type View = Self;
    type Raw<C: Class> = raw::Property<C::Order>;
    const WHAT: &'static str = "program property";
}

impl<O: ByteOrder> From<raw::Property<O>> for Head {
    fn from(raw: raw::Property<O>) -> Self {
        Self { r#type: raw.pr_type.get(), size: raw.pr_datasz.get() }
    }
}

#[cfg(all(test, feature = "elf32", feature = "big-endian"))]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// As gcc -fcf-protection writes it for x86-64, and for x32 and i386.
    const WIDE: [u8; 16] = [2, 0, 0, 0xc0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn padding_is_that_of_the_class() {
        let two = [&WIDE[..], &[1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0]].concat();
        let narrow = [&WIDE[..12], &WIDE[..12]].concat();
        let read = |bytes, encoding| -> Vec<_> {
            Properties::new(bytes, encoding, 0)
                .map(|it| it.map(|it| (it.at, it.r#type, it.value())).unwrap())
                .collect()
        };
        let cet = 0xc000_0002;
        assert_eq!(read(&two, Encoding::Elf64Le), [(0, cet, Some(3)), (16, 1, Some(0x10_0000))]);
        assert_eq!(read(&narrow, Encoding::Elf32Le), [(0, cet, Some(3)), (12, cet, Some(3))]);
        assert_eq!(read(&[0, 0, 0, 2, 0, 0, 0, 0], Encoding::Elf64Be), [(0, 2, None)]);
    }

    #[test]
    fn every_truncation_is_an_error() {
        for end in 1..12 {
            let mut properties = Properties::new(&WIDE[..end], Encoding::Elf64Le, 0x50);
            let error = properties.next().unwrap().unwrap_err().to_string();
            assert_eq!(
                error,
                std::format!("program property at offset 0x50 is outside its {end:#x} bytes")
            );
            assert!(properties.next().is_none());
        }
    }
}
