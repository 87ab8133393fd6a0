//! Sections that are there once by their names, as compilers wrote them before there were groups.
#![cfg(test)]
#![cfg(feature = "linker-defined")]

mod support;

use elf_core::SectionFlags;
use elf_core::names::{GRP_COMDAT, SHT_GROUP};
use reloc_x86::x86_64::R_X86_64_64;
use support::{BASE, CODE, Object, WRITE, image, laid_out, word};

/// Of those of one name the first is kept, whatever the binding of its symbols.
#[test]
fn of_linkonce_sections_the_first_is_kept() {
    let object = |name: &str, is_weak: bool, code: u8| {
        let mut object = Object::new();
        let text = object.section(name, CODE, 1, &[code; 8]);
        let symbol = if is_weak { object.weak("f", text, 2) } else { object.global("f", text, 2) };
        let own = object.section(".data", WRITE, 8, &[0; 8]);
        object.relocation(own, 0, R_X86_64_64, symbol, 0);
        (object, text, own)
    };
    for (first, second) in [(true, false), (false, true), (false, false), (true, true)] {
        let (one, text, _) = object(".gnu.linkonce.t.f", first, 1);
        let (two, _, own) = object(".gnu.linkonce.t.f", second, 2);
        laid_out(&[&one, &two], |layout| {
            let kept = [0, 1].map(|object| layout.section(object, text).is_some());
            assert_eq!(kept, [true, false]);
            let address = BASE + layout.section(0, text).unwrap() + 2;
            let image = image(layout).unwrap();
            assert_eq!(word(&image, layout.section(1, own).unwrap()), address);
        });
    }
    let [(one, text, _), (two, ..)] =
        [object(".gnu.linkonce.t.f", true, 1), object(".gnu.linkonce.r.f", true, 2)];
    laid_out(&[&one, &two], |layout| assert!(layout.section(1, text).is_some()));
}

/// A section of a group is of that alone, and a group that is none of COMDAT is not there once, whatever its name.
#[test]
fn names_of_groups_and_their_sections_say_nothing() {
    const NAME: &str = ".gnu.linkonce.t.f";
    let member = |signature: &str| {
        let mut object = Object::new();
        let text = object.section(NAME, CODE | SectionFlags::GROUP, 1, &[0xc3]);
        let symbol = object.weak(signature, text, 0);
        object.group(symbol, GRP_COMDAT, &[text]);
        object
    };
    let mut grouped = Object::new();
    grouped.section(".text", CODE, 1, &[0xc3]);
    let words = [0u32, 1].map(u32::to_le_bytes).concat();
    let group = grouped.section(NAME, SectionFlags::empty(), 4, &words);
    grouped.kind(group, SHT_GROUP);
    let kept = |objects: [&Object; 2]| {
        laid_out(&objects, |layout| [0, 1].map(|object| layout.section(object, 1).is_some()))
    };
    assert_eq!(kept([&member("f"), &member("g")]), [true, true]);
    assert_eq!(kept([&member("f"), &member("f")]), [true, false]);
    assert_eq!(kept([&grouped, &grouped]), [true, true]);
}
