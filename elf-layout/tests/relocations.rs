//! What relocations get: GOT entries, stubs, addresses that fit.
#![cfg(test)]

mod support;

use elf_core::names::*;
use elf_core::{ApplyErrorKind, File, Name, Role, Slot};
use elf_layout::{
    ErrorKind, ExternalSymbol, ImageMode, Layout, ObjectSlot, Options, Requirements, SectionSlot,
    Storage, SymbolSlot,
};
use reloc_riscv::Rv32;
use reloc_x86::X86_64;
use reloc_x86::x86_64::{
    R_X86_64_16, R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX,
    R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32, R_X86_64_PLTOFF64, R_X86_64_REX_GOTPCRELX,
    R_X86_64_SIZE64,
};
use support::{
    BASE, CODE, FAR, NEAR, Object, Place, READ, WRITE, half, image, image_error, laid_out,
    placement, plan, process, word,
};

/// An object whose code refers to `symbols` one after the other, eight bytes each, by `kind`.
fn uses(kind: u32, symbols: &[&str]) -> Object {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &vec![0; 8 * symbols.len()]);
    for (at, name) in symbols.iter().enumerate() {
        let symbol = object.undefined(name);
        object.relocation(text, 8 * at as u64, kind, symbol, 0);
    }
    object
}

#[test]
fn one_got_entry_for_each_symbol() {
    let mut one = uses(R_X86_64_GOTPCREL, &["far", "near"]);
    one.relocation(1, 4, R_X86_64_REX_GOTPCRELX, 0, 0);
    let mut two = uses(R_X86_64_REX_GOTPCRELX, &["near", "own", "far"]);
    let data = two.section(".data", WRITE, 8, &[0; 8]);
    two.global("own3", data, 0);
    let mut three = Object::new();
    let own = three.section(".rodata", READ, 8, &[0; 8]);
    three.global("own", own, 4);
    laid_out(&[&one, &two, &three], |layout| {
        let entries: Vec<_> = layout.got_entries().collect();
        assert_eq!(entries.len(), 3, "{entries:?}");
        assert_eq!(layout.got().1, 24);
        assert!(entries.iter().all(|entry| entry.content == Slot::Address));
        assert!(
            entries.iter().any(|entry| (entry.object, entry.symbol) == (2, 1)),
            "by its definition"
        );
        assert_eq!(layout.stubs().count(), 0);
        let image = image(layout).unwrap();
        let target = |object: usize, offset: u64| {
            let place = layout.section(object, 1).unwrap() + offset;
            word(&image, place.wrapping_add_signed(half(&image, place)))
        };
        assert_eq!([target(0, 0), target(0, 4), target(1, 16)], [FAR; 3]);
        assert_eq!([target(0, 8), target(1, 0)], [NEAR; 2]);
        assert_eq!(target(1, 8), BASE + layout.section(2, own).unwrap() + 4);
    });
}

/// Code that does without the GOT reaches the symbol itself (psABI, "Optimize GOTPCRELX Relocations"); so it stays where the image is too
/// large for that, or the caller wants entries.
#[test]
fn loads_and_calls_without_the_got() {
    // mov own@GOTPCREL(%rip), %rax; call *own@GOTPCREL(%rip); jmp *own@GOTPCREL(%rip)
    let code = [0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xff, 0x15, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0];
    for (relax, room) in [(true, 0), (false, 0), (true, 0x7fff_0000)] {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 16, &code);
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        let own = object.global("own", data, 8);
        object.relocation(text, 3, R_X86_64_REX_GOTPCRELX, own, -4);
        object.relocation(text, 9, R_X86_64_GOTPCRELX, own, -4);
        object.relocation(text, 15, R_X86_64_GOTPCRELX, own, -4);
        object.zeros(".bss", WRITE, 8, room);
        let options = Options { relax, ..Options::default() };
        plan(&[object.build()], options, &mut process, |layout| {
            let layout = layout.unwrap();
            let is_relaxed = relax && room == 0 && cfg!(feature = "relax");
            assert_eq!(layout.got_entries().count(), usize::from(!is_relaxed), "{relax} {room}");
            if room > 0 {
                return;
            }
            let image = image(&layout).unwrap();
            let own = layout.section(0, data).unwrap() + 8;
            if !is_relaxed {
                for at in [3u64, 9, 15] {
                    let entry = (at + 4).wrapping_add_signed(half(&image, at));
                    assert_eq!(word(&image, entry), BASE + own);
                }
                return;
            }
            // lea, addr32 call, jmp with a nop behind it
            assert_eq!(image[..3], [0x48, 0x8d, 0x05]);
            assert_eq!((&image[7..9], image[13], image[18]), ([0x67, 0xe8].as_slice(), 0xe9, 0x90));
            for (at, end) in [(3, 7u64), (9, 13), (14, 18)] {
                assert_eq!(end.wrapping_add_signed(half(&image, at)), own);
            }
        });
    }
}

