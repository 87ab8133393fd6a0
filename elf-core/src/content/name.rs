//! Names: bytes that are mostly, not always, UTF-8.

use crate::error::{Error, ErrorKind};
use core::fmt::{self, Write};

/// The name of a section or symbol: the bytes before the NUL.
///
/// Shown with U+FFFD for what is no UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'a>(pub &'a [u8]);

impl<'a> Name<'a> {
    /// The bytes of the name.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The name as text, if it is UTF-8.
    #[must_use]
    pub const fn to_str(self) -> Option<&'a str> {
        match core::str::from_utf8(self.0) {
            Ok(text) => Some(text),
            Err(_) => None,
        }
    }

    /// Whether there is no name.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Name<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.to_str() {
            return f.pad(text);
        }
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        fmt::Display::fmt(&self.0.escape_ascii(), f)?;
        f.write_char('"')
    }
}

/// A string table: NUL-terminated strings, named by their offset (gABI ch. 4, "String Table").
#[derive(Clone, Copy, Debug, Default)]
pub struct StringTable<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> StringTable<'a> {
    /// A table of these bytes, which lie at file offset `at`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { bytes, at }
    }

    /// All bytes of the table.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The string that starts at `offset` bytes. Offset 0 is the empty string, even in an empty table.
    ///
    /// # Errors
    /// [`ErrorKind::NoString`] if it starts outside the table or has no end in it.
    #[inline]
    pub fn get(&self, offset: u32) -> Result<Name<'a>, Error> {
        if offset == 0 && self.bytes.first().is_none_or(|&byte| byte == 0) {
            return Ok(Name(&[]));
        }
        let table = self.bytes.len() as u64;
        usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .and_then(until_nul)
            .map(Name)
            .ok_or(Error { at: self.at, kind: ErrorKind::NoString { offset, table } })
    }
}

/// The bytes before the first NUL.
#[inline]
pub(crate) fn until_nul(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    bytes.get(..end)
}
