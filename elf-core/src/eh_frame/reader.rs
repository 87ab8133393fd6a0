//! Bytes of a table, taken from the front, and where they are.

use super::error::{Error, ErrorKind};
use crate::records::leb::Leb;

/// A stretch of the table that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: Leb<'a>,
    /// The offset of its end in the table.
    end: u64,
}

impl<'a> Reader<'a> {
    /// Bytes that end at an offset of the table.
    pub(super) const fn new(bytes: &'a [u8], end: u64) -> Self {
        Self { rest: Leb(bytes), end }
    }

    /// The offset of the next byte.
    pub(super) const fn at(&self) -> u64 {
        self.end.saturating_sub(self.rest.0.len() as u64)
    }

    /// Whether nothing is left.
    pub(super) const fn is_empty(&self) -> bool {
        self.rest.0.is_empty()
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> u64 {
        self.rest.0.len() as u64
    }

    /// The bytes that are left.
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.rest.0
    }

    /// Goes on with `rest`, which is the end of the bytes that are left.
    pub(super) const fn go_on(&mut self, rest: &'a [u8]) {
        self.rest.0 = rest;
    }

    /// An error at the next byte.
    pub(super) const fn error(&self, kind: ErrorKind) -> Error {
        Error { at: self.at(), kind }
    }

    fn outside(&self, what: &'static str) -> Error {
        self.error(ErrorKind::Outside { what })
    }

    /// Takes a byte.
    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        self.rest.byte().ok_or_else(|| self.outside(what))
    }

    /// Takes a ULEB128.
    pub(super) fn unsigned(&mut self, what: &'static str) -> Result<u64, Error> {
        let before = *self;
        self.rest.unsigned().ok_or_else(|| before.outside(what))
    }

    /// Takes an SLEB128.
    pub(super) fn signed(&mut self, what: &'static str) -> Result<i64, Error> {
        let before = *self;
        self.rest.signed().ok_or_else(|| before.outside(what))
    }

    /// Takes a number of `N` bytes, at most 8, without its sign.
    pub(super) fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<u64, Error> {
        let (bytes, rest) =
            self.rest.0.split_first_chunk::<N>().ok_or_else(|| self.outside(what))?;
        self.rest.0 = rest;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Takes `size` bytes, to be read on their own.
    pub(super) fn part(&mut self, size: u64, what: &'static str) -> Result<Self, Error> {
        let split = usize::try_from(size).ok().and_then(|size| self.rest.0.split_at_checked(size));
        let (part, rest) = split.ok_or_else(|| self.outside(what))?;
        let end = self.at().saturating_add(size);
        self.rest.0 = rest;
        Ok(Self::new(part, end))
    }

    /// Takes bytes up to a zero, and the zero.
    pub(super) fn text(&mut self, what: &'static str) -> Result<Self, Error> {
        let size = self.rest.0.iter().position(|byte| *byte == 0);
        let size = size.ok_or_else(|| self.outside(what))?;
        let text = self.part(size as u64, what)?;
        self.byte(what)?;
        Ok(text)
    }
}