#[test]
fn stubs_only_where_the_target_is_out_of_reach() {
    let names = ["far", "near", "far", "own", "far_data", "near_data"];
    let one = uses(R_X86_64_PLT32, &names);
    let mut two = uses(R_X86_64_PLT32, &["far"]);
    two.global("own", 1, 4);
    laid_out(&[&one, &two], |layout| {
        let image = image(layout).unwrap();
        let target = |object: usize, offset: u64| {
            let place = layout.section(object, 1).unwrap() + offset;
            (BASE + place).wrapping_add_signed(half(&image, place))
        };
        let stub = |address: u64| layout.stubs().any(|stub| BASE + stub.offset == address);
        let through = |address: u64| {
            let at = address - BASE;
            assert_eq!(image[at as usize..][..2], [0xff, 0x25]);
            word(&image, (at + 6).wrapping_add_signed(half(&image, at + 2)))
        };
        assert!(stub(target(0, 0)) && through(target(0, 0)) == FAR);
        assert_eq!(target(0, 0), target(0, 16));
        assert_eq!(target(0, 0), target(1, 0), "one stub for all objects");
        assert_eq!(target(0, 8), NEAR);
        assert_eq!(target(0, 24), BASE + layout.section(1, 1).unwrap() + 4);
        assert!(through(target(0, 32)) == FAR, "a branch to what is no function as well");
        assert_eq!(target(0, 40), NEAR);
        assert_eq!(layout.stubs().count(), 4, "one for each external that is called");
        for entry in layout.stubs() {
            assert_eq!((entry.offset % 8, entry.size), (0, 8));
        }
    });
}

/// What spans all addresses has no use for stubs.
#[test]
#[cfg_attr(not(feature = "default"), ignore = "needs the feature default")]
fn branches_that_reach_everything() {
    laid_out(&[&uses(R_X86_64_PLTOFF64, &["far", "near"])], |layout| {
        assert_eq!(layout.stubs().count(), 0);
        let image = image(layout).unwrap();
        let got = BASE + layout.got().0;
        assert_eq!([0, 8].map(|at| got.wrapping_add(word(&image, at))), [FAR, NEAR]);
    });
    let bytes = include_bytes!("../../fixtures/riscv32/pair-a.o");
    let files = [File::parse(bytes).unwrap()];
    let needed = Requirements::of(&files).unwrap();
    let mut sections = vec![SectionSlot::default(); needed.sections];
    let mut symbols = vec![SymbolSlot::default(); needed.symbols];
    let storage = Storage {
        objects: &mut [ObjectSlot::default()],
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut [],
        edits: &mut [],
    };
    let mut far = |_: Name<'_>| Some(ExternalSymbol::function(0xf000_0000));
    let layout = Layout::<Rv32>::plan(&files, Options::default(), storage, &mut far).unwrap();
    assert_eq!(layout.stubs().count(), 0);
    layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap();
}

