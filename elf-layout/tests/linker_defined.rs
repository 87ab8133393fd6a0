//! Symbols that linkers define: where sections of one name start and end, where code, data and the image end.
#![cfg(all(test, feature = "linker-defined"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::File;
use elf_core::names::*;
use elf_layout::{
    ErrorKind, ExternalSymbol, ImageMode, Layout, Options, SymbolAddress, is_linker_defined,
};
use reloc_x86::X86_64;
use reloc_x86::x86_64::R_X86_64_64;
use support::*;

/// The bytes between two symbols of an object.
fn between<'i>(
    layout: &Layout<'_, '_, X86_64>,
    image: &'i [u8],
    object: usize,
    (start, end): (u32, u32),
) -> &'i [u8] {
    let at = |symbol| match layout.symbol(object, symbol) {
        Some(SymbolAddress::Image(offset)) => offset as usize,
        other => panic!("{other:?}"),
    };
    &image[at(start)..at(end)]
}

/// An object that asks where sections start and end, in 16 bytes of data.
fn asking(start: &str, end: &str) -> (Object, u32, (u32, u32)) {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let (start, end) = (object.undefined_weak(start), object.undefined(end));
    object.relocation(data, 0, R_X86_64_64, start, 0);
    object.relocation(data, 8, R_X86_64_64, end, 0);
    let symbols = (object.index(start), object.index(end));
    (object, data, symbols)
}

#[test]
fn sections_of_one_name_stand_together_in_order() {
    let (mut first, data, symbols) = asking("__start_hooks", "__stop_hooks");
    first.section("hooks", WRITE, 8, &[1; 8]);
    first.section("other", WRITE, 8, &[9; 8]);
    first.section("hooks", READ, 4, &[2; 4]);
    let mut second = Object::new();
    second.section("hooks", WRITE, 8, &[3; 8]);
    let marked = second.section("hooks", WRITE, 1, &[4; 3]);
    let inside = second.global("inside", marked, 1);
    second.section("hooks2", WRITE, 1, &[5; 3]);
    let mark = second.index(inside);
    laid_out(&[&first, &second], |layout| {
        let image = image(layout).unwrap();
        let found = between(layout, &image, 0, symbols);
        let expected = [&[1; 8][..], &[2; 4], &[0; 4], &[3; 8], &[4; 3]].concat();
        assert_eq!(found, expected, "padded to alignment alone");
        let start = layout.section(0, data).unwrap();
        let Some(SymbolAddress::Image(at)) = layout.symbol(0, symbols.0) else { panic!() };
        assert_eq!(word(&image, start), BASE + at, "weak references mean it, too");
        assert_eq!(word(&image, start + 8), BASE + at + 27);
        // symbols in such sections move with them
        let Some(SymbolAddress::Image(inside)) = layout.symbol(1, mark) else { panic!() };
        assert_eq!(inside, at + 25);
    });
    // of a single object, too
    laid_out(&[&first], |layout| {
        let image = image(layout).unwrap();
        assert_eq!(between(layout, &image, 0, symbols), [&[1; 8][..], &[2; 4]].concat());
    });
}

#[test]
fn without_a_reference_nothing_changes() {
    // nobody asks; another name is asked for; who asks has a meaning of its own
    type Ask = fn(&mut Object, u32) -> Option<usize>;
    let asks: [Ask; 3] = [
        |_, _| None,
        |object, _| Some(object.undefined("_end")),
        |object, section| Some(object.global("__start_hooks", section, 0)),
    ];
    for ask in asks {
        let mut object = Object::new();
        let first = object.section("hooks", WRITE, 8, &[1; 8]);
        let other = object.section(".data", WRITE, 8, &[9; 8]);
        let second = object.section("hooks", WRITE, 8, &[2; 8]);
        if let Some(symbol) = ask(&mut object, other) {
            object.relocation(other, 0, R_X86_64_64, symbol, 0);
        }
        laid_out(&[&object, &Object::new()], |layout| {
            let at = |section| layout.section(0, section).unwrap();
            assert_eq!((at(other) - at(first), at(second) - at(first)), (8, 16));
            assert_eq!(layout.size(), 24);
        });
    }
}

