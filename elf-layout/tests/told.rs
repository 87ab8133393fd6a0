//! What a layout tells of itself, and where what linkers put together goes.
#![cfg(test)]

mod support;

use elf_core::SectionFlags;
use elf_core::names::*;
use elf_layout::{ErrorKind, FRAGMENT_ROOM, Options, SymbolAddress};
use reloc_x86::x86_64::{R_X86_64_32S, R_X86_64_64, R_X86_64_PLT32, R_X86_64_REX_GOTPCRELX};
use support::{
    BASE, CODE, Object, Place, READ, WRITE, half, image, laid_out, plan, process, refused, word,
};

const LARGE: SectionFlags = SectionFlags::X86_64_LARGE;

/// A length of 0 follows each table that says how to unwind (LSB, "Exception Frames"): what is writable, code, empty or named otherwise is none.
#[test]
fn unwinding_tables_are_ended() {
    let object = || {
        let mut object = Object::new();
        let first = object.section(".eh_frame", READ, 1, &[7; 8]);
        let behind = object.section(".rodata", READ, 1, &[9; 8]);
        object.section(".eh_frame", READ, 1, &[]);
        object.section(".eh_frames", READ, 1, &[8; 4]);
        object.section(".eh_frame", WRITE, 1, &[8; 4]);
        object.section(".eh_frame", CODE, 1, &[8; 4]);
        object.section(".eh_frame", SectionFlags::empty(), 1, &[8; 4]);
        (object, first, behind)
    };
    let ((one, first, behind), (two, ..)) = (object(), object());
    laid_out(&[&one, &two], |layout| {
        let at = |object, section| layout.section(object, section).unwrap();
        let tables: Vec<_> = layout.unwinding_tables().collect();
        assert_eq!(tables, [(at(0, first), 8), (at(1, first), 8)]);
        let image = image(layout).unwrap();
        for object in 0..2 {
            let end = at(object, first) + 8;
            assert_eq!(at(object, behind), end + 4);
            assert_eq!(image[end as usize..][..4], [0; 4]);
        }
    });
}

/// Behind fragments of functions is room for their ends: code of these names alone.
#[test]
fn fragments_have_room() {
    for (name, flags, room) in [
        (".init", CODE, FRAGMENT_ROOM),
        (".fini", CODE, FRAGMENT_ROOM),
        (".init", READ, 0),
        (".init.text", CODE, 0),
        (".finis", CODE, 0),
        (".text", CODE, 0),
    ] {
        let mut object = Object::new();
        let first = object.section(name, flags, 1, &[1; 3]);
        let second = object.section(".other", flags, 1, &[2; 3]);
        laid_out(&[&object], |layout| {
            let [first, second] = [first, second].map(|it| layout.section(0, it).unwrap());
            assert_eq!(second - first, 3 + room, "{name}");
        });
    }
}

#[test]
fn addresses_of_all_symbols() {
    let mut one = Object::new();
    one.section(".text", CODE, 1, &[0xc3; 3]);
    let mut two = Object::new();
    let data = two.section(".data", WRITE, 8, &[0; 16]);
    two.local("local", data, 4);
    two.global("global", data, 8);
    two.symbol("absolute", STB_GLOBAL, STT_NOTYPE, Place::Absolute, 0x77, 0);
    two.undefined("nobody");
    two.undefined("near_data");
    laid_out(&[&one, &two], |layout| {
        let data = BASE + layout.section(1, data).unwrap();
        let all = [Some(0), Some(data + 4), Some(data + 8), Some(0x77), None, Some(support::NEAR)];
        for first in 0..7 {
            let found: Vec<_> = layout.addresses(1, first, BASE).collect();
            assert_eq!(found, all.get(first as usize..).unwrap_or_default());
        }
        assert_eq!(layout.addresses(2, 0, BASE).count(), 0);
        let symbols = [2, 3].map(|symbol| layout.symbol(1, symbol).unwrap());
        assert_eq!(symbols, [SymbolAddress::Image(data - BASE + 8), SymbolAddress::Absolute(0x77)]);
        assert_eq!(symbols.map(|it| it.at(0x1000)), [data - BASE + 0x1008, 0x77]);
        assert_eq!(layout.find("local".into()), None);
        assert_eq!(layout.find("nobody".into()), None);
        assert_eq!(layout.find("global".into()), Some((1, 2)));
    });
}

