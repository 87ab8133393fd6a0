//! Objects that do not go together: by their headers, and by their attributes.
#![cfg(test)]

mod support;

use elf_core::File;
use elf_core::names::*;
use reloc_arm::Arm;
use reloc_riscv::Rv64;
use support::{CODE, Object, READ, WRITE, outcome};

#[test]
fn abis_that_do_not_go_together() {
    const E_FLAGS: usize = 48;
    let object = |flags: u32, section: &str, permission| {
        let mut object = Object::new();
        object.machine = EM_RISCV;
        object.section(section, permission, 4, &[0; 4]);
        let mut bytes = object.build();
        bytes[E_FLAGS..E_FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
        bytes
    };
    let code = |flags| object(flags, ".text", CODE);
    let data = object(0, ".data", WRITE);
    // compressed code and without, stores in order and without; data, whatever their flags
    let others = [code(0x4), code(0x5), data, code(0x15)];
    let all: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
    for three in all.windows(3) {
        assert_eq!(outcome::<Rv64>(three), Ok(()));
    }
    for (found, message) in [
        (0x3, "the float ABI is not that of object 1: e_flags 0x3, there 0x5"),
        (0xd, "RVE is not that of object 1: e_flags 0xd, there 0x5"),
    ] {
        let error = outcome::<Rv64>(&[all[2], all[1], &code(found)]).unwrap_err();
        assert_eq!(error.to_string(), format!("object 2: {message}"));
    }
}

/// Objects of gcc and clang, and the same with one choice changed.
#[test]
#[cfg_attr(not(feature = "default"), ignore = "needs the feature default")]
fn build_attributes_that_do_not_go_together() {
    let first = include_bytes!("../../fixtures/arm/pair-a-gcc12-thumb.o").as_slice();
    let hard = include_bytes!("../../fixtures/arm/pair-b.o").as_slice();
    let small = include_bytes!("../../fixtures/arm/firmware-a-m0.o").as_slice();
    let unsaid = include_bytes!("../../fixtures/arm/call.o").as_slice();
    let changed = |from: [u8; 2], to: [u8; 2]| {
        let file = File::parse(hard).unwrap();
        let header = file.sections().iter().find(|it| it.r#type == SHT_ARM_ATTRIBUTES).unwrap();
        let from_section = header.offset as usize;
        let attributes = &hard[from_section..][..header.size as usize];
        let at = attributes.windows(2).rposition(|pair| pair == from).unwrap();
        let mut bytes = hard.to_vec();
        bytes[from_section + at..][..2].copy_from_slice(&to);
        bytes
    };
    let (soft, both) = (changed([28, 1], [28, 0]), changed([28, 1], [28, 3]));
    let (based, without) = (changed([14, 0], [14, 1]), changed([14, 0], [14, 3]));
    let real_time = changed([7, b'A'], [7, b'R']);
    // other enumerations, other wide characters
    let (enumerations, wide) = (changed([26, 2], [26, 1]), changed([18, 4], [18, 2]));
    for fine in [hard, &both, &without, &real_time, &enumerations, &wide] {
        assert_eq!(outcome::<Arm>(&[unsaid, first, fine]), Ok(()));
        assert_eq!(outcome::<Arm>(&[fine, unsaid, first]), Ok(()));
    }
    let other_halves = changed([38, 1], [38, 2]);
    let error = outcome::<Arm>(&[first, hard, &other_halves]).unwrap_err();
    let message = "the format of half precision (Tag_ABI_FP_16bit_format) is not that of object 1: 2, there 1";
    assert_eq!(error.to_string(), format!("object 2: {message}"));
    // the upper byte of e_flags: version 4 is 5 before it was released
    let version = |version| {
        let mut bytes = hard.to_vec();
        bytes[39] = version;
        bytes
    };
    assert_eq!(outcome::<Arm>(&[unsaid, first, &version(4)]), Ok(()));
    let old = version(3);
    for (first, wrong, message) in [
        (
            soft.as_slice(),
            small,
            "the profile of the processor (Tag_CPU_arch_profile) is not that of object 1: 77, there 65",
        ),
        (first, &soft, "the float ABI (Tag_ABI_VFP_args) is not that of object 1: 0, there 1"),
        (first, &based, "the use of R9 (Tag_ABI_PCS_R9_use) is not that of object 0: 1, there 0"),
        (
            first,
            &old,
            "the version of the EABI is not that of object 0: e_flags 0x3000000, there 0x5000000",
        ),
    ] {
        let error = outcome::<Arm>(&[unsaid, first, wrong]).unwrap_err();
        assert_eq!(error.to_string(), format!("object 2: {message}"));
    }
}

/// What the attributes of RISC-V say must be alike, but for what goes together with everything.
#[test]
fn riscv_attributes_that_do_not_go_together() {
    let object = |tags: &[u8]| {
        let mut object = Object::new();
        object.machine = EM_RISCV;
        object.section(".text", CODE, 4, &[0; 4]);
        let mut bytes = b"A\0\0\0\0riscv\0\x01\0\0\0\0".to_vec();
        bytes.extend(tags);
        (bytes[1], bytes[12]) = (bytes.len() as u8 - 1, tags.len() as u8 + 5);
        let section = object.section(".riscv.attributes", READ, 1, &bytes);
        object.kind(section, SHT_RISCV_ATTRIBUTES);
        object.build()
    };
    let said = object(&[4, 16, 5, b'r', b'v', 0, 14, 1, 16, 1]);
    for fine in
        [&[][..], &[4, 16], &[4, 0], &[14, 0], &[14, 1], &[14, 2], &[16, 0], &[16, 1], &[6, 1]]
    {
        assert_eq!(outcome::<Rv64>(&[&said, &object(fine)]), Ok(()), "{fine:?}");
        assert_eq!(outcome::<Rv64>(&[&object(fine), &said]), Ok(()), "{fine:?}");
    }
    for (wrong, message) in [
        (
            [4, 8],
            "the alignment of the stack (Tag_RISCV_stack_align) is not that of object 1: 8, there 16",
        ),
        (
            [14, 3],
            "the ABI of atomic operations (Tag_RISCV_atomic_abi) is not that of object 1: 3, there 1",
        ),
        ([16, 2], "the use of x3 (Tag_RISCV_x3_reg_usage) is not that of object 1: 2, there 1"),
    ] {
        let error = outcome::<Rv64>(&[&object(&[14, 2]), &said, &object(&wrong)]).unwrap_err();
        assert_eq!(error.to_string(), format!("object 2: {message}"));
    }
    let damaged = outcome::<Rv64>(&[&object(&[4])]).unwrap_err();
    assert!(damaged.to_string().contains("build attributes"), "{damaged}");
}