/// Where the image ends is known last; what stands at an address of its own keeps it.
#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn symbols_at_addresses_of_their_own_keep_them() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let placed = object.section(".placed", WRITE, 8, &[1; 8]);
    object.at(placed, BASE + 0x2000);
    let [start, own, end] = [
        object.undefined("__ehdr_start"),
        object.global("own", placed, 4),
        object.undefined("_end"),
    ];
    object.relocation(data, 0, R_X86_64_64, start, 0);
    object.relocation(data, 8, R_X86_64_64, end, 0);
    let options = Options { base: Some(BASE), ..Options::default() };
    plan(&[object.build()], options, &mut nobody, |layout| {
        let layout = layout.unwrap();
        let at = |symbol| layout.symbol(0, object.index(symbol)).unwrap().at(BASE);
        assert_eq!((at(own), at(end)), (BASE + 0x2004, BASE + layout.size()));
    });
}

#[test]
fn who_defines_them_wins() {
    let (mut object, _, (start, _)) = asking("__start_hooks", "__stop_hooks");
    object.section("hooks", WRITE, 8, &[1; 8]);
    let mut own = Object::new();
    let data = own.section(".data.own", WRITE, 8, &[0; 8]);
    own.weak("__start_hooks", data, 4);
    laid_out(&[&object, &own], |layout| {
        let place = layout.section(1, data).unwrap() + 4;
        assert_eq!(layout.symbol(0, start), Some(SymbolAddress::Image(place)));
    });
    // the caller, of names that are no sections'
    let mut object = Object::new();
    let end = object.undefined("_end");
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    object.relocation(data, 0, R_X86_64_64, end, 0);
    let end = object.index(end);
    let files = [object.build()];
    plan(&files, Options::default(), &mut |_| Some(ExternalSymbol::new(77)), |layout| {
        assert_eq!(layout.unwrap().symbol(0, end), Some(SymbolAddress::Absolute(77)));
    });
}

#[test]
fn without_sections_they_are_undefined() {
    let (object, ..) = asking("__start_hooks", "__stop_hooks");
    let error = refused(&[&object], Options::default());
    assert!(matches!(error.kind, ErrorKind::Undefined { offset: 8, .. }), "{error}");
    // what is not loaded, and what every thread has its own of, is no such section
    let (mut object, ..) = asking("__start_hooks", "__stop_hooks");
    object.section("hooks", elf_core::SectionFlags::empty(), 1, &[1]);
    object.section("hooks", WRITE | elf_core::SectionFlags::TLS, 1, &[1]);
    let error = refused(&[&object], Options::default());
    assert!(matches!(error.kind, ErrorKind::Undefined { offset: 8, .. }), "{error}");
}

#[test]
fn all_that_is_missing_does_not_name_what_linkers_define() {
    let (mut object, data, _) = asking("__start_hooks", "__stop_hooks");
    object.section("hooks", WRITE, 8, &[1; 8]);
    let missing = object.undefined("missing");
    object.relocation(data, 0, R_X86_64_64, missing, 0);
    for (at, name) in
        [(8, "_end"), (0, "__init_array_start"), (0, "__dso_handle"), (8, "missing"), (8, "own")]
    {
        let symbol = object.undefined(name);
        object.relocation(data, at, R_X86_64_64, symbol, 0);
    }
    #[cfg(feature = "alloc")]
    {
        let mut other = Object::new();
        let text = other.section(".text", READ, 8, &[0; 8]);
        other.global("own", text, 0);
        let bytes = [object.build(), other.build()];
        let files = bytes.each_ref().map(|bytes| File::parse(bytes).unwrap());
        let (all, more) = elf_layout::undefined_symbols::<X86_64>(&files, 9, &mut |_| true);
        assert_eq!((all.len(), more), (1, 0), "{all:?}");
        let symbol = object.index(missing);
        assert!(
            matches!(all[0].kind, ErrorKind::Undefined { symbol: it, .. } if it == symbol),
            "{all:?}"
        );
    }
    let _ = |bytes| File::parse(bytes);
}

