//! Bytes that know where in the file they lie.

use crate::error::{Error, ErrorKind};
use elf_core::Row;
use zerocopy::FromBytes;

/// A part of a file, and where it starts: every error can say the offset in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Span<'a> {
    /// `bytes`, which start at file offset `at`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { bytes, at }
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// File offset of the first byte.
    #[must_use]
    pub const fn at(self) -> u64 {
        self.at
    }

    /// Number of bytes.
    #[must_use]
    pub const fn size(self) -> u64 {
        self.bytes.len() as u64
    }

    /// `size` bytes at `offset` of this span.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they are not all in it.
    pub fn part(self, what: &'static str, offset: u64, size: u64) -> Result<Self, Error> {
        let end = usize::try_from(size).ok();
        self.tail(offset)
            .and_then(|tail| Some(Self { bytes: tail.bytes.get(..end?)?, at: tail.at }))
            .ok_or_else(|| self.outside(what, offset, size))
    }

    /// What lies at `offset` and after it.
    #[must_use]
    pub fn tail(self, offset: u64) -> Option<Self> {
        let bytes = self.bytes.get(usize::try_from(offset).ok()?..)?;
        Some(Self { bytes, at: self.at.saturating_add(offset) })
    }

    /// The raw struct at `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if it is not all in this span.
    pub fn row<T: Row>(self, what: &'static str, offset: u64) -> Result<&'a T, Error> {
        self.tail(offset)
            .and_then(|tail| T::ref_from_prefix(tail.bytes).ok())
            .map(|(row, _)| row)
            .ok_or_else(|| self.outside(what, offset, size_of::<T>() as u64))
    }

    /// `count` raw structs at `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::Outside`] if they are not all in this span.
    pub fn rows<T: Row>(
        self,
        what: &'static str,
        offset: u64,
        count: u64,
    ) -> Result<&'a [T], Error> {
        self.tail(offset)
            .zip(usize::try_from(count).ok())
            .and_then(|(tail, count)| <[T]>::ref_from_prefix_with_elems(tail.bytes, count).ok())
            .map(|(rows, _)| rows)
            .ok_or_else(|| self.outside(what, offset, count.saturating_mul(size_of::<T>() as u64)))
    }

    /// An error at `offset` of this span.
    pub(crate) const fn error(self, offset: u64, kind: ErrorKind) -> Error {
        Error { at: self.at.saturating_add(offset), kind }
    }

    fn outside(self, what: &'static str, offset: u64, size: u64) -> Error {
        self.error(
            offset,
            ErrorKind::Outside { what, size, left: self.size().saturating_sub(offset) },
        )
    }

    /// The first four bytes, little-endian, as far as there are any.
    pub(crate) fn magic(self) -> u32 {
        self.bytes.iter().take(4).rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
    }

    /// The bytes up to the first NUL.
    pub(crate) fn until_nul(self) -> Option<&'a [u8]> {
        let end = self.bytes.iter().position(|&byte| byte == 0)?;
        self.bytes.get(..end)
    }

    /// This span without the zero bytes it starts with.
    pub(crate) fn without_leading_zeros(self) -> Self {
        let zeros = self.bytes.iter().position(|&byte| byte != 0).unwrap_or(self.bytes.len());
        self.tail(zeros as u64).unwrap_or(self)
    }
}

impl<'a> From<&'a [u8]> for Span<'a> {
    /// A whole file.
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes, 0)
    }
}

impl core::fmt::Debug for Span<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x} bytes at {:#x}", self.size(), self.at)
    }
}