/// A call of a weak function that nobody defines is never made where code asks first, and goes to 0 by way of a stub: that is out of reach.
#[test]
fn weak_functions_that_nobody_defines() {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &[0; 8]);
    let weak = object.undefined_weak("nobody");
    object.relocation(text, 0, R_X86_64_PLT32, weak, -4);
    laid_out(&[&object], |layout| {
        let stub = layout.stubs().next().unwrap().offset;
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, 1 << 40).unwrap();
        assert_eq!(4_u64.wrapping_add_signed(half(&image, 0)), stub);
        assert_eq!(word(&image, (stub + 6).wrapping_add_signed(half(&image, stub + 2))), 0);
    });
}

/// Every reference to a function out of reach means the same stub, so that its address is one.
#[test]
#[cfg_attr(not(feature = "copy-relocations"), ignore = "needs the feature copy-relocations")]
fn a_stub_is_the_address_of_a_function_out_of_reach() {
    for kind in [R_X86_64_PC32, R_X86_64_32, R_X86_64_32S] {
        let mut one = uses(kind, &["far"]);
        one.relocation(1, 4, R_X86_64_PLT32, 0, -4);
        let mut two = Object::new();
        let data = two.section(".data", WRITE, 8, &[0; 16]);
        let (far, near) = (two.undefined("far"), two.undefined("near"));
        two.relocation(data, 0, R_X86_64_64, far, 0);
        two.relocation(data, 8, R_X86_64_64, near, 0);
        laid_out(&[&one, &two], |layout| {
            let image = image(layout).unwrap();
            let stub = BASE + layout.stubs().next().unwrap().offset;
            let place = layout.section(0, 1).unwrap();
            let found = match kind {
                R_X86_64_PC32 => (BASE + place).wrapping_add_signed(half(&image, place)),
                _ => half(&image, place) as u64,
            };
            assert_eq!(found, stub, "{kind}");
            let data = layout.section(1, data).unwrap();
            assert_eq!([word(&image, data), word(&image, data + 8)], [stub, NEAR], "{kind}");
            let limit = if kind == R_X86_64_PC32 { None } else { Some(layout.limit().unwrap()) };
            assert_eq!(layout.limit(), limit);
        });
    }
    // within reach it has its own address
    let near = uses(R_X86_64_PC32, &["near"]);
    laid_out(&[&near], |layout| {
        let image = image(layout).unwrap();
        let place = layout.section(0, 1).unwrap();
        assert_eq!((BASE + place).wrapping_add_signed(half(&image, place)), NEAR);
    });
}

/// Constants out of reach are asked for at the place of a copy, which the caller makes.
#[test]
#[cfg_attr(not(feature = "copy-relocations"), ignore = "needs the feature copy-relocations")]
fn a_copy_is_the_address_of_a_constant_out_of_reach() {
    for kind in [R_X86_64_PC32, R_X86_64_32S] {
        let one = uses(kind, &["far_constant", "near_constant", "far_constant"]);
        let two = uses(R_X86_64_64, &["far_constant", "near_constant"]);
        laid_out(&[&one, &two], |layout| {
            let copies: Vec<_> = layout.copies().collect();
            assert_eq!(copies.len(), 2, "one for each that a narrow place asks for");
            let far = copies.iter().find(|copy| copy.address == FAR).unwrap();
            assert!(far.offset + 24 <= layout.size());
            assert!(copies.iter().any(|copy| copy.address == NEAR));
            let image = image(layout).unwrap();
            let (narrow, wide) = (layout.section(0, 1).unwrap(), layout.section(1, 1).unwrap());
            let target = |offset: u64| {
                let from = if kind == R_X86_64_PC32 { BASE + narrow + offset } else { 0 };
                from.wrapping_add_signed(half(&image, narrow + offset))
            };
            assert_eq!(
                [target(0), target(8), target(16)],
                [BASE + far.offset, NEAR, BASE + far.offset]
            );
            assert_eq!([word(&image, wide), word(&image, wide + 8)], [BASE + far.offset, NEAR]);
        });
    }
    laid_out(&[&uses(R_X86_64_64, &["far_constant"])], |layout| {
        assert_eq!(layout.copies().count(), 0, "every address fits");
    });
    // in one blob as well they have room of their own
    let mode = ImageMode::Packed { section_alignment: 128 };
    let options = Options { mode, ..Options::default() };
    let object = uses(R_X86_64_32S, &["far_constant", "near_constant"]).build();
    plan(&[object], options, &mut process, |layout| {
        let layout = layout.unwrap();
        placement::check(&layout, &options);
        let far = layout.copies().find(|copy| copy.address == FAR).unwrap();
        let image = image(&layout).unwrap();
        assert_eq!(half(&image, 0) as u64, BASE + far.offset);
        assert!(far.offset >= 16 && far.offset + 24 <= layout.size());
    });
}

