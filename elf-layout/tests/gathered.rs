//! Which sections stand together behind all others, and as what.
#![cfg(all(test, feature = "alloc", feature = "linker-defined", feature = "thread-local"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::SectionFlags;
use elf_core::names::*;
use elf_layout::{Layout, Options};
use reloc_x86::X86_64;
use reloc_x86::x86_64::R_X86_64_64;
use support::*;

/// An object whose data ask where these are, and their symbols.
fn asking<const N: usize>(names: [&str; N]) -> (Object, [u32; N]) {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[[0x77; 8]; N].concat());
    let symbols = names.map(|name| object.undefined(name));
    for (place, symbol) in (0..).step_by(8).zip(symbols) {
        object.relocation(data, place, R_X86_64_64, symbol, 0);
    }
    let symbols = symbols.map(|symbol| object.index(symbol));
    (object, symbols)
}

/// Bytes from the start of the image to a symbol of the first object.
fn at(layout: &Layout<'_, '_, X86_64>, symbol: u32) -> u64 {
    layout.symbol(0, symbol).unwrap().at(0)
}

#[test]
fn arrays_of_every_kind_stand_together() {
    for (name, kind, edges) in [
        (".preinit_array", SHT_PREINIT_ARRAY, ["__preinit_array_start", "__preinit_array_end"]),
        (".init_array", SHT_INIT_ARRAY, ["__init_array_start", "__init_array_end"]),
        (".fini_array", SHT_FINI_ARRAY, ["__fini_array_start", "__fini_array_end"]),
    ] {
        let (mut first, [start, end]) = asking(edges);
        let mut second = Object::new();
        let add = |object: &mut Object, suffix: &str, byte| {
            let section = object.section(&format!("{name}{suffix}"), WRITE, 8, &[byte; 8]);
            object.kind(section, kind);
            object.section(".data.other", WRITE, 8, &[9; 8]);
        };
        add(&mut first, "", 2);
        add(&mut first, ".7", 1);
        add(&mut second, "", 3);
        laid_out(&[&first, &second], |layout| {
            let found =
                &image(layout).unwrap()[at(layout, start) as usize..at(layout, end) as usize];
            assert_eq!(found, [[1; 8], [2; 8], [3; 8]].concat(), "{name}");
        });
    }
}

/// What is named as no variable of C can be, or is of another kind than it looks, stays where it is.
#[test]
fn others_stay_where_they_are() {
    let (mut object, [start, end]) = asking(["__start_hooks", "__stop_hooks"]);
    let add = |object: &mut Object, name: &str, flags| object.section(name, flags, 8, &[1; 8]);
    let first = add(&mut object, ".rodata", READ);
    let hooks = add(&mut object, "hooks", READ);
    let others = ["1st", "a-b", ".name", "", ".eh_frame"].map(|it| add(&mut object, it, READ));
    // of Arm this number is another one's
    object.kind(others[4], SHT_X86_64_UNWIND);
    let last = add(&mut object, "other", READ);
    let variable = add(&mut object, "hooks", WRITE | SectionFlags::TLS);
    laid_out(&[&object], |layout| {
        let place = |section| layout.section(0, section).unwrap();
        let places = [first, others[0], others[1], others[2], others[3], others[4]].map(place);
        let expected: Vec<u64> = (0..6).map(|number| places[0] + 8 * number).collect();
        assert_eq!(places[..], expected);
        assert!(place(hooks) > places[5] && place(last) > place(hooks));
        assert_eq!((at(layout, start), at(layout, end)), (place(hooks), place(hooks) + 8));
        assert_eq!(layout.tls_block().unwrap().offset, place(variable));
    });
}

/// Sections of one name that are zeros alone are such, and no longer so beside one with data.
#[test]
fn zeros_of_one_name_are_zeros() {
    for has_data in [false, true] {
        let (mut object, [zeros, start, end]) =
            asking(["__bss_start", "__start_hooks", "__stop_hooks"]);
        object.zeros("hooks", WRITE, 8, 16);
        object.zeros(".bss", WRITE, 8, 8);
        if has_data {
            object.section("hooks", WRITE, 8, &[1; 8]);
        }
        object.zeros("hooks", WRITE, 8, 24);
        laid_out(&[&object], |layout| {
            let [zeros, start, end] = [zeros, start, end].map(|symbol| at(layout, symbol));
            assert_eq!(end - start, if has_data { 48 } else { 40 });
            assert_eq!(start < zeros, has_data);
        });
    }
}

/// Whoever says where a section starts itself means that.
#[test]
fn own_edges_beside_others_are_kept() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 24]);
    let end = object.undefined("_end");
    let own = object.global("__start_hooks", data, 4);
    let stop = object.undefined("__stop_hooks");
    for (place, symbol) in [(0, end), (8, own), (16, stop)] {
        object.relocation(data, place, R_X86_64_64, symbol, 0);
    }
    let hooks = object.section("hooks", WRITE, 8, &[1; 8]);
    let (own, stop) = (object.index(own), object.index(stop));
    laid_out(&[&object], |layout| {
        let place = |section| layout.section(0, section).unwrap();
        assert_eq!([own, stop].map(|it| at(layout, it)), [place(data) + 4, place(hooks) + 8]);
    });
}

/// Where nobody asks for more than an object says itself, all sections stay where they are.
#[test]
fn own_edges_gather_nothing() {
    let mut object = Object::new();
    let hooks = object.section("hooks", WRITE, 8, &[1; 8]);
    let data = object.section(".data", WRITE, 8, &[9; 8]);
    // before and behind it what a linker defines, but for no section
    let code_end = object.undefined("_etext");
    let own = object.global("__start_hooks", hooks, 0);
    let end = object.undefined("_end");
    for symbol in [code_end, end] {
        object.relocation(data, 0, R_X86_64_64, symbol, 0);
    }
    let own = object.index(own);
    laid_out(&[&object], |layout| {
        let place = |section| layout.section(0, section).unwrap();
        assert_eq!((at(layout, own), place(data)), (place(hooks), place(hooks) + 8));
    });
}

/// Unwinding tables that a start file begins end with a length of 0, whatever stands behind them.
#[test]
fn unwinding_tables_end() {
    let mut object = Object::new();
    object.section(".eh_frame", READ, 1, &[]);
    object.section(".eh_frame", READ, 1, &[4, 0, 0, 0, 5, 5, 5, 5]);
    object.section(".tm_clone_table", READ, 1, &[0xee; 3]);
    let options = Options { executable: true, ..Options::default() };
    plan(&[object.build()], options, &mut nobody, |layout| {
        let image = image(&layout.unwrap()).unwrap();
        let tables = [4, 0, 0, 0, 5, 5, 5, 5, 0, 0, 0, 0, 0xee, 0xee, 0xee];
        assert_eq!(image[..tables.len()], tables);
    });
}
