//! Which objects go together by their flags.
#![cfg(all(test, feature = "default"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

use elf_core::names::{EF_RISCV_FLOAT_ABI_DOUBLE, EF_RISCV_RVC, EM_RISCV};
use elf_core::{Arch, File};
use elf_layout::Layout;
use elf_layout::{
    Error, ErrorKind, ObjectSlot, Options, Requirements, SectionSlot, Storage, SymbolSlot,
};
use reloc_loongarch::LoongArch64;
use reloc_riscv::Rv64;

mod support;
use support::{CODE, Object, WRITE, nobody};

/// An object of a machine with these flags and so many bytes of code, and data.
fn object(machine: u16, flags: u32, code: usize) -> Vec<u8> {
    let mut object = Object::new();
    object.machine = machine;
    object.section(".text", CODE, 4, &vec![0; code]);
    object.section(".data", WRITE, 8, &[1; 8]);
    let mut bytes = object.build();
    bytes[48..52].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// Why they do not go together.
fn refusal<A: Arch>(objects: &[Vec<u8>]) -> Option<Error> {
    let files: Vec<File<'_>> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let needed = Requirements::of(&files).unwrap();
    let storage = Storage {
        objects: &mut vec![ObjectSlot::default(); needed.objects],
        sections: &mut vec![SectionSlot::default(); needed.sections],
        symbols: &mut vec![SymbolSlot::default(); needed.symbols],
        names: &mut vec![0; needed.names],
        edits: &mut [],
    };
    Layout::<A>::plan(&files, Options::default(), storage, &mut nobody).err()
}

/// Why code for these flags does not go together.
fn refusal_of<A: Arch>(flags: [u32; 3]) -> Option<Error> {
    refusal::<A>(&flags.map(|flags| object(A::MACHINE, flags, 4)))
}

#[test]
fn code_of_other_arguments_is_refused() {
    let riscv = EF_RISCV_FLOAT_ABI_DOUBLE;
    // floats in registers of 64 bits, or of none
    let (loongarch, soft) = (0x43, 0x41);
    for (error, flags, other) in [
        (refusal_of::<Rv64>([riscv, riscv | EF_RISCV_RVC, 0]), riscv, 0),
        (refusal_of::<LoongArch64>([loongarch, loongarch, soft]), loongarch, soft),
    ] {
        let error = error.unwrap();
        let ErrorKind::Flags { found, first, expected, .. } = error.kind else { panic!("{error}") };
        assert_eq!((error.object, found, first, expected), (2, other, 0, flags));
    }
}

/// Assemblers make an empty `.text` of every object.
#[test]
fn objects_without_code_go_with_all() {
    let double = EF_RISCV_FLOAT_ABI_DOUBLE;
    let objects = [(0, 0), (double, 4), (0, 0)].map(|(flags, code)| object(EM_RISCV, flags, code));
    assert_eq!(refusal::<Rv64>(&objects), None);
}