/// A constant has a copy where one end of the image does not reach it, or an addend leads out of reach.
#[test]
#[cfg_attr(not(feature = "copy-relocations"), ignore = "needs the feature copy-relocations")]
fn constants_at_the_end_of_reach() {
    const LAST: u64 = 0xf_fff8;
    const REACH: u64 = 1 << 31;
    let base = 8 * REACH;
    for (constant, addend, is_copied) in [
        (base + REACH - 0x8_0000, 0, false),
        (base + REACH + 0x8_0000, 0, true),
        (base - REACH + 0x8_0000, 0, true),
        (base - REACH + 0x18_0000, 0, false),
        (base + REACH - 2000, 3000, true),
    ] {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 16, &[0; LAST as usize + 8]);
        let symbol = object.undefined("constant");
        for place in [0, LAST] {
            object.relocation(text, place, R_X86_64_PC32, symbol, addend);
        }
        let mut answer = |_: Name<'_>| Some(ExternalSymbol::constant(constant, 4096));
        plan(&[object.build()], Options::default(), &mut answer, |layout| {
            let layout = layout.unwrap();
            let mut image = vec![0; layout.size() as usize];
            layout.write(&mut image, base).unwrap();
            let copy = layout.copies().next().unwrap();
            assert_eq!(copy.address, constant);
            let expected = if is_copied { base + copy.offset } else { constant };
            for place in [0, LAST] {
                let found = (base + place).wrapping_add_signed(half(&image, place) - addend);
                assert_eq!(found, expected, "{constant:#x} from {place:#x}");
            }
        });
    }
}

/// What is copied has no stub beside its copy, and what has no bytes has no copy.
#[test]
#[cfg_attr(not(feature = "copy-relocations"), ignore = "needs the feature copy-relocations")]
fn branches_to_copied_constants() {
    for (name, reaches) in [("near_constant", true), ("far_constant", false)] {
        let mut object = uses(R_X86_64_32S, &["near_data", name]);
        object.relocation(1, 12, R_X86_64_PLT32, 2, 0);
        laid_out(&[&object], |layout| {
            let copy = layout.copies().find(|copy| copy.symbol == 2).unwrap();
            assert!(copy.offset + 24 <= layout.size());
            assert_eq!(layout.stubs().count(), 0);
            assert_eq!(image(layout).is_ok(), reaches, "{name}");
        });
    }
    laid_out(&[&uses(R_X86_64_32S, &["empty_constant"])], |layout| {
        assert_eq!(layout.copies().count(), 0);
        let ErrorKind::Apply(error) = image_error(layout).kind else { panic!("it is applied") };
        assert!(matches!(error.kind, ApplyErrorKind::Overflow { .. }), "{error}");
    });
}