/// Whoever asks for an indirect function gets its stub, which jumps where the entry says that is told with the resolver.
#[test]
#[cfg_attr(not(feature = "indirect-functions"), ignore = "needs the feature indirect-functions")]
fn indirect_functions_are_their_stubs() {
    let mut one = Object::new();
    let text = one.section(".text", CODE, 16, &[0; 16]);
    let data = one.section(".data", WRITE, 8, &[0; 16]);
    let [first, second] = ["first", "second"].map(|name| one.undefined(name));
    one.relocation(text, 0, R_X86_64_PLT32, first, -4);
    one.relocation(data, 0, R_X86_64_64, first, 0);
    one.relocation(data, 8, R_X86_64_64, second, 0);
    let mut two = Object::new();
    let code = two.section(".text", CODE, 16, &[0; 32]);
    two.symbol("first", STB_GLOBAL, STT_GNU_IFUNC, Place::In(code), 8, 4);
    two.symbol("second", STB_WEAK, STT_GNU_IFUNC, Place::In(code), 20, 4);
    let options = Options { indirect_functions: true, ..Options::default() };
    plan(&[one.build(), two.build()], options, &mut process, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        let functions: Vec<_> = layout.indirect_functions().collect();
        let at = |object, section| layout.section(object, section).unwrap();
        let own: Vec<_> = functions.iter().map(|it| (it.object, it.symbol, it.resolver)).collect();
        assert_eq!(own, [(1, 1, at(1, code) + 8), (1, 2, at(1, code) + 20)]);
        assert_ne!(functions[0].entry, functions[1].entry);
        for (function, place) in functions.iter().zip([0, 8]) {
            let stub = word(&image, at(0, data) + place) - BASE;
            assert_eq!(
                layout.symbol(function.object, function.symbol),
                Some(SymbolAddress::Image(stub))
            );
            assert_eq!(image[stub as usize..][..2], [0xff, 0x25], "jmp *entry(%rip)");
            assert_eq!((stub + 6).wrapping_add_signed(half(&image, stub + 2)), function.entry);
        }
        let call = (at(0, text) + 4).wrapping_add_signed(half(&image, at(0, text)));
        assert_eq!(call + BASE, word(&image, at(0, data)));
        assert_eq!(layout.replaceable_functions().count(), 0);
    });
}

/// Large data at the end may be beyond what low addresses reach; not so if something stands behind them.
#[test]
fn large_data_do_not_count() {
    let limit = |large: &[(SectionFlags, u64)], last: bool| {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        let symbol = object.local("here", data, 0);
        object.relocation(data, 0, R_X86_64_32S, symbol, 0);
        for (flags, size) in large {
            object.zeros(".large", *flags | LARGE, 4096, *size);
        }
        if last {
            object.section(".both", WRITE | CODE, 1, &[0]);
        }
        laid_out(&[&object], |layout| layout.limit().unwrap() - (1 << 31))
    };
    assert_eq!(limit(&[], false), 0);
    // with the padding to them
    assert_eq!(limit(&[(WRITE, 0x5000)], false), 0x5000 + 4096 - 8);
    assert_eq!(limit(&[(READ, 0x3000), (WRITE, 0x5000)], false), 0x8000 + 4096 - 8);
    assert_eq!(limit(&[(READ, 0x3000), (WRITE, 0x5000)], true), 0);
}

/// Absolute symbols are loaded without the GOT where they are below 2 GiB by 64 KiB.
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn absolute_symbols_without_the_got() {
    for (value, entries) in [(0x7ffe_ffff, 0), (0x7fff_0000, 1), (0x1_0000_0000, 1)] {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 1, &[0x48, 0x8b, 0x05, 0, 0, 0, 0]);
        let place = Place::Absolute;
        let symbol = object.symbol("absolute", STB_GLOBAL, STT_NOTYPE, place, value, 0);
        object.relocation(text, 3, R_X86_64_REX_GOTPCRELX, symbol, -4);
        laid_out(&[&object], |layout| {
            assert_eq!(layout.got_entries().count(), entries, "{value:#x}");
            let image = image(layout).unwrap();
            if entries == 0 {
                assert_eq!(image[..3], [0x48, 0xc7, 0xc0], "mov $absolute, %rax");
                assert_eq!(half(&image, 3) as u64, value);
            } else {
                assert_eq!(word(&image, 7_u64.wrapping_add_signed(half(&image, 3))), value);
            }
        });
    }
}

