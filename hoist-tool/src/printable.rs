//! Names on a terminal: whatever bytes they are, they stay on their line and in their column.

use core::fmt;

use elf_core::Name;

/// A name or text with its control characters and what is no UTF-8 escaped (`\n`, `\u{1b}`, `\xff`).
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
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(at) = rest.find(char::is_control) {
                let (before, after) = rest.split_at(at);
                f.write_str(before)?;
                let mut chars = after.chars();
                if let Some(control) = chars.next() {
                    write!(f, "{}", control.escape_default())?;
                }
                rest = chars.as_str();
            }
            f.write_str(rest)?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Printable<'_> {
    /// As text with U+FFFD for what is no UTF-8: JSON escapes control characters itself.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match core::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_str(&Name(self.0)),
        }
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
    }
}