#[test]
fn arrays_of_functions_come_by_priority() {
    let (mut first, _, symbols) = asking("__init_array_start", "__init_array_end");
    let add = |object: &mut Object, name: &str, byte: u8| {
        let section = object.section(name, WRITE, 8, &[byte; 8]);
        object.kind(section, SHT_INIT_ARRAY);
    };
    add(&mut first, ".init_array", 4);
    add(&mut first, ".init_array.00200", 3);
    add(&mut first, ".init_array.65530", 6);
    let mut second = Object::new();
    add(&mut second, ".init_array", 5);
    add(&mut second, ".init_array.5", 1);
    add(&mut second, ".init_array.00101", 2);
    laid_out(&[&first, &second], |layout| {
        let image = image(layout).unwrap();
        let found = between(layout, &image, 0, symbols);
        let order: Vec<u8> = found.chunks(8).map(|entry| entry[0]).collect();
        assert_eq!(order, [1, 2, 3, 6, 4, 5]);
    });
    // of none both names mean the same
    let (object, _, (start, end)) = asking("__preinit_array_start", "__preinit_array_end");
    laid_out(&[&object], |layout| {
        assert_eq!(layout.symbol(0, start), layout.symbol(0, end));
        assert!(layout.symbol(0, start).is_some());
    });
}

#[test]
fn link_order_is_that_of_what_is_linked_to() {
    let (mut first, _, symbols) = asking("__start_notes", "__stop_notes");
    let late = first.section(".text.late", CODE, 16, &[0xc3]);
    // a note of code that is placed behind all other code
    let named = first.section("hot", CODE, 16, &[0xc3]);
    let hot = first.undefined("__start_hot");
    first.relocation(late, 0, R_X86_64_64 + 9, hot, 0);
    let note = |object: &mut Object, byte: u8, code: u32| {
        let section = object.section("notes", READ, 1, &[byte; 2]);
        object.follows(section, code);
    };
    note(&mut first, 3, named);
    note(&mut first, 1, late);
    // those that follow none, whatever they name, stay in their order
    first.section("notes", READ, 1, &[4; 2]);
    let names_one = first.section("notes", READ, 1, &[5; 2]);
    first.names(names_one, late);
    let mut second = Object::new();
    let text = second.section(".text", CODE, 16, &[0xc3]);
    note(&mut second, 2, text);
    note(&mut second, 0, text);
    second.section("notes", READ, 1, &[6; 2]);
    let objects = [first.build(), second.build()];
    plan(&objects, Options::default(), &mut nobody, |layout| {
        let layout = layout.unwrap();
        let mut image = vec![0; layout.size() as usize];
        // the code is too short for its relocation
        let _ = layout.write(&mut image, BASE);
        let found = between(&layout, &image, 0, symbols);
        assert_eq!(found, [1, 1, 2, 2, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6]);
    });
}

#[test]
fn edges_of_the_image() {
    let names = ["_etext", "etext", "_edata", "edata", "__bss_start", "_end", "end"];
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &[0xc3; 5]);
    let data = object.section(".data", WRITE, 8, &[0; 72]);
    let zeros = object.zeros(".bss", WRITE, 32, 40);
    object.common("common", 8, 8);
    let symbols: Vec<usize> = names.iter().map(|name| object.undefined(name)).collect();
    for (at, symbol) in (0..).step_by(8).zip(&symbols) {
        object.relocation(data, at, R_X86_64_64, *symbol, 0);
    }
    for (at, name) in [(56, "__ehdr_start"), (64, "__executable_start")] {
        let symbol = object.undefined(name);
        object.relocation(data, at, R_X86_64_64, symbol, 0);
    }
    let other = object.clone();
    for objects in [vec![&object], vec![&object, &Object::new()]] {
        laid_out(&objects, |layout| {
            let image = image(layout).unwrap();
            let at = |section| layout.section(0, section).unwrap();
            let value = |number: u64| word(&image, at(data) + 8 * number) - BASE;
            assert_eq!([value(0), value(1)], [at(text) + 5; 2]);
            assert_eq!([value(2), value(3)], [at(data) + 72; 2]);
            assert_eq!(value(4), at(zeros));
            assert_eq!([value(5), value(6)], [layout.size(); 2]);
            assert_eq!(layout.size(), at(zeros) + 48);
            assert_eq!(value(8), 0);
            let header = &image[value(7) as usize..][..64];
            let parsed = File::parse(header).unwrap();
            assert_eq!(parsed.header().machine, EM_X86_64);
            assert_eq!(parsed.header().r#type, ET_DYN);
            assert_eq!((parsed.sections().len(), parsed.segments().len()), (0, 0));
        });
    }
    let _ = other;
}

