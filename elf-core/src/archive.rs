//! Static libraries: the members of an `ar` archive, of the GNU, the BSD, the thin and the COFF kind.
//!
//! ```
//! use elf_core::archive::Archive;
//!
//! let bytes = b"!<arch>\na.txt/          0           0     0     644     3         `\nabc\n";
//! let archive = Archive::parse(bytes)?;
//! let member = archive.members().next().unwrap()?;
//! assert_eq!((member.name, member.data), ("a.txt".into(), Some(&b"abc"[..])));
//! # Ok::<_, elf_core::Error>(())
//! ```

mod magic;

pub use magic::{MAGIC, THIN_MAGIC};

use crate::content::name::Name;
use crate::error::{Error, ErrorKind};
use crate::table::slices;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The header of a member, in text padded with blanks: `struct ar_hdr` (`<ar.h>`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// The name, or where it is.
    pub ar_name: [u8; 16],
    /// Time of modification, decimal.
    pub ar_date: [u8; 12],
    /// User, decimal.
    pub ar_uid: [u8; 6],
    /// Group, decimal.
    pub ar_gid: [u8; 6],
    /// Mode, octal.
    pub ar_mode: [u8; 8],
    /// Size in bytes, decimal.
    pub ar_size: [u8; 10],
    /// A grave accent and a line feed.
    pub ar_fmag: [u8; 2],
}
const _: () = assert!(size_of::<Header>() == 60 && align_of::<Header>() == 1);

const HEADER: u64 = size_of::<Header>() as u64;
const WHAT: &str = "archive member header";

/// An archive: a magic, and members one after another.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    thin: bool,
}

impl<'a> Archive<'a> {
    /// Reads the magic.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if it is neither [`MAGIC`] nor [`THIN_MAGIC`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let thin = bytes.starts_with(THIN_MAGIC);
        if thin || bytes.starts_with(MAGIC) {
            return Ok(Self { bytes, thin });
        }
        let value = bytes.iter().take(8).fold(0, |value, &byte| value << 8 | u64::from(byte));
        Err(Error { at: 0, kind: ErrorKind::Invalid { what: "archive magic", value } })
    }

    /// Whether the members are files of their own, which the archive only names.
    #[must_use]
    pub const fn is_thin(&self) -> bool {
        self.thin
    }

    /// The members that are files, in order: without tables of symbols and of names.
    #[must_use]
    pub const fn members(&self) -> Members<'a> {
        Members { bytes: self.bytes, thin: self.thin, at: MAGIC.len() as u64, long_names: &[] }
    }
}

/// A file in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name; in a thin archive a path relative to the archive's folder.
    pub name: Name<'a>,
    /// Offset of its header in the archive.
    pub header: u64,
    /// Offset of its bytes in the archive, if they are in it.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes; none in a thin archive.
    pub data: Option<&'a [u8]>,
}

/// The files in an archive in order. A member that cannot be read is the last.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    bytes: &'a [u8],
    thin: bool,
    at: u64,
    long_names: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.bytes.len() as u64 {
            match self.step() {
                Ok(None) => {}
                Ok(Some(member)) => return Some(Ok(member)),
                Err(error) => {
                    self.at = u64::MAX;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl core::iter::FusedIterator for Members<'_> {}

impl<'a> Members<'a> {
    /// Reads the member at hand and goes on to the next; none if it is a table.
    fn step(&mut self) -> Result<Option<Member<'a>>, Error> {
        let header = self.at;
        let bytes = slices::bytes(self.bytes, WHAT, header, HEADER)?;
        let Ok(row) = Header::ref_from_bytes(bytes) else {
            return Err(Error {
                at: header,
                kind: ErrorKind::Outside { what: WHAT, count: 1, file: 0 },
            });
        };
        if &row.ar_fmag != b"`\n" {
            let value = u64::from(u16::from_be_bytes(row.ar_fmag));
            return Err(Error {
                at: header.saturating_add(58),
                kind: ErrorKind::Invalid { what: "ar_fmag", value },
            });
        }
        let size = decimal(&row.ar_size)
            .ok_or_else(|| invalid("ar_size", header.saturating_add(48), &row.ar_size))?;
        let name = row.ar_name.trim_ascii_end();
        let offset = header.saturating_add(HEADER);
        let table = matches!(name, b"/" | b"/SYM64/" | b"//");
        if self.thin && !table {
            self.at = offset;
            let name = self.name(name, header)?;
            return Ok(Some(Member { name, header, offset, size, data: None }));
        }
        let data = slices::bytes(self.bytes, "archive member", offset, size)?;
        self.at = offset.saturating_add(size).saturating_add(size & 1);
        if name == b"//" {
            self.long_names = data;
        }
        if table {
            return Ok(None);
        }
        // BSD: "#1/" and the size of the name, which stands before the member's bytes and counts as part of them.
        if let Some(digits) = name.strip_prefix(b"#1/") {
            let skip = decimal(digits).ok_or_else(|| invalid("ar_name", header, digits))?;
            let bytes = slices::bytes(data, "archive member name", 0, skip)
                .map_err(|error| Error { at: offset, ..error })?;
            let name = Name(bytes.split(|&byte| byte == 0).next().unwrap_or(bytes));
            if is_bsd_table(name) {
                return Ok(None);
            }
            let (offset, size) = (offset.saturating_add(skip), size.saturating_sub(skip));
            let data = data.get(bytes.len()..).unwrap_or(&[]);
            return Ok(Some(Member { name, header, offset, size, data: Some(data) }));
        }
        let name = self.name(name, header)?;
        Ok((!is_bsd_table(name)).then_some(Member { name, header, offset, size, data: Some(data) }))
    }

    /// A name as System V writes it: `name/`, or `/offset` in the table of long names; as BSD does: `name`.
    fn name(&self, name: &'a [u8], header: u64) -> Result<Name<'a>, Error> {
        let Some(digits) = name.strip_prefix(b"/") else {
            return Ok(Name(name.strip_suffix(b"/").unwrap_or(name)));
        };
        let offset = decimal(digits).ok_or_else(|| invalid("ar_name", header, digits))?;
        let missing = ErrorKind::Invalid { what: "offset of a member's name", value: offset };
        let rest = usize::try_from(offset).ok().and_then(|start| self.long_names.get(start..));
        // GNU ends a name with "/\n", COFF with NUL.
        let line = rest.and_then(|rest| rest.split(|&byte| byte == b'\n' || byte == 0).next());
        line.filter(|line| !line.is_empty())
            .map(|line| Name(line.strip_suffix(b"/").unwrap_or(line)))
            .ok_or(Error { at: header, kind: missing })
    }
}

/// BSD's tables of symbols.
fn is_bsd_table(name: Name<'_>) -> bool {
    name.as_bytes().starts_with(b"__.SYMDEF")
}

/// A decimal number padded with blanks at its end.
fn decimal(field: &[u8]) -> Option<u64> {
    let digits = field.trim_ascii_end();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte.saturating_sub(b'0'))),
        _ => None,
    })
}

