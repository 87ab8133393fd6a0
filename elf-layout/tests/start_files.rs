//! Executables with their start files: what these begin and end stands together.
#![cfg(all(test, feature = "alloc", feature = "linker-defined"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::names::EM_RISCV;
use elf_core::{File, Name};
use elf_layout::{ErrorKind, HeapStorage, Options};
use reloc_riscv::Rv64;
use reloc_riscv::riscv::{R_RISCV_64, R_RISCV_HI20, R_RISCV_LO12_I, R_RISCV_RELAX};
use reloc_x86::x86_64::R_X86_64_64;
use support::*;

/// `crti.o`, or what is like it, two objects with fragments, and `crtn.o`.
fn with_functions(name: &str) -> [Object; 4] {
    let mut objects = [(); 4].map(|()| Object::new());
    for (byte, object) in (1u8..).zip(&mut objects) {
        object.section(".text", CODE, 4, &[0xcc; 6]);
        let init = object.section(".init", CODE, 1, &[byte; 3]);
        let fini = object.section(".fini", CODE, 1, &[0x10 | byte; 2]);
        object.section(".rodata", READ, 4, &[0xdd; 5]);
        if byte == 1 {
            object.global(name, init, 0);
            object.global("other", fini, 0);
        }
    }
    objects
}

/// The bytes of an image.
fn linked(objects: &[Object], executable: bool) -> Vec<u8> {
    let files: Vec<_> = objects.iter().map(Object::build).collect();
    let options = Options { executable, base: Some(BASE), ..Options::default() };
    let mut found = Vec::new();
    plan(&files, options, &mut |_| None, |layout| found = image(&layout.unwrap()).unwrap());
    found
}

fn has(image: &[u8], run: &[u8]) -> bool {
    image.windows(run.len()).any(|found| found == run)
}

#[test]
fn functions_go_on_in_all_objects() {
    let init = [[1; 3], [2; 3], [3; 3], [4; 3]].concat();
    let fini = [[0x11; 2], [0x12; 2], [0x13; 2], [0x14; 2]].concat();
    for name in ["_init", "_fini"] {
        let image = linked(&with_functions(name), true);
        // behind all other code, one behind the other
        let all = [&fini[..], &init].concat();
        assert!(image.starts_with(&[0xcc; 6]) && has(&image, &all), "{name}");
    }
    // a function of that name elsewhere begins nothing
    let mut objects = with_functions("init");
    objects[0].global("_init", 1, 0);
    assert!(!has(&linked(&objects, true), &init));
    // each is ended by itself where nothing begins them, or where others run them
    for (name, executable) in [("init", true), ("_init", false)] {
        let image = linked(&with_functions(name), executable);
        assert!(!has(&image, &init), "{name} {executable}");
        let alone = [&[2; 3][..], &[0; 8]].concat();
        assert!(has(&image, &alone), "{name} {executable}");
    }
}

#[test]
fn unwinding_tables_are_one() {
    let mut begin = Object::new();
    begin.section(".rodata", READ, 1, &[0xdd; 5]);
    let table = begin.section(".eh_frame", READ, 4, &[]);
    let start = begin.global("start_of_frames", table, 0);
    let at = begin.section(".data", WRITE, 8, &[0; 8]);
    begin.relocation(at, 0, R_X86_64_64, start, 0);
    let mut objects = vec![begin];
    let mut tables = Vec::new();
    for byte in 1..4 {
        // an entry of 4 bytes: a CIE, or what looks like one
        let entry = [[4, 0, 0, 0], [byte; 4]].concat();
        let mut object = Object::new();
        object.section(".eh_frame", READ, 4, &entry);
        object.section(".rodata", READ, 4, &[0xdd; 8]);
        tables.extend(entry);
        objects.push(object);
    }
    let unended = [&tables[..], &[0; 4]].concat();
    let image = linked(&objects, true);
    assert!(has(&image, &unended), "{image:02x?}");
    let start = word(&image, image.len() as u64 - 8) - BASE;
    assert_eq!(image[start as usize..][..unended.len()], unended);
    // what a start file ends them with is a part
    let mut end = Object::new();
    end.section(".eh_frame", READ, 4, &[0; 4]);
    objects.push(end);
    assert!(has(&linked(&objects, true), &unended));
    // each is one by itself where they are registered one by one
    assert!(!has(&linked(&objects, false), &tables));
    assert!(!has(&linked(&objects[1..], true), &tables));
}

/// Start files of RISC-V set `gp` to what linkers define, 0x800 bytes behind the start of the data.
#[test]
fn executables_of_riscv_have_a_global_pointer() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    object.section(".text", CODE, 4, &[0; 8]);
    object.section(".rodata", READ, 4, &[0xdd; 5]);
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let start = object.global("start", data, 0);
    let pointer = object.undefined("__global_pointer$");
    object.relocation(data, 0, R_RISCV_64, pointer, 0);
    object.relocation(data, 8, R_RISCV_64, start, 0);
    let bytes = object.build();
    let files = [File::parse(&bytes).unwrap()];
    let words = |executable, global_pointer, own: Option<u64>| {
        let base = Some(BASE);
        let options = Options { executable, global_pointer, base, ..Options::default() };
        let mut room = HeapStorage::new();
        let external = |address| elf_layout::ExternalSymbol::new(address);
        let layout = room.plan::<Rv64>(&files, options, &mut |_| own.map(external))?;
        let mut image = vec![0x5a; layout.size() as usize];
        layout.write(&mut image, BASE)?;
        let at = layout.section(0, data).unwrap();
        Ok::<_, elf_layout::Error>([word(&image, at), word(&image, at + 8)])
    };
    for counts in [false, true] {
        let [pointer, start] = words(true, counts, None).unwrap();
        assert_eq!(pointer, start + 0x800);
        // who says where it is is asked first
        assert_eq!(words(true, counts, Some(0x1234_5678)).unwrap(), [0x1234_5678, start]);
        // in a process it is another's
        let error = words(false, counts, None).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Undefined { .. }), "{error}");
    }
}

/// It has its place when all code is as long as it will be, and no code counts from it then: what the caller says is known before.
#[test]
fn code_does_not_count_from_a_global_pointer_that_has_no_place_yet() {
    let mut object = Object::new();
    object.machine = EM_RISCV;
    // lui a0, %hi(near); lw a1, %lo(near)(a0)
    let code = [0x0000_0537u32, 0x0005_2583].map(u32::to_le_bytes).concat();
    let text = object.section(".text", CODE, 4, &code);
    let near = object.local("near", text, 0);
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let pointer = object.undefined("__global_pointer$");
    object.relocation(data, 0, R_RISCV_64, pointer, 0);
    for (offset, r#type) in [(0, R_RISCV_HI20), (4, R_RISCV_LO12_I)] {
        object.relocation(text, offset, r#type, near, 0);
        object.relocation(text, offset, R_RISCV_RELAX, 0, 0);
    }
    let bytes = object.build();
    let size = |own: Option<u64>| {
        let base = Some(BASE);
        let options =
            Options { executable: true, global_pointer: true, base, ..Options::default() };
        let mut own = |_: Name<'_>| own.map(elf_layout::ExternalSymbol::new);
        let layout = |layout: Result<elf_layout::Layout<'_, '_, Rv64>, _>| {
            layout.unwrap().section_size(0, text).unwrap()
        };
        with_edits(&bytes, options, 8, &mut own, layout)
    };
    let becomes_shorter = cfg!(all(feature = "edits", feature = "relax"));
    assert_eq!(size(None), 8);
    assert_eq!(size(Some(BASE)), if becomes_shorter { 4 } else { 8 });
}