#[test]
fn data_out_of_reach_is_an_error() {
    for kind in [R_X86_64_PC32, R_X86_64_32, R_X86_64_32S] {
        let object = uses(kind, &["near_data", "far_data"]);
        laid_out(&[&object], |layout| {
            let error = image_error(layout);
            let ErrorKind::Apply(apply) = error.kind else { panic!("{error}") };
            assert_eq!((apply.offset, apply.symbol), (8, 2));
            assert!(matches!(apply.kind, ApplyErrorKind::Overflow { .. }), "{error}");
        });
    }
}

/// The first address too high for objects whose places are narrow.
#[test]
fn limits() {
    let limit = |kind: u32, place: Place| {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        let symbol = object.symbol("symbol", STB_GLOBAL, STT_OBJECT, place, 8, 8);
        object.relocation(data, 0, kind, symbol, 0);
        laid_out(&[&object], |layout| layout.limit())
    };
    let here = Place::In(1);
    assert_eq!(limit(R_X86_64_64, here), None);
    assert_eq!(limit(R_X86_64_PC32, here), None);
    assert_eq!(limit(R_X86_64_32, here), Some(1 << 32));
    assert_eq!(limit(R_X86_64_32S, here), Some(1 << 31));
    assert_eq!(limit(R_X86_64_32S, Place::Common), Some(1 << 31));
    assert_eq!(limit(R_X86_64_16, here), None, "no address is that low");
    assert_eq!(limit(R_X86_64_32S, Place::Absolute), None, "it stays where it is");
    if cfg!(feature = "indirect-functions") {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 8, &[0; 16]);
        let function = object.symbol("f", STB_GLOBAL, STT_FUNC, here, 8, 8);
        object.relocation(text, 0, R_X86_64_32S, function, 0);
        let options = Options { replaceable_functions: true, ..Options::default() };
        plan(&[object.build()], options, &mut process, |layout| {
            assert_eq!(layout.unwrap().limit(), Some(1 << 31), "its stub");
        });
    }
    let both = {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        let symbol = object.global("symbol", data, 0);
        object.relocation(data, 0, R_X86_64_32S, symbol, 0);
        object.relocation(data, 8, R_X86_64_32, symbol, 0);
        object
    };
    laid_out(&[&both], |layout| {
        assert_eq!(layout.limit(), Some(1 << 31), "the lower of both");
        let mut image = vec![0; layout.size() as usize];
        assert!(layout.write(&mut image, 1 << 31).is_err());
        layout.write(&mut image, (1 << 31) - 4096).unwrap();
        assert_eq!(half(&image, 0), (1 << 31) - 4096);
    });
}

#[test]
fn sizes_are_those_of_the_definition() {
    let mut one = uses(R_X86_64_SIZE64, &["symbol", "common"]);
    one.common("other", 1, 1);
    let mut two = Object::new();
    let data = two.section(".data", WRITE, 8, &[0; 8]);
    two.symbol("symbol", STB_GLOBAL, STT_OBJECT, Place::In(data), 0, 0x77);
    two.common("common", 0x20, 4);
    let mut three = Object::new();
    three.common("common", 0x40, 4);
    laid_out(&[&one, &two, &three], |layout| {
        let image = image(layout).unwrap();
        let text = layout.section(0, 1).unwrap();
        assert_eq!([word(&image, text), word(&image, text + 8)], [0x77, 0x40]);
    });
    // nobody says how large the caller's are
    for name in ["near", "near_data", "near_constant"] {
        laid_out(&[&uses(R_X86_64_SIZE64, &[name])], |layout| {
            let ErrorKind::Apply(error) = image_error(layout).kind else { panic!("{name}") };
            assert_eq!(error.kind, ApplyErrorKind::Unresolved(Role::Size), "{name}");
        });
    }
}