/// An error with the start of the text that is no number.
fn invalid(what: &'static str, at: u64, text: &[u8]) -> Error {
    let value = text.iter().take(8).fold(0, |value, &byte| value << 8 | u64::from(byte));
    Error { at, kind: ErrorKind::Invalid { what, value } }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn member(name: &str, data: &str) -> String {
        let pad = if data.len() % 2 == 1 { "\n" } else { "" };
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{data}{pad}", 0, 0, 0, 644, data.len())
    }

    fn read(archive: &str) -> Vec<(String, Option<String>)> {
        let members = Archive::parse(archive.as_bytes()).unwrap().members();
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        members
            .map(Result::unwrap)
            .map(|member| (member.name.to_string(), member.data.map(text)))
            .collect()
    }

    fn expected(list: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        list.iter().map(|&(name, data)| (name.into(), Some(data.into()))).collect()
    }

    #[test]
    fn gnu() {
        let names = "a-name-longer-than-16.o/\nanother-one-that-is-long.o/\n";
        let archive =
            ["!<arch>\n", &member("/", "1234"), &member("//", names), &member("a.o/", "abc")]
                .concat()
                + &member("/0", "x")
                + &member("/25", "yz");
        let list = [
            ("a.o", "abc"),
            ("a-name-longer-than-16.o", "x"),
            ("another-one-that-is-long.o", "yz"),
        ];
        assert_eq!(read(&archive), expected(&list));
    }

    #[test]
    fn bsd() {
        let archive = [
            "!<arch>\n",
            &member("#1/12", "__.SYMDEF\0\0\0...."),
            &member("#1/8", "long.o\0\0abc"),
        ]
        .concat()
            + &member("short.o", "x");
        assert_eq!(read(&archive), expected(&[("long.o", "abc"), ("short.o", "x")]));
    }

    #[test]
    fn coff() {
        let archive = [
            "!<arch>\n",
            &member("/", "12"),
            &member("/", "34"),
            &member("//", "a/b.obj\0c.obj\0"),
        ]
        .concat()
            + &member("/8", "x");
        assert_eq!(read(&archive), expected(&[("c.obj", "x")]));
    }

    #[test]
    fn thin() {
        let header = |name: &str| member(name, "").replace("0         `", "77        `");
        let archive =
            ["!<thin>\n", &member("//", "dir/a.o/\n"), &header("/0"), &header("b.o/")].concat();
        assert_eq!(read(&archive), [("dir/a.o".to_string(), None), ("b.o".to_string(), None)]);
        let sizes = Archive::parse(archive.as_bytes())
            .unwrap()
            .members()
            .map(|member| member.unwrap().size);
        assert_eq!(sizes.collect::<Vec<_>>(), [77, 77]);
    }

    #[test]
    fn an_error_is_the_last() {
        for (archive, at, message) in [
            ("!<arch>\nshort", 8, "archive member header at offset 0x8 is outside its 0xd bytes"),
            (
                &["!<arch>\n", &member("a.o/", "abc").replace('`', "'")].concat(),
                66,
                "ar_fmag is 0x270a at offset 0x42",
            ),
            (
                &["!<arch>\n", &member("/7", "abc")].concat(),
                8,
                "offset of a member's name is 0x7 at offset 0x8",
            ),
            (&["!<arch>\n", &member("#1/9", "abc")].concat(), 68, ""),
            (
                &["!<arch>\n", &member("a.o/", "abc").replace("3         `", "x         `")]
                    .concat(),
                56,
                "",
            ),
        ] {
            let mut members = Archive::parse(archive.as_bytes()).unwrap().members();
            let error = members.next().unwrap().unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(message.is_empty() || error.to_string() == message, "{error}");
            assert!(members.next().is_none());
        }
        assert!(Archive::parse(b"!<arch>").is_err());
    }

    #[test]
    fn every_truncation_ends_early_or_is_an_error() {
        let archive = [
            "!<arch>\n",
            &member("//", "dir/a.o/\n"),
            &member("/0", "abc"),
            &member("b.o/", "defg"),
        ]
        .concat();
        for end in 8..archive.len() {
            let members = Archive::parse(&archive.as_bytes()[..end]).unwrap().members();
            let good = members.clone().filter(Result::is_ok).count();
            assert!(good < 2, "{end}");
            assert!(members.count() <= good + 1);
        }
    }
}
