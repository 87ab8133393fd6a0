//! Errors with the names of what they speak of.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "thread-local"))]

mod support;

use elf_core::names::*;
use elf_core::{File, SectionFlags};
use elf_layout::explain::{section_name, symbol_name};
use elf_layout::{HeapStorage, Options, ThreadLocal};
use reloc_x86::X86_64;
use reloc_x86::x86_64::{
    R_X86_64_64, R_X86_64_GOTTPOFF, R_X86_64_PC32, R_X86_64_RELATIVE, R_X86_64_TPOFF32,
};
use support::{BASE, CODE, Object, Place, READ, WRITE, process};

const TLS: SectionFlags = WRITE.union(SectionFlags::TLS);

/// Why there is no image of these objects.
fn why(objects: &[Object]) -> String {
    let bytes: Vec<_> = objects.iter().map(Object::build).collect();
    let files: Vec<_> = bytes.iter().map(|it| File::parse(it).unwrap()).collect();
    let options = Options { thread_local: ThreadLocal::AsCompiled, ..Options::default() };
    let mut room = HeapStorage::new();
    let error = match room.plan::<X86_64>(&files, options, &mut process) {
        Err(error) => error,
        Ok(layout) => {
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, BASE).unwrap_err()
        }
    };
    let plain = error.explain(&files).to_string();
    let label = |object: usize, f: &mut std::fmt::Formatter<'_>| write!(f, "object {object}");
    let other = error.explain(&files).with_labels(&label).with_names(|name, f| write!(f, "{name}"));
    assert_eq!(other.to_string(), plain);
    let label = |object: usize, f: &mut std::fmt::Formatter<'_>| write!(f, "<{object}>");
    let named =
        error.explain(&files).with_labels(&label).with_names(|name, f| write!(f, "'{name}'"));
    named.to_string()
}

/// An object with data, a symbol of this sort, and a relocation for it.
fn refers(kind: u32, make: impl FnOnce(&mut Object) -> usize) -> Object {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let symbol = make(&mut object);
    object.relocation(data, 8, kind, symbol, 0);
    object
}

#[test]
fn symbols_and_sections_have_names() {
    let at = "<0>: section .data: R_X86_64_64 at offset 0x8: symbol";
    let undefined = refers(R_X86_64_64, |object| object.undefined("nobody"));
    assert_eq!(why(&[undefined]), format!("{at} 'nobody' is undefined"));
    let debug = refers(R_X86_64_64, |object| {
        let debug = object.section(".debug", SectionFlags::empty(), 1, &[0; 4]);
        object.symbol("", STB_LOCAL, STT_SECTION, Place::In(debug), 0, 0)
    });
    assert_eq!(why(&[debug]), format!("{at} '.debug' is in a section that is not loaded"));
    let unnamed = refers(R_X86_64_64, |object| {
        let zeros = object.zeros(".tbss", TLS, 4, 4);
        object.local("", zeros, 0)
    });
    assert_eq!(why(&[unnamed]), format!("{at} no symbol is thread-local"));
    let indirect = refers(R_X86_64_64, |object| {
        object.symbol("chosen", STB_GLOBAL, STT_GNU_IFUNC, Place::In(1), 0, 0)
    });
    assert_eq!(why(&[indirect]), format!("{at} 'chosen' is an indirect function"));
    let plain = refers(R_X86_64_TPOFF32, |object| object.global("plain", 1, 0));
    let at = "<0>: section .data: R_X86_64_TPOFF32 at offset 0x8: symbol";
    assert_eq!(why(&[plain]), format!("{at} 'plain' is not thread-local"));
}

#[test]
fn objects_have_names() {
    let defines = || {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 1, &[0xc3]);
        object.global("f", text, 0);
        object
    };
    assert_eq!(
        why(&[defines(), Object::new(), defines()]),
        "<2>: symbol 'f' is defined in <0> already"
    );
    let dropped = |kind| {
        let mut object = Object::new();
        let text = object.section(".text.f", CODE, 1, &[0xc3]);
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        let signature = object.weak("f", text, 0);
        let inner = object.local("inner", text, 0);
        object.group(signature, GRP_COMDAT, &[text]);
        object.relocation(data, 0, kind, inner, 0);
        object
    };
    assert_eq!(
        why(&[dropped(R_X86_64_64), dropped(R_X86_64_64)]),
        "<1>: section .data: R_X86_64_64 at offset 0x0: symbol 'inner' is in a discarded section group"
    );
    let mut arm = Object::new();
    arm.machine = EM_AARCH64;
    assert_eq!(
        why(&[Object::new(), arm.clone()]),
        "<1>: is for EM_AARCH64, not for EM_X86_64 as the first object"
    );
    arm.machine = 0xfff0;
    assert_eq!(
        why(&[Object::new(), arm]),
        "<1>: is for machine 65520, not for EM_X86_64 as the first object"
    );
    let mut linked = Object::new();
    linked.r#type = ET_DYN;
    assert_eq!(why(&[linked.clone()]), "<0>: is no relocatable object but ET_DYN");
    linked.r#type = 77;
    assert_eq!(why(&[linked]), "<0>: is no relocatable object but of file type 77");
}

