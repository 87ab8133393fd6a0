//! Build attributes (`.ARM.attributes`; Addenda to the ABI, "Build Attributes"): which processors an object is for, and what it has
//! chosen that others must have chosen, too.
//!
//! An object without them says nothing: its code is taken for the least of processors, on which everything else runs as well.

use elf_core::names::{ELFOSABI_ARM_FDPIC, SHT_ARM_ATTRIBUTES};
use elf_core::{BuildAttributes, Error, ErrorKind, File};

/// [`BuildAttributes::processor`]: BLX to an immediate (Armv5T and later, not M-profile).
pub const BLX: u32 = 1;
/// [`BuildAttributes::processor`]: branches of Thumb code span 16 MiB (Armv6T2 and later, Armv6-M).
pub const J1J2: u32 = 1 << 1;
/// [`BuildAttributes::processor`]: all of Thumb-2, with MOVW and loads of 32 bits.
pub const THUMB2: u32 = 1 << 2;

/// [`BuildAttributes::processor`]: code is little-endian wherever data are big-endian, and that of the object is still to be turned around
/// (BE8; Armv7 and later, Armv6-M).
pub const BE8: u32 = 1 << 3;
/// [`BuildAttributes::processor`]: M-profile, on which no dynamic linker makes a GOT.
pub const MICROCONTROLLER: u32 = 1 << 4;

/// What must be alike where objects say it. Each field has the value of its tag and 1. That of `wchar_t` (18) and enumerations (26) is none
/// of it: linkers warn of these or say nothing, for an object may have neither.
pub(crate) const EQUAL: &[(u32, &str)] = &[
    (VFP_ARGS, "the float ABI (Tag_ABI_VFP_args)"),
    (R9, "the use of R9 (Tag_ABI_PCS_R9_use)"),
    (PROFILE, "the profile of the processor (Tag_CPU_arch_profile)"),
];

const VFP_ARGS: u32 = 0xf;
const R9: u32 = 0xf0;
const PROFILE: u32 = 0xff00;

const TAG_FILE: u64 = 1;
const TAG_CPU_ARCH: u64 = 6;
const TAG_CPU_ARCH_PROFILE: u64 = 7;
const TAG_ABI_PCS_R9_USE: u64 = 14;
const TAG_ABI_FP_NUMBER_MODEL: u64 = 23;
const TAG_ABI_VFP_ARGS: u64 = 28;
const TAG_COMPATIBILITY: u64 = 32;

/// The values of the tags that matter.
#[derive(Default)]
struct Tags {
    arch: Option<u64>,
    profile: u64,
    r9: u64,
    numbers: u64,
    vfp_args: u64,
}

/// What the attributes of `file` say; an error of one for an ABI of its own.
pub(crate) fn of(file: &File<'_>) -> Result<BuildAttributes, Error> {
    // functions are descriptors there, and R9 is a base that their callers set: no other code can call them
    let os_abi = file.header().os_abi;
    if os_abi == ELFOSABI_ARM_FDPIC {
        let what = "e_ident[EI_OSABI] (ELFOSABI_ARM_FDPIC)";
        return Err(Error { at: 7, kind: ErrorKind::Invalid { what, value: os_abi.into() } });
    }
    let mut tags = Tags::default();
    let is_big = file.encoding().is_big_endian();
    file.sections().try_for_each(|header| {
        if header.r#type != SHT_ARM_ATTRIBUTES {
            return Ok(());
        }
        let bytes = file.section_data(&header)?;
        let damaged = Error {
            at: header.offset,
            kind: ErrorKind::Invalid { what: "build attributes", value: header.size },
        };
        read(bytes, is_big, &mut tags).ok_or(damaged)
    })?;
    let mut attributes = meaning(&tags);
    if is_big && matches!(tags.arch, Some(10..)) {
        attributes.processor |= BE8;
    }
    Ok(attributes)
}

/// What the tags mean together.
fn meaning(tags: &Tags) -> BuildAttributes {
    let Some(arch) = tags.arch else { return BuildAttributes::default() };
    let is_m = matches!(arch, 11 | 12 | 13 | 16 | 17 | 21) || tags.profile == b'M'.into();
    let mut processor = 0;
    if arch >= 3 && !is_m {
        processor |= BLX;
    }
    if arch == 8 || arch >= 10 {
        processor |= J1J2;
    }
    if arch == 8 || arch >= 10 && !matches!(arch, 11 | 12 | 16) {
        processor |= THUMB2;
    }
    if is_m {
        processor |= MICROCONTROLLER;
    }
    let mut abi = 0;
    // code without floating point passes no such arguments; 3 goes together with both others
    if tags.numbers != 0 && tags.vfp_args != 3 {
        abi |= (tags.vfp_args as u32).saturating_add(1).min(0xf);
    }
    // 3: not used
    if tags.r9 != 3 {
        abi |= (tags.r9 as u32).saturating_add(1).min(0xf) << 4;
    }
    // what is for one of them may be for the others
    let profile = match tags.profile as u8 {
        _ if is_m => b'M',
        b'A' | b'R' | b'S' => b'A',
        _ => return BuildAttributes { processor, abi },
    };
    abi |= u32::from(profile).wrapping_add(1) << 8;
    BuildAttributes { processor, abi }
}

