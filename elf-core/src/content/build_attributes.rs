//! Build attributes (Addenda to the ABI for the Arm Architecture, "Build Attributes"; RISC-V psABI, "Attributes"): what objects say of how
//! they were built, as numbers and texts under tags.

use crate::error::{Error, ErrorKind};
use crate::file::File;

const TAG_FILE: u32 = 1;

/// What follows a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildAttributeForm {
    /// A number.
    Number,
    /// A text that ends in 0.
    Text,
    /// A number and such a text.
    Both,
}

/// Reads what the sections of this type say in the words of `vendor` of the whole file: gives `take` each tag with a number, and the number.
/// What follows a tag is known from the tag alone. Numbers that are larger than 32 bits hold are the largest of these.
///
/// ```
/// use elf_core::{BuildAttributeForm, File, build_attributes};
/// use elf_core::names::SHT_ARM_ATTRIBUTES;
///
/// # fn example(bytes: &[u8]) -> Result<(), elf_core::Error> {
/// let mut architecture = None;
/// let form = |tag| match tag {
///     4 | 5 => BuildAttributeForm::Text,
///     32 => BuildAttributeForm::Both,
///     _ if tag > 32 && tag & 1 != 0 => BuildAttributeForm::Text,
///     _ => BuildAttributeForm::Number,
/// };
/// build_attributes(&File::parse(bytes)?, SHT_ARM_ATTRIBUTES, b"aeabi", form, |tag, number| {
///     if tag == 6 {
///         architecture = Some(number); // Tag_CPU_arch
///     }
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If such a section cannot be read.
pub fn build_attributes(
    file: &File<'_>,
    section_type: u32,
    vendor: &[u8],
    form: impl Fn(u32) -> BuildAttributeForm,
    mut take: impl FnMut(u32, u32),
) -> Result<(), Error> {
    let is_big = file.encoding().is_big_endian();
    file.sections().try_for_each(|header| {
        if header.r#type != section_type {
            return Ok(());
        }
        let bytes = file.section_data(&header)?;
        let damaged = Error {
            at: header.offset,
            kind: ErrorKind::Invalid { what: "build attributes", value: header.size },
        };
        read(bytes, is_big, vendor, &form, &mut take).ok_or(damaged)
    })
}

/// Reads a section: the letter A, then subsections with a size and the name of who defines them.
fn read(
    bytes: &[u8],
    is_big: bool,
    vendor: &[u8],
    form: &impl Fn(u32) -> BuildAttributeForm,
    take: &mut impl FnMut(u32, u32),
) -> Option<()> {
    let (version, mut rest) = bytes.split_first()?;
    if *version != b'A' {
        return None;
    }
    while !rest.is_empty() {
        let (section, behind) = cut(rest, 0, is_big)?;
        rest = behind;
        let (name, mut section) = text(section)?;
        if name != vendor {
            continue;
        }
        while !section.is_empty() {
            let mut part = section;
            let tag = number(&mut part)?;
            let head = section.len().checked_sub(part.len())?;
            let (mut attributes, behind) = cut(section, head, is_big)?;
            section = behind;
            // what is said of single sections or symbols is deprecated
            while tag == TAG_FILE && !attributes.is_empty() {
                let tag = number(&mut attributes)?;
                let form = form(tag);
                if form != BuildAttributeForm::Text {
                    take(tag, number(&mut attributes)?);
                }
                if form != BuildAttributeForm::Number {
                    attributes = text(attributes)?.1;
                }
            }
        }
    }
    Some(())
}

/// What follows the size that stands `head` bytes from the start, up to its end, and what follows that. The size counts all of it.
fn cut(bytes: &[u8], head: usize, is_big: bool) -> Option<(&[u8], &[u8])> {
    let size = *bytes.get(head..)?.first_chunk::<4>()?;
    let size = if is_big { u32::from_be_bytes(size) } else { u32::from_le_bytes(size) };
    let (own, rest) = bytes.split_at_checked(usize::try_from(size).ok()?)?;
    Some((own.get(head.checked_add(4)?..)?, rest))
}

/// A string that ends in 0, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    // `position` would check its count for overflow, and panic
    let mut ends = (0..bytes.len()).zip(bytes).filter(|(_, byte)| **byte == 0);
    let (end, _) = ends.next()?;
    Some((bytes.get(..end)?, bytes.get(end.checked_add(1)?..)?))
}

/// A ULEB128 number, or the largest of 32 bits if it is larger than that.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (mut value, mut shift) = (0, 0u32);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u32::from(byte & 0x7f);
        let placed = part.unbounded_shl(shift);
        value |= if placed.unbounded_shr(shift) == part { placed } else { u32::MAX };
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift = shift.saturating_add(7);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section of these tags for the whole file.
    fn section(attributes: &[u8], is_big: bool) -> Vec<u8> {
        let size = |size: usize| {
            let size = size as u32;
            if is_big { size.to_be_bytes() } else { size.to_le_bytes() }
        };
        let mut bytes = vec![b'A'];
        bytes.extend(size(4 + 6 + 1 + 4 + attributes.len()));
        bytes.extend(b"aeabi\0\x01");
        bytes.extend(size(1 + 4 + attributes.len()));
        bytes.extend(attributes);
        bytes
    }

    extern crate std;
    use std::vec;
    use std::vec::Vec;

    fn found(bytes: &[u8], is_big: bool) -> Option<Vec<(u32, u32)>> {
        let mut found = Vec::new();
        let form = |tag| match tag {
            5 | 67 => BuildAttributeForm::Text,
            32 => BuildAttributeForm::Both,
            _ => BuildAttributeForm::Number,
        };
        read(bytes, is_big, b"aeabi", &form, &mut |tag, value| found.push((tag, value)))?;
        Some(found)
    }

    #[test]
    fn numbers_are_found_between_texts() {
        let tags = [5, b'x', 0, 6, 0x8a, 1, 67, b'2', 0, 32, 1, b'g', 0, 23, 3];
        for is_big in [false, true] {
            let found = found(&section(&tags, is_big), is_big);
            assert_eq!(found, Some(vec![(6, 0x8a), (32, 1), (23, 3)]));
        }
        let mut others = section(&tags, false);
        others[5..10].copy_from_slice(b"other");
        assert_eq!(found(&others, false), Some(vec![]), "of another vendor");
    }

    #[test]
    fn numbers_are_never_cut_off() {
        let number = |mut bytes: &[u8]| number(&mut bytes);
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Some(u32::MAX));
        assert_eq!(number(&[0x86, 0x80, 0x80, 0x80, 0x10]), Some(u32::MAX), "6 and 2^32");
        assert_eq!(number(&[0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 1]), Some(u32::MAX));
        assert_eq!(number(&[0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), Some(6));
    }

    #[test]
    fn damage_is_found() {
        let whole = section(&[5, b'x', 0, 6, 10], false);
        for end in 0..whole.len() {
            // without its letter, or cut off
            assert!(found(&whole[..end], false).is_none() || end == 1);
        }
        assert!(found(&section(&[6], false), false).is_none());
        assert!(found(&section(&[5, b'x'], false), false).is_none());
        assert!(found(&section(&[0x80; 20], false), false).is_none());
        // a size that counts itself short would never end
        assert!(found(b"A\0\0\0\0aeabi\0", false).is_none());
    }
}