#[test]
fn relocations_that_fail_name_their_symbol() {
    let far = refers(R_X86_64_PC32, |object| object.undefined("far_data"));
    let text = why(&[far]);
    let start = "<0>: section .data: R_X86_64_PC32 at offset 0x8 against 'far_data': value ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with(" is not in -2147483648..=2147483647"), "{text}");
    let outside = {
        let mut object = refers(R_X86_64_64, |object| object.global("own", 1, 0));
        object.relocation(1, 12, R_X86_64_64, 0, 0);
        object
    };
    assert_eq!(
        why(&[outside]),
        "<0>: section .data: R_X86_64_64 at offset 0xc against 'own': outside the section of 0x10 bytes"
    );
    let dynamic = refers(R_X86_64_RELATIVE, |object| object.global("own", 1, 0));
    assert_eq!(
        why(&[dynamic]),
        "<0>: section .data: R_X86_64_RELATIVE at offset 0x8 against 'own': only a dynamic loader resolves this type"
    );
    let unknown = refers(4711, |object| object.global("own", 1, 0));
    assert_eq!(
        why(&[unknown]),
        "<0>: section .data: relocation type 4711 at offset 0x8 against 'own': unknown type"
    );
    let variable = |kind| {
        refers(kind, |object| {
            let zeros = object.zeros(".tbss", TLS, 4, 4);
            object.symbol("t", STB_GLOBAL, STT_TLS, Place::In(zeros), 0, 4)
        })
    };
    assert_eq!(
        why(&[variable(R_X86_64_TPOFF32)]),
        "<0>: section .data: R_X86_64_TPOFF32 at offset 0x8 against 't': no thread pointer offset"
    );
    let text = why(&[variable(R_X86_64_GOTTPOFF)]);
    assert!(text.starts_with("<0>: no ") && text.ends_with(" for symbol 't'"), "{text}");
}

/// What is about the image as a whole is about no object.
#[test]
fn images_are_of_no_object() {
    let bytes = refers(R_X86_64_64, |object| object.global("own", 1, 0)).build();
    let files = [File::parse(&bytes).unwrap()];
    let mut room = HeapStorage::new();
    let layout = room.plan::<X86_64>(&files, Options::default(), &mut process).unwrap();
    let message = |image: &mut [u8], base| {
        let error = layout.write(image, base).unwrap_err();
        assert!(error.kind.is_of_image());
        error.explain(&files).to_string()
    };
    let text = message(&mut [0; 15], BASE);
    assert_eq!(text, "image of 0xf bytes is too small: 0x10 needed");
    let text = message(&mut [0; 16], BASE + 1);
    assert_eq!(text, "image cannot be at 0x10000001, with an alignment of 0x1000");
}

#[test]
fn names_of_sections_and_symbols() {
    let mut object = Object::new();
    let data = object.section(".data", READ, 1, &[0]);
    object.symbol("", STB_LOCAL, STT_SECTION, Place::In(data), 0, 0);
    object.symbol("", STB_LOCAL, STT_NOTYPE, Place::In(data), 0, 0);
    object.symbol("named", STB_LOCAL, STT_SECTION, Place::In(data), 0, 0);
    object.symbol("", STB_LOCAL, STT_SECTION, Place::Absolute, 0, 0);
    let bytes = object.build();
    let file = File::parse(&bytes).unwrap();
    assert_eq!(section_name(&file, data), Some(".data".into()));
    assert_eq!(section_name(&file, 99), None);
    let table = file.symbol_table().unwrap().unwrap();
    let names = [1, 2, 3, 4].map(|index| {
        symbol_name(&file, &table, index, &table.get(index).unwrap()).unwrap().to_string()
    });
    assert_eq!(names, [".data", "", "named", ""]);
}
