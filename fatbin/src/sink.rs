//! A buffer that is filled from its start.

use crate::error::{Error, ErrorKind};
use zerocopy::{Immutable, IntoBytes};

/// The caller's buffer, and how much of it is written.
pub(crate) struct Sink<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl<'b> Sink<'b> {
    /// A buffer that must have `needed` bytes.
    pub(crate) fn new(buffer: &'b mut [u8], needed: usize) -> Result<Self, Error> {
        if buffer.len() == needed {
            return Ok(Self { buffer, at: 0 });
        }
        let kind = ErrorKind::Buffer { size: buffer.len() as u64, needed: needed as u64 };
        Err(Error { at: 0, kind })
    }

    /// Bytes written.
    pub(crate) const fn at(&self) -> u64 {
        self.at as u64
    }

    /// Writes bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.at.saturating_add(bytes.len());
        let left = self.buffer.len().saturating_sub(self.at) as u64;
        let full = ErrorKind::Outside { what: "written bytes", size: bytes.len() as u64, left };
        let place =
            self.buffer.get_mut(self.at..end).ok_or(Error { at: self.at as u64, kind: full })?;
        place.iter_mut().zip(bytes).for_each(|(to, &from)| *to = from);
        self.at = end;
        Ok(())
    }

    /// Writes a raw struct.
    pub(crate) fn row<T: IntoBytes + Immutable>(&mut self, row: &T) -> Result<(), Error> {
        self.bytes(row.as_bytes())
    }

    /// Writes runs of bytes, then zeros up to a multiple of 8 bytes.
    pub(crate) fn padded(&mut self, runs: &[&[u8]]) -> Result<(), Error> {
        let start = self.at;
        runs.iter().try_for_each(|bytes| self.bytes(bytes))?;
        let behind = self.at.saturating_sub(start) % 8;
        let zeros = [0; 8];
        self.bytes(zeros.get(behind..).filter(|_| behind != 0).unwrap_or(&[]))
    }
}
