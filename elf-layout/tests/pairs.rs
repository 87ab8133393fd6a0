//! Instructions that stand for one address together.
#![cfg(all(test, feature = "alloc", feature = "relax"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::names::{EM_AARCH64, EM_RISCV};
use elf_core::{ApplyErrorKind, File};
use elf_layout::{ErrorKind, HeapStorage, Options};
use reloc_aarch64::Aarch64;
use reloc_aarch64::aarch64::*;
use reloc_riscv::Rv64;
use reloc_riscv::riscv::*;
use support::*;

/// `adrp` and `ldr` of a GOT entry become `adr` where that reaches the symbol, else `adrp` and `add`.
#[test]
fn loads_of_addresses_become_the_addresses() {
    const ADRP: u32 = 0x9000_0000;
    const LDR: u32 = 0xf940_0000;
    const NOP: u32 = 0xd503_201f;
    for (value, is_close) in [(8, true), (0x20_0008, false)] {
        let mut object = Object::new();
        object.machine = EM_AARCH64;
        let text = object.section(".text", CODE, 4, &[ADRP, LDR].map(u32::to_le_bytes).concat());
        let zeros = object.zeros(".bss", WRITE, 8, 0x20_0010);
        let variable = object.global("variable", zeros, value);
        object.relocation(text, 0, R_AARCH64_ADR_GOT_PAGE, variable, 0);
        object.relocation(text, 4, R_AARCH64_LD64_GOT_LO12_NC, variable, 0);
        let bytes = object.build();
        let files = [File::parse(&bytes).unwrap()];
        let mut room = HeapStorage::new();
        let layout = room.plan::<Aarch64>(&files, Options::default(), &mut nobody).unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, BASE).unwrap();
        let start = layout.section(0, text).unwrap();
        let [first, second] = [0, 4].map(|at| half(&image, start + at) as u32);
        let imm = |word: u32| i64::from((word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3) << 43 >> 43;
        let found = if is_close {
            assert_eq!((first, second & 0x9f00_001f), (NOP, 0x1000_0000));
            (BASE + start + 4).wrapping_add_signed(imm(second))
        } else {
            assert_eq!((first & 0x9f00_001f, second & 0xffc0_03ff), (ADRP, 0x9100_0000));
            let page = ((BASE + start) & !0xfff).wrapping_add_signed(imm(first) << 12);
            page + u64::from(second >> 10 & 0xfff)
        };
        assert_eq!(found, layout.symbol(0, object.index(variable)).unwrap().at(BASE), "{value:#x}");
    }
}

/// The upper part of an address is where the label of the lower one is: in the same section.
#[test]
fn labels_are_in_the_section() {
    for is_there in [true, false] {
        // auipc a0, 0; addi a0, a0, 0
        let mut object = Object::new();
        object.machine = EM_RISCV;
        let code = [0x0517, 0x0005_0513].map(u32::to_le_bytes).concat();
        let text = object.section(".text", CODE, 4, &code);
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        let variable = object.global("variable", data, 0);
        let label = object.local("label", if is_there { text } else { data }, 0);
        object.relocation(text, 0, R_RISCV_PCREL_HI20, variable, 0);
        object.relocation(text, 4, R_RISCV_PCREL_LO12_I, label, 0);
        let bytes = object.build();
        let files = [File::parse(&bytes).unwrap()];
        let mut room = HeapStorage::new();
        let layout = room.plan::<Rv64>(&files, Options::default(), &mut nobody);
        let written =
            layout.and_then(|layout| layout.write(&mut vec![0; layout.size() as usize], BASE));
        match written.map_err(|error| error.kind) {
            Ok(()) => assert!(is_there),
            Err(ErrorKind::Apply(error)) => {
                assert_eq!((error.offset, error.kind), (4, ApplyErrorKind::Unpaired));
                assert!(!is_there);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}
