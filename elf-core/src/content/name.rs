//! Names: bytes that are mostly, not always, UTF-8.

use crate::error::{Error, ErrorKind};
use core::fmt::{self, Write};

/// The name of a section or symbol: the bytes before the NUL. Whoever made the file chose them.
///
/// Shown, it stays on its line and in its direction: control characters, marks of direction and separators of lines and paragraphs
/// are escaped (`\n`, `\u{202e}`), as are bytes that are no UTF-8 (`\xff`).
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

    /// The name without its version, and the version, as assemblers write it (`.symver`): `NAME@VERSION`, or `NAME@@VERSION` for
    /// what the name means without a version, which the last part says. `None` if there is no version.
    ///
    /// ```
    /// use elf_core::Name;
    ///
    /// let name = Name::from("memcpy@GLIBC_2.2.5");
    /// assert_eq!(name.version(), Some((Name::from("memcpy"), Name::from("GLIBC_2.2.5"), false)));
    /// assert_eq!(Name::from("f@@V1").version(), Some((Name::from("f"), Name::from("V1"), true)));
    /// assert_eq!(Name::from("f").version(), None);
    /// ```
    #[must_use]
    pub fn version(self) -> Option<(Self, Self, bool)> {
        // looks at many bytes at once, which small machines have no room for
        if cfg!(target_pointer_width = "64") && !self.0.contains(&b'@') {
            return None;
        }
        let at = self.0.iter().position(|byte| *byte == b'@').filter(|at| *at > 0)?;
        let (name, rest) = self.0.split_at_checked(at)?;
        let rest = rest.strip_prefix(b"@")?;
        let (version, is_default) = match rest.strip_prefix(b"@") {
            Some(version) => (version, true),
            None => (rest, false),
        };
        Some((Self(name), Self(version), is_default))
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
        if let Some(text) = self.to_str()
            && !text.chars().any(is_hidden)
        {
            return f.pad(text);
        }
        for chunk in self.0.utf8_chunks() {
            escape(chunk.valid(), f)?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character shows as something else than itself: it moves what stands beside it to another place or line (Unicode Cc,
/// `Bidi_Control`, Zl and Zp), or is a byte order mark.
#[must_use]
pub const fn is_hidden(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Writes a text with its [hidden](is_hidden) characters escaped.
fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some((at, hidden)) = rest.char_indices().find(|(_, character)| is_hidden(*character))
    {
        f.write_str(rest.get(..at).unwrap_or_default())?;
        match hidden {
            '\t' => f.write_str("\\t")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            hidden => write!(f, "\\u{{{:x}}}", u32::from(hidden))?,
        }
        rest = rest.get(at.saturating_add(hidden.len_utf8())..).unwrap_or_default();
    }
    f.write_str(rest)
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;
    use std::{format, vec::Vec};

    #[test]
    fn shown_names_stay_on_their_line() {
        let shown = |bytes: &[u8]| Name(bytes).to_string();
        assert_eq!(shown("main, größe, 関数".as_bytes()), "main, größe, 関数");
        assert_eq!(shown(b"a\nb\tc\x1b[31m\x7f"), r"a\nb\tc\u{1b}[31m\u{7f}");
        assert_eq!(shown("\u{202e}cod\u{2029}\u{85}".as_bytes()), r"\u{202e}cod\u{2029}\u{85}");
        assert_eq!(shown(b"\xff\xfe~\n"), r"\xff\xfe~\n");
        assert_eq!(format!("{:>4}|{:<3}|", Name(b"ab"), Name(b"c")), "  ab|c  |");
    }

    #[test]
    fn nothing_that_is_shown_is_hidden() {
        let every = (0..=0x10_ffff).filter_map(char::from_u32);
        for character in every {
            let text = character.to_string();
            let shown = Name(text.as_bytes()).to_string();
            let is_same = shown == text;
            assert_eq!(is_same, !is_hidden(character), "{character:?}");
            assert!(!shown.chars().any(|c| c.is_control() || is_hidden(c)), "{character:?}");
        }
        let bytes: Vec<u8> = (0..=255).collect();
        assert!(!Name(&bytes).to_string().chars().any(is_hidden));
    }
}