/// The address that the code computes with and the place its bytes are at are two things.
#[test]
fn written_here_for_another_place() {
    let mut object = uses(R_X86_64_GOTPCREL, &["near"]);
    let data = object.section(".data", WRITE, 8, &[0; 8]);
    let symbol = object.local("symbol", data, 4);
    object.relocation(data, 0, R_X86_64_64, symbol, 0);
    laid_out(&[&object], |layout| {
        let size = layout.size() as usize;
        let mut room = vec![0x77; size + 64];
        for (start, base) in [(0, 0), (1, 0x7000), (33, 1 << 40), (64, 0xffff_ffff_ff00_0000)] {
            layout.write(&mut room[start..], base).unwrap();
            let image = &room[start..start + size];
            let place = layout.section(0, data).unwrap();
            assert_eq!(word(image, place), base + place + 4);
            let text = layout.section(0, 1).unwrap();
            assert_eq!(text.wrapping_add_signed(half(image, text)), layout.got().0);
        }
    });
}

/// The same objects laid out by the same storage give the same image twice, in whatever it was before.
#[test]
fn zeroed_memory_gets_the_same_bytes() {
    let one = uses(R_X86_64_PLT32, &["far", "near"]);
    let two = uses(R_X86_64_GOTPCREL, &["far", "near"]);
    let objects = [one.build(), two.build()];
    plan(&objects, Options::default(), &mut process, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        let mut zeroed = vec![0; image.len()];
        layout.write_zeroed(&mut zeroed, BASE).unwrap();
        assert_eq!(image, zeroed);
    });
}

#[test]
#[cfg_attr(not(feature = "indirect-functions"), ignore = "needs the feature indirect-functions")]
fn replaceable_functions_are_behind_stubs() {
    let mut one = uses(R_X86_64_PLT32, &["own", "near"]);
    one.relocation(1, 4, R_X86_64_REX_GOTPCRELX, 0, 0);
    let data = one.section(".data", WRITE, 8, &[0; 8]);
    one.relocation(data, 0, R_X86_64_64, 0, 0);
    let mut two = Object::new();
    let text = two.section(".text", CODE, 16, &[0x90; 16]);
    let own = two.symbol("own", STB_GLOBAL, STT_FUNC, Place::In(text), 4, 4);
    two.global("label", text, 8);
    let frames = two.section(".eh_frame", READ, 8, &[0; 8]);
    two.relocation(frames, 0, R_X86_64_PC64, own, 0);
    let files = [one.build(), two.build()];
    let planned = |replaceable_functions, check: &dyn Fn(&Layout<'_, '_, X86_64>)| {
        let options = Options { replaceable_functions, ..Options::default() };
        plan(&files, options, &mut process, |layout| check(&layout.unwrap()));
    };
    planned(false, &|layout| {
        assert_eq!((layout.replaceable_functions().count(), layout.stubs().count()), (0, 1));
    });
    planned(true, &|layout| {
        let functions: Vec<_> = layout.replaceable_functions().collect();
        assert_eq!(functions.len(), 1, "labels are not: {functions:?}");
        let [function] = functions[..] else { return };
        assert_eq!(function.function, layout.section(1, text).unwrap() + 4);
        let stub = layout.symbol(function.object, function.symbol).unwrap().at(0);
        assert!(layout.stubs().any(|entry| entry.offset == stub));
        let image = image(layout).unwrap();
        assert_eq!(word(&image, function.entry), BASE + function.function);
        assert_eq!(image[stub as usize..][..2], [0xff, 0x25], "jmp *entry(%rip)");
        assert_eq!((stub + 6).wrapping_add_signed(half(&image, stub + 2)), function.entry);
        let code = layout.section(0, 1).unwrap();
        assert_eq!(code.wrapping_add_signed(half(&image, code)), stub, "calls go to the stub");
        assert_eq!(word(&image, layout.section(0, data).unwrap()), BASE + stub);
        let entry = (code + 4).wrapping_add_signed(half(&image, code + 4));
        assert_eq!(word(&image, entry), BASE + stub, "one address for all");
        assert_ne!(entry, function.entry);
        // unwinding tables speak of the function itself
        let frames = layout.section(1, frames).unwrap();
        assert_eq!(frames.wrapping_add(word(&image, frames)), function.function);
    });
}
