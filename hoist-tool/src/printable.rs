//! Names on a terminal: whatever bytes they are, they stay on their line and in their column.

use core::fmt;

use elf_core::Name;

use crate::demangle::demangled;

/// A name or text, shown as [`Name`] shows it: control characters, marks of direction and what is no UTF-8 escaped.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(&'a [u8]);

impl<'a> From<Name<'a>> for Printable<'a> {
    fn from(name: Name<'a>) -> Self {
        Self(name.as_bytes())
    }
}

impl<'a> From<&'a str> for Printable<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Printable<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Name(self.0).fmt(f)
    }
}

/// A name as it was in the source, if it is mangled and people read it; else as it is.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a>(pub Name<'a>);

impl fmt::Display for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str().and_then(demangled) {
            Some(name) => Name::from(name.as_str()).fmt(f),
            None => self.0.fmt(f),
        }
    }
}

impl<'a> Printable<'a> {
    /// The name as people read it.
    #[must_use]
    pub const fn readable(self) -> Readable<'a> {
        Readable(Name(self.0))
    }
}

impl serde::Serialize for Printable<'_> {
    /// As text with U+FFFD for what is no UTF-8: [JSON](crate::json) escapes other characters itself.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn nothing_leaves_its_line() {
        let shown = |bytes: &[u8]| Printable::from(bytes).to_string();
        assert_eq!(shown("main, größe".as_bytes()), "main, größe");
        assert_eq!(shown(b"a\nb\tc\x1b[31m"), "a\\nb\\tc\\u{1b}[31m");
        assert_eq!(shown(b"\xff\xfe~"), "\\xff\\xfe~");
        assert_eq!(shown("\u{202e}a\u{2028}".as_bytes()), "\\u{202e}a\\u{2028}");
    }
}
