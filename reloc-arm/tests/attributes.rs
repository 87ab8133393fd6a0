//! What attributes of an object say, as files have them.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use elf_core::{Arch as _, BuildAttributes, Error, File};
use reloc_arm::Arm;
use reloc_arm::attributes::{BE8, BLX, J1J2, MICROCONTROLLER, SHORT_BRANCHES, THUMB2};

const OBJECT: &[u8] = include_bytes!("../../fixtures/arm/elftest.o");

fn said(bytes: &[u8]) -> Result<BuildAttributes, Error> {
    Arm::build_attributes(&File::parse(bytes).unwrap())
}

#[test]
fn of_compilers() {
    for (bytes, processor) in [
        (OBJECT, BLX | J1J2 | THUMB2),
        (
            include_bytes!("../../fixtures/arm/models-clang19-O2-m4.o"),
            MICROCONTROLLER | J1J2 | THUMB2,
        ),
        (include_bytes!("../../fixtures/arm/models-clang19-O2-v6m.o"), MICROCONTROLLER | J1J2),
        (include_bytes!("../../fixtures/arm/models-clang19-O2-v5.o"), BLX | SHORT_BRANCHES),
        (include_bytes!("../../fixtures/arm-be8/models-gcc12-O2-arm.o"), BLX | J1J2 | THUMB2 | BE8),
        // before Armv7 code has the byte order of data
        (include_bytes!("../../fixtures/arm/models-big-endian.o"), BLX | SHORT_BRANCHES),
    ] {
        assert_eq!(said(bytes).unwrap().processor, processor);
    }
}

/// An object with other tags than those of `Tag_ABI_PCS_RW_data` and the two behind it.
fn with(tags: [u8; 6]) -> Result<BuildAttributes, Error> {
    let mut bytes = OBJECT.to_vec();
    let old = [0x0f, 0x01, 0x10, 0x01, 0x11, 0x02];
    let at = bytes.windows(old.len()).position(|it| it == old).unwrap();
    bytes[at..at + tags.len()].copy_from_slice(&tags);
    said(&bytes)
}

#[test]
fn of_vendors() {
    // Tag_compatibility, a number and a text: who conforms to the ABI says 1 at most
    for (number, is_taken) in [(0, true), (1, true), (2, false), (0x7f, false)] {
        let tags = with([32, number, 0, 32, number, 0]);
        assert_eq!(tags.is_ok(), is_taken, "{number}");
    }
    let why = with([32, 2, 0, 32, 2, 0]).unwrap_err().to_string();
    assert!(why.contains("Tag_compatibility"), "{why}");
    // Tag_ABI_PCS_R9_use, the last of which counts
    let plain = said(OBJECT).unwrap();
    let (sb, tls) = (with([14, 1, 16, 1, 17, 2]).unwrap(), with([14, 2, 16, 1, 17, 2]).unwrap());
    assert!(sb.abi != plain.abi && tls.abi != plain.abi && sb.abi != tls.abi);
    let mut fdpic = OBJECT.to_vec();
    fdpic[7] = 65;
    let why = said(&fdpic).unwrap_err().to_string();
    assert!(why.contains("ELFOSABI_ARM_FDPIC"), "{why}");
}
