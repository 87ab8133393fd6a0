//! Build attributes (`.ARM.attributes`; Addenda to the ABI, "Build Attributes"): which processors an object is for, and what it has
//! chosen that others must have chosen, too.
//!
//! An object without them says nothing: its code is taken for the least of processors, on which everything else runs as well.

use elf_core::names::{ELFOSABI_ARM_FDPIC, SHT_ARM_ATTRIBUTES};
use elf_core::{BuildAttributeForm, BuildAttributes, Error, ErrorKind, File, build_attributes};

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
/// [`BuildAttributes::processor`]: nothing says that branches of Thumb code span more than 4 MiB, unless another object's [`J1J2`] does.
pub const SHORT_BRANCHES: u32 = 1 << 5;

/// What must be alike where objects say it. Each field has the value of its tag and 1. That of `wchar_t` (18) and enumerations (26) is none
/// of it: linkers warn of these or say nothing, for an object may have neither.
pub(crate) const EQUAL: &[(u32, &str)] = &[
    (VFP_ARGS, "the float ABI (Tag_ABI_VFP_args)"),
    (R9, "the use of R9 (Tag_ABI_PCS_R9_use)"),
    (PROFILE, "the profile of the processor (Tag_CPU_arch_profile)"),
    (HALF_FORMAT, "the format of half precision (Tag_ABI_FP_16bit_format)"),
];

const VFP_ARGS: u32 = 0xf;
const R9: u32 = 0xf0;
const PROFILE: u32 = 0xff00;
const HALF_FORMAT: u32 = 0xf_0000;

const TAG_CPU_ARCH: u32 = 6;
const TAG_CPU_ARCH_PROFILE: u32 = 7;
const TAG_ABI_PCS_R9_USE: u32 = 14;
const TAG_ABI_FP_NUMBER_MODEL: u32 = 23;
const TAG_ABI_VFP_ARGS: u32 = 28;
const TAG_COMPATIBILITY: u32 = 32;
const TAG_ABI_FP_16BIT_FORMAT: u32 = 38;

/// The values of the tags that matter.
#[derive(Default)]
struct Tags {
    arch: Option<u32>,
    profile: u32,
    r9: u32,
    numbers: u32,
    vfp_args: u32,
    half_format: u32,
    compatibility: u32,
}

impl Tags {
    const fn take(&mut self, tag: u32, value: u32) {
        match tag {
            TAG_CPU_ARCH => self.arch = Some(value),
            TAG_CPU_ARCH_PROFILE => self.profile = value,
            TAG_ABI_PCS_R9_USE => self.r9 = value,
            TAG_ABI_FP_NUMBER_MODEL => self.numbers = value,
            TAG_ABI_VFP_ARGS => self.vfp_args = value,
            TAG_COMPATIBILITY => self.compatibility = value,
            TAG_ABI_FP_16BIT_FORMAT => self.half_format = value,
            _ => {}
        }
    }
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
    build_attributes(file, SHT_ARM_ATTRIBUTES, b"aeabi", form, |tag, value| tags.take(tag, value))?;
    // more than 1: it does not conform to the ABI, but to what its vendor has agreed on with others
    if tags.compatibility > 1 {
        let value = tags.compatibility.into();
        let kind = ErrorKind::Invalid { what: "Tag_compatibility", value };
        return Err(Error { at: 0, kind });
    }
    let mut attributes = meaning(&tags);
    if is_big && matches!(tags.arch, Some(10..)) {
        attributes.processor |= BE8;
    }
    Ok(attributes)
}

/// What the tags mean together.
fn meaning(tags: &Tags) -> BuildAttributes {
    let Some(arch) = tags.arch else {
        return BuildAttributes { processor: SHORT_BRANCHES, abi: 0 };
    };
    let is_m = matches!(arch, 11 | 12 | 13 | 16 | 17 | 21) || tags.profile == b'M'.into();
    let mut processor = 0;
    if arch >= 3 && !is_m {
        processor |= BLX;
    }
    processor |= if arch == 8 || arch >= 10 { J1J2 } else { SHORT_BRANCHES };
    if arch == 8 || arch >= 10 && !matches!(arch, 11 | 12 | 16) {
        processor |= THUMB2;
    }
    if is_m {
        processor |= MICROCONTROLLER;
    }
    let mut abi = 0;
    // code without floating point passes no such arguments; 3 goes together with both others
    if tags.numbers != 0 && tags.vfp_args != 3 {
        abi |= tags.vfp_args.saturating_add(1).min(0xf);
    }
    // 3: not used
    if tags.r9 != 3 {
        abi |= tags.r9.saturating_add(1).min(0xf) << 4;
    }
    // code that uses neither may be for both
    if tags.half_format != 0 {
        abi |= tags.half_format.saturating_add(1).min(0xf) << 16;
    }
    // what is for one of them may be for the others; since Armv8 the architecture says it
    let profile = match tags.profile as u8 {
        _ if is_m => b'M',
        b'A' | b'R' | b'S' => b'A',
        _ if arch >= 14 => b'A',
        _ => return BuildAttributes { processor, abi },
    };
    abi |= u32::from(profile).wrapping_add(1) << 8;
    BuildAttributes { processor, abi }
}

