//! The structs of zip files, with the names that APPNOTE has for their fields, shortened.

use std::ops::Range;

use anyhow::{Context as _, Result};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const LOCAL: u32 = 0x0403_4b50;
pub(super) const CENTRAL: u32 = 0x0201_4b50;
/// The end of the directory with sizes of 64 bits, and what says where that is.
pub(super) const END64: u32 = 0x0606_4b50;
pub(super) const LOCATOR: u32 = 0x0706_4b50;
pub(super) const END: u32 = 0x0605_4b50;
pub(super) const DESCRIPTOR: u32 = 0x0807_4b50;
pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;
/// General purpose flags: encrypted; sizes stand behind the data.
pub(super) const ENCRYPTED: u16 = 1;
pub(super) const SIZES_BEHIND: u16 = 8;
/// The name is UTF-8.
pub(super) const UTF8: u16 = 1 << 11;

/// Code page 437 from 0x80 on, which names are in otherwise (appendix D).
const CODE_PAGE: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// A local file header (4.3.7).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Local {
    pub(super) signature: U32,
    pub(super) needed: U16,
    pub(super) flags: U16,
    pub(super) method: U16,
    pub(super) time: U16,
    pub(super) date: U16,
    pub(super) crc: U32,
    pub(super) packed: U32,
    pub(super) size: U32,
    pub(super) name: U16,
    pub(super) extra: U16,
}

/// A file header of the central directory (4.3.12).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Central {
    pub(super) signature: U32,
    pub(super) made_by: U16,
    pub(super) needed: U16,
    pub(super) flags: U16,
    pub(super) method: U16,
    pub(super) time: U16,
    pub(super) date: U16,
    pub(super) crc: U32,
    pub(super) packed: U32,
    pub(super) size: U32,
    pub(super) name: U16,
    pub(super) extra: U16,
    pub(super) comment: U16,
    pub(super) disk: U16,
    pub(super) internal: U16,
    pub(super) external: U32,
    pub(super) offset: U32,
}

/// The end of the central directory (4.3.16).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct End {
    pub(super) signature: U32,
    pub(super) disk: U16,
    pub(super) directory_disk: U16,
    pub(super) count_here: U16,
    pub(super) count: U16,
    pub(super) size: U32,
    pub(super) offset: U32,
    pub(super) comment: U16,
}

/// The end of the central directory with sizes of 64 bits (4.3.14).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct End64 {
    pub(super) signature: U32,
    /// Of what follows.
    pub(super) rest: U64,
    pub(super) made_by: U16,
    pub(super) needed: U16,
    pub(super) disk: U32,
    pub(super) directory_disk: U32,
    pub(super) count_here: U64,
    pub(super) count: U64,
    pub(super) size: U64,
    pub(super) offset: U64,
}

/// What says where the end with sizes of 64 bits is (4.3.15).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Locator {
    pub(super) signature: U32,
    pub(super) disk: U32,
    pub(super) offset: U64,
    pub(super) disks: U32,
}

/// A name as text. Some write UTF-8 and do not say so.
pub(super) fn name(bytes: &[u8], is_utf8: bool) -> String {
    match str::from_utf8(bytes) {
        Ok(name) => name.to_owned(),
        Err(_) if is_utf8 => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => bytes.iter().map(|&byte| letter(byte)).collect(),
    }
}

fn letter(byte: u8) -> char {
    let high = byte.checked_sub(0x80).map(usize::from);
    high.and_then(|at| CODE_PAGE.chars().nth(at)).unwrap_or(char::from(byte))
}

/// What a method of compression is called (4.4.5), behind its number.
pub(super) const fn method(number: u16) -> &'static str {
    match number {
        9 => " (Deflate64)",
        12 => " (bzip2)",
        14 => " (LZMA)",
        93 => " (Zstandard)",
        95 => " (XZ)",
        _ => "",
    }
}

/// The struct at an offset.
pub(super) fn at<T: FromBytes + KnownLayout + Immutable>(
    bytes: &[u8],
    at: u64,
    what: &str,
) -> Result<T> {
    let bytes = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    let found = bytes.and_then(|bytes| T::read_from_prefix(bytes).ok());
    Ok(found.with_context(|| format!("{what} at {at:#x} leaves the file"))?.0)
}

/// The bytes of a range.
pub(super) fn range(bytes: &[u8], range: Range<u64>) -> Result<&[u8]> {
    let found = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let found = found.and_then(|(start, end)| bytes.get(start..end));
    found.with_context(|| format!("{:#x}..{:#x} leaves the file", range.start, range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text() {
        assert_eq!(CODE_PAGE.chars().count(), 128);
        assert_eq!(name(b"l\x82b\xe1\xff.so", false), "lébß\u{a0}.so");
        assert_eq!(name("lébß.so".as_bytes(), false), "lébß.so");
        assert_eq!(name(b"l\x82b.so", true), "l\u{fffd}b.so");
    }
}
