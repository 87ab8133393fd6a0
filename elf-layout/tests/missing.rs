//! The list of all symbols that nobody defines.
#![cfg(all(test, feature = "alloc", feature = "linker-defined"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod support;

use elf_core::File;
use elf_core::SectionFlags;
use elf_layout::{ErrorKind, undefined_symbols};
use reloc_x86::X86_64;
use reloc_x86::x86_64::R_X86_64_64;
use support::*;

#[test]
fn each_is_told_once_by_its_first_reference() {
    let mut first = Object::new();
    let debug = first.section(".debug_info", SectionFlags::empty(), 1, &[0; 8]);
    let data = first.section(".data", WRITE, 8, &[0; 80]);
    let own = first.global("own", data, 0);
    let maybe = first.undefined_weak("maybe");
    let names = [
        "missing",
        "of_second",
        "_end",
        "__start_hooks",
        "__start_nothing",
        "answered",
        "local_of_second",
        "_GLOBAL_OFFSET_TABLE_",
    ];
    let symbols = names.map(|name| first.undefined(name));
    let only_debug = first.undefined("only_debug");
    first.relocation(debug, 0, R_X86_64_64, only_debug, 0);
    for (place, symbol) in (0..).step_by(8).zip([own, maybe].into_iter().chain(symbols)) {
        first.relocation(data, place, R_X86_64_64, symbol, 0);
    }
    let mut second = Object::new();
    let more = second.section(".data", WRITE, 8, &[0; 24]);
    second.section("hooks", READ, 8, &[0; 8]);
    second.global("of_second", more, 0);
    second.local("local_of_second", more, 0);
    let again = ["missing", "last", "answered"].map(|name| second.undefined(name));
    for (place, symbol) in (0..).step_by(8).zip(again) {
        second.relocation(more, place, R_X86_64_64, symbol, 0);
    }
    let indices = [symbols[0], symbols[4], symbols[6]].map(|symbol| first.index(symbol));
    let bytes = [first.build(), second.build()];
    let files = [0, 1].map(|at| File::parse(&bytes[at]).unwrap());
    let expected = [
        (0, data, indices[0], 16),
        (0, data, indices[1], 48),
        (0, data, indices[2], 64),
        (1, more, second.index(again[1]), 8),
    ];
    for most in [10, 4, 3, 0] {
        let mut asked = Vec::new();
        let (found, rest) = undefined_symbols::<X86_64>(&files, most, &mut |name| {
            asked.push(name.to_string());
            name != "answered"
        });
        let told: Vec<_> = found
            .iter()
            .map(|error| match error.kind {
                ErrorKind::Undefined { symbol, offset, r#type: R_X86_64_64, name } => {
                    assert_eq!(name, "R_X86_64_64");
                    (error.object, error.section, symbol, offset)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((&told[..], rest), (&expected[..most.min(4)], 4 - most.min(4)));
        let mut once = asked.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), asked.len(), "{asked:?}");
    }
}
