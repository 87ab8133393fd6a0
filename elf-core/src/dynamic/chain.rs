//! Lists of symbol versions as bytes: records that say where the next one is (LSB, "Symbol Versioning").

use crate::content::name::StringTable;
use crate::views::encoding::Encoding;

/// A list of versions: its bytes, their file offset, the number of records, and where the names are.
pub(crate) type List<'a> = (&'a [u8], u64, u32, StringTable<'a>);

/// Records, each of which says where the next one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: u64,
    pub(crate) encoding: Encoding,
    pub(crate) strings: StringTable<'a>,
    /// Offset of the next record in the bytes.
    pub(crate) next: u64,
    pub(crate) left: u32,
}

impl<'a> Chain<'a> {
    pub(crate) const EMPTY: Self = Self {
        bytes: &[],
        at: 0,
        encoding: Encoding::Elf64Le,
        strings: StringTable::new(&[], 0),
        next: 0,
        left: 0,
    };

    pub(crate) const fn new(encoding: Encoding, (bytes, at, left, strings): List<'a>) -> Self {
        Self { bytes, at, encoding, strings, next: 0, left }
    }

    /// The `count` records that begin `offset` bytes behind the record at hand.
    pub(crate) const fn inner(&self, offset: u32, count: u16) -> Self {
        Self { next: self.next.saturating_add(offset as u64), left: count as u32, ..*self }
    }

    /// Goes on to the record `offset` bytes behind the one at hand; 0 is none.
    pub(crate) const fn go_on(&mut self, offset: u32) {
        self.next = self.next.saturating_add(offset as u64);
        self.left = if offset == 0 { 0 } else { self.left.saturating_sub(1) };
    }
}
