//! Which places are noted at which code may become shorter.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "edits", feature = "relax", feature = "thread-local"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use elf_core::names::{EF_RISCV_RVC, EM_RISCV, SHN_LORESERVE};
use elf_core::{File, Name, SectionFlags};
use elf_layout::{ExternalSymbol, HeapStorage, ImageMode, Options, Requirements};
use reloc_riscv::Rv64;
use reloc_riscv::riscv::*;

mod support;
use support::{CODE, Object, nobody, with_edits};

const RELAX: &[u8] = include_bytes!("../../fixtures/riscv64/relax.o");
const BASE: u64 = 0x40_0000;

fn options() -> Options {
    Options { base: Some(BASE), executable: true, ..Options::default() }
}

/// Where others of the fixture are.
fn outside(_: Name<'_>) -> Option<ExternalSymbol> {
    Some(ExternalSymbol::new(BASE + 0x8000))
}

fn edits_of(file: File<'_>) -> usize {
    let files = [file];
    Requirements::of(&files).unwrap().with_edits::<Rv64>(&files).unwrap().edits
}

/// A section of so many bytes of code that do nothing, and the object.
fn nops(size: usize) -> (Object, u32) {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    let text = object.section(".text", CODE, 4, &[0x01, 0].repeat(size / 2));
    (object, text)
}

/// Padding that the file says to be longer than the section has no bytes that could go; nor has padding of none.
#[test]
fn bytes_that_are_not_there_do_not_go() {
    for (padding, size, edits) in [(0, 14, 0), (6, 8, 1), (8, 14, 1), (10, 14, 1)] {
        let (mut object, text) = nops(14);
        let end = object.global("end", text, 8);
        object.relocation(text, 8, R_RISCV_ALIGN, end, padding);
        let bytes = object.build();
        let files = [File::parse(&bytes).unwrap()];
        assert_eq!(edits_of(files[0]), edits, "{padding}");
        let mut room = HeapStorage::new();
        let layout = room.plan::<Rv64>(&files, Options::default(), &mut nobody).unwrap();
        assert_eq!(layout.section_size(0, text), Some(size), "{padding}");
    }
}

/// Symbols whose sections do not fit their 16 bits follow as others do.
#[test]
fn symbols_of_many_sections_follow() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    for _ in 1..SHN_LORESERVE {
        object.section("", SectionFlags::empty(), 1, &[]);
    }
    let text = object.section(".text", CODE, 4, &[0x01, 0].repeat(7));
    let end = object.global("end", text, 14);
    object.relocation(text, 8, R_RISCV_ALIGN, end, 6);
    let bytes = object.build();
    let files = [File::parse(&bytes).unwrap()];
    let mut room = HeapStorage::new();
    let layout = room.plan::<Rv64>(&files, options(), &mut nobody).unwrap();
    let end = layout.symbol(0, object.index(end)).unwrap().at(BASE);
    assert_eq!(end, BASE + layout.section(0, text).unwrap() + 8);
}

/// What stands at an address of its own keeps its size.
#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn sections_at_addresses_of_their_own_stay() {
    for (address, size) in [(0, 8), (BASE + 0x100, 14)] {
        let (mut object, text) = nops(14);
        object.at(text, address);
        let end = object.global("end", text, 8);
        object.relocation(text, 8, R_RISCV_ALIGN, end, 6);
        let mut bytes = object.build();
        bytes[48] = EF_RISCV_RVC as u8;
        let files = [File::parse(&bytes).unwrap()];
        let mut room = HeapStorage::new();
        let layout = room.plan::<Rv64>(&files, options(), &mut nobody).unwrap();
        assert_eq!(layout.section_size(0, text), Some(size));
    }
}

/// In one blob a common symbol and the header stand behind code, where they stay when it becomes shorter; without them it ends there.
#[test]
fn what_is_behind_code_stays() {
    let end = |add: fn(&mut Object) -> (usize, u64)| {
        let (mut object, text) = nops(14);
        let end = object.global("end", text, 8);
        object.relocation(text, 8, R_RISCV_ALIGN, end, 6);
        let (last, size) = add(&mut object);
        let bytes = object.build();
        let files = [File::parse(&bytes).unwrap()];
        let mode = ImageMode::Packed { section_alignment: 1 };
        let mut room = HeapStorage::new();
        let layout = room.plan::<Rv64>(&files, Options { mode, ..options() }, &mut nobody).unwrap();
        assert_eq!(layout.section_size(0, text), Some(8));
        let start = layout.symbol(0, object.index(last)).unwrap().at(BASE) - BASE;
        (start, start + size == layout.size())
    };
    assert_eq!(end(|object| (object.global("last", 1, 14), 0)), (8, true));
    assert_eq!(end(|object| (object.common("last", 24, 8), 24)), (16, true));
    if cfg!(feature = "linker-defined") {
        let header = |object: &mut Object| {
            let header = object.undefined("__ehdr_start");
            object.relocation(1, 0, R_RISCV_64, header, 0);
            (header, 64)
        };
        assert_eq!(end(header), (16, true));
    }
}

/// Once there is any, it is taken by paddings alone where code is to stay, and by no upper part that would go only for an address that
/// is counted from the global pointer.
#[test]
fn room_is_taken_where_something_may_go() {
    let is_enough = |options, room| {
        with_edits::<Rv64, _>(RELAX, options, room, outside, |layout| layout.is_ok())
    };
    let least = |options| (1..).find(|room| is_enough(options, *room)).unwrap();
    let file = File::parse(RELAX).unwrap();
    let count = |kind| {
        let tables = file.sections().iter().filter_map(|it| file.relocations(&it).unwrap());
        tables.map(|it| it.iter().filter(|record| record.r#type == kind).count()).sum::<usize>()
    };
    let paddings = least(Options { relax: false, ..options() });
    assert_eq!(paddings, count(R_RISCV_ALIGN));
    let [with, without] =
        [true, false].map(|global_pointer| least(Options { global_pointer, ..options() }));
    assert_eq!(with - without, count(R_RISCV_PCREL_HI20));
    assert!(without > paddings && edits_of(file) >= with);
}

#[test]
fn storage_that_was_used_gives_the_same() {
    let files = [File::parse(RELAX).unwrap()];
    let mut room = HeapStorage::new();
    let mut images = [vec![], vec![]];
    for image in &mut images {
        let mut layout = room.plan::<Rv64>(&files, options(), &mut outside).unwrap();
        layout.set_static_tls_block(layout.executable_tls_block());
        image.resize(layout.size() as usize, 0);
        layout.write(image, BASE).unwrap();
    }
    assert!(images[0] == images[1]);
}