/// Reads a section: the letter A, then subsections with a size and the name of who defines them.
fn read(bytes: &[u8], is_big: bool, tags: &mut Tags) -> Option<()> {
    let (version, mut rest) = bytes.split_first()?;
    if *version != b'A' {
        return None;
    }
    while !rest.is_empty() {
        let (section, behind) = cut(rest, 0, is_big)?;
        rest = behind;
        let (name, mut section) = text(section)?;
        if name != b"aeabi" {
            continue;
        }
        while !section.is_empty() {
            let mut part = section;
            let tag = number(&mut part)?;
            let head = section.len().checked_sub(part.len())?;
            let (attributes, behind) = cut(section, head, is_big)?;
            section = behind;
            // what is said of single sections or symbols is deprecated
            if tag == TAG_FILE {
                read_tags(attributes, tags)?;
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

/// A ULEB128 number; bits beyond 64 are lost.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u32::MAX).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).unbounded_shl(shift);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads tags and their values: numbers or strings, as the tag says.
fn read_tags(mut rest: &[u8], tags: &mut Tags) -> Option<()> {
    while !rest.is_empty() {
        let tag = number(&mut rest)?;
        let is_text = matches!(tag, 4 | 5) || tag > TAG_COMPATIBILITY && tag & 1 != 0;
        if is_text || tag == TAG_COMPATIBILITY {
            if !is_text {
                number(&mut rest)?;
            }
            rest = text(rest)?.1;
            continue;
        }
        let value = number(&mut rest)?;
        match tag {
            TAG_CPU_ARCH => tags.arch = Some(value),
            TAG_CPU_ARCH_PROFILE => tags.profile = value,
            TAG_ABI_PCS_R9_USE => tags.r9 = value,
            TAG_ABI_FP_NUMBER_MODEL => tags.numbers = value,
            TAG_ABI_VFP_ARGS => tags.vfp_args = value,
            _ => {}
        }
    }
    Some(())
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

    fn meant(attributes: &[u8]) -> BuildAttributes {
        let mut results = [false, true].map(|is_big| {
            let mut tags = Tags::default();
            read(&section(attributes, is_big), is_big, &mut tags).unwrap();
            meaning(&tags)
        });
        assert_eq!(results[0], results[1]);
        results.reverse();
        results[0]
    }

    #[test]
    fn processors() {
        let processor = |arch, profile| meant(&[6, arch, 7, profile]).processor;
        assert_eq!(processor(2, 0), 0, "v4T");
        assert_eq!(processor(3, 0), BLX, "v5T");
        assert_eq!(processor(6, 0), BLX, "v6");
        assert_eq!(processor(8, 0), BLX | J1J2 | THUMB2, "v6T2");
        assert_eq!(processor(10, b'A'), BLX | J1J2 | THUMB2, "v7-A");
        assert_eq!(processor(10, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v7-M");
        assert_eq!(processor(11, b'M'), MICROCONTROLLER | J1J2, "v6-M");
        assert_eq!(processor(13, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v7E-M");
        assert_eq!(processor(16, b'M'), MICROCONTROLLER | J1J2, "v8-M without the main extension");
        assert_eq!(processor(17, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v8-M with it");
        assert_eq!(meant(&[]), BuildAttributes::default());
    }

    #[test]
    fn choices() {
        let abi = |attributes: &[u8]| meant(attributes).abi & VFP_ARGS;
        assert_eq!(abi(&[6, 10, 28, 1]), 0, "no floating point");
        assert_eq!(abi(&[6, 10, 23, 3, 28, 1]), 2);
        assert_eq!(abi(&[6, 10, 23, 3]), 1);
        assert_eq!(abi(&[6, 10, 23, 3, 28, 3]), 0, "both");
        // behind strings, one of them under a tag of two bytes
        assert_eq!(abi(&[5, b'x', 0, 6, 10, 0x80 | 67, 0, b'2', 0, 32, 1, b'g', 0, 23, 3]), 1);
    }

    #[test]
    fn damage_is_found() {
        let whole = section(&[5, b'x', 0, 6, 10], false);
        for end in 0..whole.len() {
            // without its letter, or cut off
            assert!(read(&whole[..end], false, &mut Tags::default()).is_none() || end == 1);
        }
        assert!(read(&section(&[6], false), false, &mut Tags::default()).is_none());
        assert!(read(&section(&[5, b'x'], false), false, &mut Tags::default()).is_none());
        assert!(read(&section(&[0x80; 20], false), false, &mut Tags::default()).is_none());
        // a size that counts itself short would never end
        assert!(read(b"A\0\0\0\0aeabi\0", false, &mut Tags::default()).is_none());
    }
}