/// What stands together is where the strictest of its sections may be: zeros among bytes, large ones among others.
#[test]
#[cfg_attr(not(feature = "linker-defined"), ignore = "needs the feature linker-defined")]
fn what_stands_together_is_as_one() {
    let group = |sections: &[(bool, SectionFlags)]| {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        let zeros = object.zeros(".bss", WRITE, 8, 8);
        let large = object.section(".ldata", WRITE | LARGE, 8, &[0; 8]);
        let constants = object.section(".rodata", READ, 8, &[0; 8]);
        let start = object.undefined("__start_hooks");
        object.relocation(data, 0, R_X86_64_64, start, 0);
        let mut last = 0;
        for &(is_zeros, flags) in sections {
            last = match is_zeros {
                true => object.zeros("hooks", flags, 8, 8),
                false => object.section("hooks", flags, 8, &[1; 8]),
            };
        }
        laid_out(&[&object], |layout| {
            let at = |section| layout.section(0, section).unwrap();
            let last = at(last);
            let others =
                [(constants, "constants"), (data, "data"), (zeros, "zeros"), (large, "large")];
            let before = others.iter().filter(|(it, _)| at(*it) < last);
            before.max_by_key(|(it, _)| at(*it)).map_or("", |(_, name)| name)
        })
    };
    let (bytes, zeros) = (false, true);
    assert_eq!(group(&[(bytes, WRITE)]), "data");
    assert_eq!(group(&[(zeros, WRITE), (zeros, WRITE)]), "zeros");
    assert_eq!(group(&[(zeros, WRITE), (bytes, WRITE)]), "data");
    assert_eq!(group(&[(bytes, WRITE), (zeros, WRITE)]), "data");
    assert_eq!(group(&[(bytes, READ), (bytes, READ)]), "constants");
    assert_eq!(group(&[(bytes, READ), (bytes, WRITE)]), "data");
    assert_eq!(group(&[(bytes, WRITE | LARGE), (bytes, WRITE | LARGE)]), "large");
    assert_eq!(group(&[(bytes, WRITE | LARGE), (bytes, WRITE)]), "data");
    assert_eq!(group(&[(bytes, WRITE), (bytes, WRITE | LARGE)]), "data");
}

/// Of two sections at overlapping addresses the later one is named.
#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn overlaps_are_told_of_the_later() {
    let object = |addresses: &[u64]| {
        let mut object = Object::new();
        object.section(".text", CODE, 1, &[0xc3]);
        for &address in addresses {
            let section = object.section("s", READ, 1, &[1; 32]);
            object.at(section, address);
        }
        object
    };
    for (objects, expected) in [
        ([&[0x2000][..], &[0x3000, 0x201f]], (1, 3, 0x201f)),
        ([&[0x201f], &[0x3000, 0x2000]], (1, 3, 0x2000)),
        ([&[0x2000, 0x2010], &[0x3000]], (0, 3, 0x2010)),
    ] {
        let [one, two] = objects.map(object);
        let error = refused(&[&one, &two], Options::default());
        let (object, section, address) = expected;
        let kind = ErrorKind::Overlap { address };
        assert_eq!((error.object, error.section, error.kind), (object, section, kind));
    }
}

/// Distances in an image have a sign.
#[test]
fn images_are_smaller_than_half_of_all_addresses() {
    for (size, fits) in [(i64::MAX as u64 - 1, true), (i64::MAX as u64, false)] {
        let mut object = Object::new();
        object.zeros(".bss", WRITE, 1, size);
        plan(&[object.build()], Options::default(), &mut |_| None, |layout| match layout {
            Ok(layout) => assert_eq!((layout.size(), fits), (size, true)),
            Err(error) => assert_eq!((error.kind, fits), (ErrorKind::TooLarge, false)),
        });
    }
}

/// An address is a constant of 32 bits in code only where it is known to be one.
#[test]
#[cfg_attr(not(feature = "relax"), ignore = "needs the feature relax")]
fn addresses_in_code_are_low() {
    // cmp variable@GOTPCREL(%rip), %rax
    let mut object = Object::new();
    let text = object.section(".text", CODE, 1, &[0x48, 0x3b, 0x05, 0, 0, 0, 0]);
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let variable = object.global("variable", data, 0);
    object.relocation(text, 3, R_X86_64_REX_GOTPCRELX, variable, -4);
    for (base, is_low) in [(Some(BASE), true), (Some(0x7f00_0000_0000), false), (None, false)] {
        let options = Options { base, ..Options::default() };
        plan(&[object.build()], options, &mut |_| None, |layout| {
            let layout = layout.unwrap();
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, base.unwrap_or(BASE)).unwrap();
            let start = layout.section(0, text).unwrap() as usize;
            // cmp $variable, %rax
            assert_eq!(image[start..].starts_with(&[0x48, 0x81, 0xf8]), is_low, "{base:x?}");
        });
    }
}
