//! Which objects go together by their flags.
#![cfg(all(test, feature = "default"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

use elf_core::File;
use elf_core::names::{EF_RISCV_FLOAT_ABI_DOUBLE, EF_RISCV_RVC, EM_RISCV};
use elf_layout::Layout;
use elf_layout::{
    Error, ErrorKind, ObjectSlot, Options, Requirements, SectionSlot, Storage, SymbolSlot,
};
use reloc_riscv::Rv64;

mod support;
use support::{CODE, Object, WRITE, nobody};

/// An object with these flags and so many bytes of code, and data.
fn object(flags: u32, code: usize) -> Vec<u8> {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    object.section(".text", CODE, 4, &vec![0; code]);
    object.section(".data", WRITE, 8, &[1; 8]);
    let mut bytes = object.build();
    bytes[48..52].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// Why they do not go together.
fn refusal(objects: &[Vec<u8>]) -> Option<Error> {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let needed = Requirements::of(&files).unwrap();
    let storage = Storage {
        objects: &mut vec![ObjectSlot::default(); needed.objects],
        sections: &mut vec![SectionSlot::default(); needed.sections],
        symbols: &mut vec![SymbolSlot::default(); needed.symbols],
        names: &mut vec![0; needed.names],
        edits: &mut [],
    };
    Layout::<Rv64>::plan(&files, Options::default(), storage, &mut nobody).err()
}

#[test]
fn code_of_other_arguments_is_refused() {
    let double = EF_RISCV_FLOAT_ABI_DOUBLE;
    let error = refusal(&[object(double, 4), object(double | EF_RISCV_RVC, 4), object(0, 4)]);
    let error = error.unwrap();
    assert_eq!(error.object, 2);
    assert!(
        matches!(error.kind, ErrorKind::Flags { found: 0, first: 0, expected, .. } if expected == double),
        "{error}"
    );
}

/// Assemblers make an empty `.text` of every object.
#[test]
fn objects_without_code_go_with_all() {
    let double = EF_RISCV_FLOAT_ABI_DOUBLE;
    assert_eq!(refusal(&[object(0, 0), object(double, 4), object(0, 0)]), None);
}
