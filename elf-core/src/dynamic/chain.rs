//! Lists of symbol versions as bytes: records that say where the next one is (LSB, "Symbol Versioning").

use crate::content::name::StringTable;
use crate::error::{Error, ErrorKind};
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
    /// Bytes that records inside others may still take, all of them together: none is a part of two.
    room: u64,
}

impl<'a> Chain<'a> {
    pub(crate) const EMPTY: Self = Self {
        bytes: &[],
        at: 0,
        encoding: Encoding::Elf64Le,
        strings: StringTable::new(&[], 0),
        next: 0,
        left: 0,
        room: 0,
    };

    pub(crate) const fn new(encoding: Encoding, (bytes, at, left, strings): List<'a>) -> Self {
        Self { bytes, at, encoding, strings, next: 0, left, room: bytes.len() as u64 }
    }

    /// The `count` records of `size` bytes that begin `offset` bytes behind the record at hand. `what` is where their number is said.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if there is no room for so many beside those of the records before.
    pub(crate) fn inner(
        &mut self,
        offset: u32,
        what: &'static str,
        count: u16,
        size: usize,
    ) -> Result<Self, Error> {
        let bytes = u64::from(count).saturating_mul(size as u64);
        self.room = self.room.checked_sub(bytes).ok_or(Error {
            at: self.at.saturating_add(self.next),
            kind: ErrorKind::Invalid { what, value: count.into() },
        })?;
        Ok(Self { next: self.next.saturating_add(offset.into()), left: count.into(), ..*self })
    }

    /// Goes on to the record `offset` bytes behind the one at hand; 0 is none.
    pub(crate) const fn go_on(&mut self, offset: u32) {
        self.next = self.next.saturating_add(offset as u64);
        self.left = if offset == 0 { 0 } else { self.left.saturating_sub(1) };
    }
}
