//! Which code of RISC-V becomes short, by what is known of the address that it asks for: in 64 bits, and in 32.
#![cfg(test)]
#![cfg(all(feature = "edits", feature = "relax"))]

mod support;

use elf_core::names::{EF_RISCV_RVC, ELFCLASS32, ELFCLASS64, EM_RISCV};
use elf_core::{Arch, Name};
use elf_layout::{ExternalSymbol, Options};
use reloc_riscv::riscv::{R_RISCV_CALL_PLT, R_RISCV_HI20, R_RISCV_LO12_I, R_RISCV_RELAX};
use reloc_riscv::{Rv32, Rv64};
use support::{CODE, Object, WRITE, half, nobody, with_edits};

const BASE: u64 = 0x40_0000;

/// Bytes of a call at the start of an image that is known to be at `base`, or where `at` is if that is not known, to a function at `target`.
fn size<A: Arch>(class: u8, (base, at): (Option<u64>, u64), target: u64) -> u64 {
    let mut object = Object::new();
    (object.machine, object.class) = (EM_RISCV, class);
    // auipc ra, 0; jalr ra
    let text = object.section(".text", CODE, 4, &[0x97, 0, 0, 0, 0xe7, 0x80, 0, 0]);
    let function = object.undefined("function");
    object.relocation(text, 0, R_RISCV_CALL_PLT, function, 0);
    object.relocation(text, 0, R_RISCV_RELAX, function, 0);
    let outside = |_: Name<'_>| Some(ExternalSymbol::function(target));
    let options = Options { base, ..Options::default() };
    with_edits::<A, _>(&object.build(), options, 1, outside, |layout| {
        let layout = layout.unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, at).unwrap();
        layout.section_size(0, text).unwrap()
    })
}

/// Calls of a function of the caller's.
#[test]
fn calls_are_as_long_as_the_distance_is_far() {
    let known = (Some(BASE), BASE);
    let wide = |place, target| size::<Rv64>(ELFCLASS64, place, target);
    assert_eq!(wide(known, BASE + 0x8000), 4);
    assert_eq!(wide(known, BASE - 0x8000), 4);
    assert_eq!(wide(known, BASE + (1 << 20)), 8);
    // not as 32 bits have it
    assert_eq!(wide(known, BASE + (1 << 32) + 0x8000), 8);
    // who knows how far
    assert_eq!(wide((None, BASE), 0x8000), 8);
    assert_eq!(wide((None, BASE), BASE + 0x8000), 8);
    let narrow = |place, target| size::<Rv32>(ELFCLASS32, place, target);
    assert_eq!(narrow(known, BASE + 0x8000), 4);
    assert_eq!(narrow(known, BASE + (1 << 20)), 8);
    // behind the end of all addresses is the first
    let last = (Some(0xffff_f000), 0xffff_f000);
    assert_eq!(narrow(last, 0x8000), 4);
    assert_eq!(narrow(last, 0x10_0000), 8);
}

/// Where the image ends is known when all code is as long as it stays: what takes that address does not become shorter by where it starts.
#[test]
#[cfg_attr(not(feature = "linker-defined"), ignore = "needs the feature linker-defined")]
fn the_end_of_the_image_is_known_last() {
    // near enough to 0 for `c.lui` at its start only
    const LOW: u64 = 0x8000;
    let mut object = Object::new();
    object.machine = EM_RISCV;
    // lui a0, 0; addi a0, a0, 0
    let text = object.section(".text", CODE, 4, &[0x37, 5, 0, 0, 0x13, 5, 5, 0]);
    object.zeros(".bss", WRITE, 8, 0x3_0008);
    let end = object.undefined("_end");
    for (place, kind) in [(0, R_RISCV_HI20), (4, R_RISCV_LO12_I)] {
        object.relocation(text, place, kind, end, 0);
        object.relocation(text, place, R_RISCV_RELAX, end, 0);
    }
    let mut bytes = object.build();
    bytes[48] = EF_RISCV_RVC as u8;
    let options = Options { base: Some(LOW), ..Options::default() };
    with_edits::<Rv64, _>(&bytes, options, 2, nobody, |layout| {
        let layout = layout.unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, LOW).unwrap();
        let address = layout.symbol(0, object.index(end)).unwrap().at(LOW);
        assert!(address > LOW + 0x3_0000);
        let [high, low] = [0, 4].map(|at| half(&image, at));
        assert_eq!((high & !0xfff) + (low >> 20), address as i64);
    });
}