/// What follows a tag.
const fn form(tag: u32) -> BuildAttributeForm {
    match tag {
        TAG_COMPATIBILITY => BuildAttributeForm::Both,
        4 | 5 => BuildAttributeForm::Text,
        _ if tag > TAG_COMPATIBILITY && tag & 1 != 0 => BuildAttributeForm::Text,
        _ => BuildAttributeForm::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(attributes: &[u8]) -> BuildAttributes {
        let mut tags = Tags::default();
        for pair in attributes.as_chunks::<2>().0 {
            tags.take(pair[0].into(), pair[1].into());
        }
        meaning(&tags)
    }

    #[test]
    fn processors() {
        let processor = |arch, profile| meant(&[6, arch, 7, profile]).processor;
        assert_eq!(processor(2, 0), SHORT_BRANCHES, "v4T");
        assert_eq!(processor(3, 0), BLX | SHORT_BRANCHES, "v5T");
        assert_eq!(processor(6, 0), BLX | SHORT_BRANCHES, "v6");
        assert_eq!(processor(8, 0), BLX | J1J2 | THUMB2, "v6T2");
        assert_eq!(processor(10, b'A'), BLX | J1J2 | THUMB2, "v7-A");
        assert_eq!(processor(10, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v7-M");
        assert_eq!(processor(11, b'M'), MICROCONTROLLER | J1J2, "v6-M");
        assert_eq!(processor(13, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v7E-M");
        assert_eq!(processor(16, b'M'), MICROCONTROLLER | J1J2, "v8-M without the main extension");
        assert_eq!(processor(17, b'M'), MICROCONTROLLER | J1J2 | THUMB2, "v8-M with it");
        assert_eq!(meant(&[]), BuildAttributes { processor: SHORT_BRANCHES, abi: 0 });
    }

    #[test]
    fn choices() {
        let abi = |attributes: &[u8]| meant(attributes).abi & VFP_ARGS;
        assert_eq!(abi(&[6, 10, 28, 1]), 0, "no floating point");
        assert_eq!(abi(&[6, 10, 23, 3, 28, 1]), 2);
        assert_eq!(abi(&[6, 10, 23, 3]), 1);
        assert_eq!(abi(&[6, 10, 23, 3, 28, 3]), 0, "both");
    }

    #[test]
    fn profiles() {
        let profile = |attributes: &[u8]| meant(attributes).abi & PROFILE;
        let application = profile(&[6, 10, 7, b'A']);
        assert_ne!(application, 0);
        assert_eq!(profile(&[6, 10, 7, b'R']), application);
        assert_ne!(profile(&[6, 10, 7, b'M']), application);
        assert_eq!(profile(&[6, 10]), 0, "code for all");
        // since Armv8 there is no tag of it
        for arch in [14, 15, 18, 19, 20, 22] {
            assert_eq!(profile(&[6, arch]), application, "{arch}");
        }
        for arch in [16, 17, 21] {
            assert_eq!(profile(&[6, arch]), profile(&[6, 10, 7, b'M']), "{arch}");
        }
    }

    #[test]
    fn formats_of_half_precision() {
        let format = |attributes: &[u8]| meant(attributes).abi & HALF_FORMAT;
        assert_eq!(format(&[6, 10]), 0);
        assert_eq!(format(&[6, 10, 38, 0]), 0, "neither");
        assert_ne!(format(&[6, 10, 38, 1]), 0);
        assert_ne!(format(&[6, 10, 38, 1]), format(&[6, 10, 38, 2]));
    }

    #[test]
    fn forms() {
        for (tag, expected) in [
            (4, BuildAttributeForm::Text),
            (5, BuildAttributeForm::Text),
            (6, BuildAttributeForm::Number),
            (31, BuildAttributeForm::Number),
            (32, BuildAttributeForm::Both),
            (36, BuildAttributeForm::Number),
            (67, BuildAttributeForm::Text),
        ] {
            assert_eq!(form(tag), expected, "{tag}");
        }
    }
}
