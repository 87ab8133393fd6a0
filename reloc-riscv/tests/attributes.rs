//! What attributes of an object say, as files have them.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use elf_core::{Arch, BuildAttributes, File};
use reloc_riscv::{Rv32, Rv64};

const OBJECT: &[u8] = include_bytes!("../../fixtures/riscv64/elftest.o");

/// What an object says whose attributes are `tags`, and the same for the other width.
fn said(tags: &[u8]) -> BuildAttributes {
    let mut bytes = OBJECT.to_vec();
    let start = bytes.windows(7).position(|it| it == b"\x05rv64i2").unwrap();
    let end = start + bytes[start..].iter().position(|byte| *byte == 0).unwrap();
    // Tag_RISCV_stack_align is before, Tag_RISCV_arch behind
    bytes[start - 2..start - 2 + tags.len()].copy_from_slice(tags);
    let text = start - 2 + tags.len();
    bytes[text] = 5;
    bytes[text + 1..end].fill(b'_');
    let file = File::parse(&bytes).unwrap();
    let said = Rv64::build_attributes(&file).unwrap();
    assert_eq!(Rv32::build_attributes(&file).unwrap(), said);
    said
}

#[test]
fn of_a_compiler() {
    let said = Rv64::build_attributes(&File::parse(OBJECT).unwrap()).unwrap();
    assert_eq!((said.abi, said.processor), (17, 0));
}

#[test]
fn of_every_tag() {
    // stack_align 32, unaligned_access, atomic_abi A6C, x3_reg_usage of the global pointer
    let tags = said(&[4, 32, 6, 1, 14, 1, 16, 1]);
    assert_eq!((tags.abi, tags.processor), (33 | 2 << 12 | 2 << 16, 0));
    // of a shadow stack, and of what is not known yet
    for usage in [2, 3] {
        let tags = said(&[16, usage]);
        assert_eq!(
            (tags.abi, tags.processor),
            (u32::from(usage + 1) << 16, Rv64::NO_GLOBAL_POINTER)
        );
    }
    // priv_spec, priv_spec_minor and what nobody knows say nothing here
    let tags = said(&[8, 2, 10, 12, 64, 9]);
    assert_eq!((tags.abi, tags.processor), (0, 0));
    // a text that nobody knows is passed over
    let tags = said(&[65, b'a', b'b', 0, 4, 16]);
    assert_eq!((tags.abi, tags.processor), (17, 0));
}
