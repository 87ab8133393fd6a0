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

    /// Whether the string at `offset` is `name`, which has no NUL: found out without a search for its end.
    #[must_use]
    #[inline]
    pub fn is(&self, offset: u32, name: Name<'_>) -> bool {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..));
        let behind = rest.and_then(|rest| rest.strip_prefix(name.0)).and_then(<[u8]>::first);
        match behind {
            Some(byte) => *byte == 0,
            // a table may have no string for no name
            None => offset == 0 && name.is_empty() && self.bytes.is_empty(),
        }
    }
}

/// The bytes before the first NUL.
#[inline]
pub(crate) fn until_nul(bytes: &[u8]) -> Option<&[u8]> {
    // the names of C++ are long: the search by words is worth its start there, where there is room for code
    if cfg!(target_pointer_width = "64")
        && bytes.get(..SHORT).is_some_and(|first| first.iter().all(|byte| *byte != 0))
    {
        return core::ffi::CStr::from_bytes_until_nul(bytes).ok().map(core::ffi::CStr::to_bytes);
    }
    let end = bytes.iter().position(|&byte| byte == 0)?;
    bytes.get(..end)
}

/// Longest name that is searched byte by byte.
const SHORT: usize = 16;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;
    use std::{format, vec::Vec};

    /// Names shorter and longer than what is searched byte by byte, and what `is` says of them.
    #[test]
    fn strings_end_where_they_end() {
        let long = "a".repeat(3 * SHORT);
        for length in 0..long.len() {
            let bytes = format!("\0{}\0rest\0unended", &long[..length]).into_bytes();
            let table = StringTable::new(&bytes, 0);
            for offset in 0..=length as u32 + 1 {
                let name = table.get(offset).unwrap();
                let expected = length.saturating_sub(offset.saturating_sub(1) as usize);
                let expected = if offset == 0 { 0 } else { expected };
                assert_eq!(name, &long[..expected], "{length} {offset}");
                let names = (0..long.len()).map(|length| Name::from(&long[..length]));
                let same = names.filter(|name| table.is(offset, *name));
                assert_eq!(same.collect::<Vec<_>>(), [name], "{length} {offset}");
            }
            let unended = bytes.len() as u32 - 7;
            assert!(table.get(unended).is_err() && !table.is(unended, "unended".into()));
            assert!(!table.is(unended + 8, "".into()));
        }
        let empty = StringTable::new(&[], 0);
        assert!(empty.is(0, "".into()) && !empty.is(1, "".into()) && !empty.is(0, "a".into()));
        let one = StringTable::new(b"x\0", 0);
        assert!(one.is(0, "x".into()) && !one.is(0, "".into()) && one.is(1, "".into()));
    }

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