/// What is empty starts and ends where what is before it ends; in one blob all ends are that of the image.
#[test]
fn edges_of_what_is_not_there() {
    let names = ["_etext", "_edata", "__bss_start", "_end"];
    let asking = |make: &dyn Fn(&mut Object)| {
        let mut object = Object::new();
        make(&mut object);
        for name in names {
            let symbol = object.undefined(name);
            object.relocation(1, 0, R_X86_64_64, symbol, 0);
        }
        object
    };
    let edges = |object: &Object, options| {
        plan(&[object.build()], options, &mut nobody, |layout| {
            let layout = layout.unwrap();
            let symbol = |name: &str| layout.find(name.into());
            assert_eq!(symbol("_end"), None, "no object defines it");
            let count = names.len() as u32;
            let first = layout.files()[0].symbol_table().unwrap().unwrap().len() as u32 - count;
            let at = |symbol| layout.symbol(0, symbol).unwrap().at(0);
            (first..first + count).map(at).collect::<Vec<_>>()
        })
    };
    let code = asking(&|object| {
        object.section(".text", CODE, 8, &[0; 9]);
    });
    assert_eq!(edges(&code, Options::default()), [9; 4]);
    let constants = asking(&|object| {
        object.section(".rodata", READ, 8, &[0; 11]);
    });
    assert_eq!(edges(&constants, Options::default()), [0, 11, 11, 11]);
    let both = asking(&|object| {
        object.section(".text", CODE, 8, &[0; 9]);
        object.section(".rodata", READ, 8, &[0; 11]);
        object.zeros(".bss", WRITE, 8, 13);
    });
    assert_eq!(edges(&both, Options::default()), [9, 0x100b, 0x2000, 0x200d]);
    let data = asking(&|object| {
        object.section(".data", WRITE, 8, &[0; 9]);
        object.zeros(".bss", WRITE, 1, 13);
    });
    assert_eq!(edges(&data, Options::default()), [0, 9, 9, 22]);
    let mode = ImageMode::Packed { section_alignment: 1 };
    let packed = Options { mode, ..Options::default() };
    assert_eq!(edges(&data, packed), [22; 4]);
    assert_eq!(edges(&both, packed), [45; 4]);
}

#[test]
fn names_that_linkers_define() {
    for name in ["_end", "etext", "__bss_start", "__ehdr_start", "__rela_iplt_end"] {
        assert!(is_linker_defined(name.into()), "{name}");
    }
    for name in ["__init_array_start", "__fini_array_end", "__preinit_array_start"] {
        assert!(is_linker_defined(name.into()), "{name}");
    }
    for name in ["", "_End", "ends", "__init_array", "__init_array_starts", "__start_hooks"] {
        assert!(!is_linker_defined(name.into()), "{name}");
    }
    // the index of unwinding tables is Arm's
    let (object, ..) = asking("__exidx_start", "__exidx_end");
    let error = refused(&[&object], Options::default());
    assert!(matches!(error.kind, ErrorKind::Undefined { offset: 8, .. }), "{error}");
}

/// As many names as a hostile object likes, all of them asked for again and again: what is compared is what is sorted.
#[test]
fn many_names_take_no_long_time() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    for number in 0..4000 {
        object.section(&format!("s{}", number % 2000), WRITE, 1, &[1]);
        let symbol = object.undefined(&format!("__start_s{}", number % 1999));
        object.relocation(data, 0, R_X86_64_64, symbol, 0);
        object.undefined("__stop_s7");
    }
    laid_out(&[&object], |layout| {
        let image = image(layout).unwrap();
        assert_ne!(word(&image, layout.section(0, data).unwrap()), 0);
    });
}
