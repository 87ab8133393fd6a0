//! More code than a branch of AArch64 spans: every branch arrives, by way of a stub if need be.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]

mod support;

use elf_core::Name;
use elf_core::names::EM_AARCH64;
use elf_layout::{Error, ErrorKind, ExternalSymbol, FRAGMENT_ROOM, Layout, Options, StubEntry};
use reloc_aarch64::Aarch64;
use reloc_aarch64::aarch64::{
    R_AARCH64_ABS64, R_AARCH64_ADR_PREL_LO21, R_AARCH64_ADR_PREL_PG_HI21, R_AARCH64_CALL26,
    R_AARCH64_CONDBR19, R_AARCH64_PREL32,
};
use support::{BASE, CODE, FAR, Object, WRITE, nobody, plan_for, process, word};

const MIB: u64 = 1 << 20;

/// Lays out objects for AArch64 and hands the outcome to `f`.
fn plan<R>(
    objects: &[&Object],
    externals: &mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    f: impl FnOnce(Result<Layout<'_, '_, Aarch64>, Error>) -> R,
) -> R {
    let of = |object: &&Object| {
        let mut object = (*object).clone();
        object.machine = EM_AARCH64;
        object.build()
    };
    let objects: Vec<Vec<u8>> = objects.iter().map(of).collect();
    plan_for(&objects, Options::default(), externals, f)
}

fn image(layout: &Layout<'_, '_, Aarch64>) -> Result<Vec<u8>, Error> {
    let mut image = vec![0; layout.size() as usize];
    layout.write_zeroed(&mut image, BASE).map(|()| image)
}

/// Where the branch at `place` arrives, through a stub or not.
fn arrival(image: &[u8], place: u64) -> (u64, bool) {
    let code = |at: u64| word(image, at) as u32;
    let distance = i64::from((code(place) & 0x3ff_ffff) << 6) << 32 >> 36;
    let target = place.wrapping_add_signed(distance);
    let adrp = code(target);
    if adrp & 0x9f00_001f != 0x9000_0010 {
        return (BASE + target, false);
    }
    let pages = i64::from((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3);
    let page = ((BASE + target) & !0xfff).wrapping_add_signed(pages << 12);
    let entry = page + u64::from(code(target + 4) >> 10 & 0xfff) * 8;
    (word(image, entry - BASE), true)
}

/// Sections of code of so many MiB, one object each, whose first and last word call the first word of each and a function of the
/// process. Gives how many sections of stubs there are.
fn check(sizes: &[u64]) -> usize {
    check_named(sizes, |_| ".text")
}

/// The same of sections with these names. What is named `late` stands behind all others.
fn check_named(sizes: &[u64], name: fn(usize) -> &'static str) -> usize {
    let mut objects = Vec::new();
    let mut calls = Vec::new();
    for number in 0..sizes.len() {
        let mut object = Object::new();
        let size = sizes[number] * MIB;
        let text = object.zeros(name(number), CODE, 16, size);
        let edges = ["__start_late", "__stop_late"].map(|edge| object.undefined_weak(edge));
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        for (edge, place) in edges.into_iter().zip([0, 8]) {
            object.relocation(data, place, R_AARCH64_ABS64, edge, 0);
        }
        let symbols: Vec<usize> = (0..sizes.len())
            .map(|other| match other == number {
                true => object.global(&format!("start{other}"), text, 0),
                false => object.undefined(&format!("start{other}")),
            })
            .collect();
        let far = object.undefined("far");
        for (at, symbol) in symbols.into_iter().chain([far]).enumerate() {
            for place in [at as u64 * 4 + 4, size - 4 - at as u64 * 4] {
                object.relocation(text, place, R_AARCH64_CALL26, symbol, 0);
                calls.push((number, text, place, at));
            }
        }
        objects.push(object);
    }
    plan(&objects.iter().collect::<Vec<_>>(), &mut process, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        let start = |number| layout.section(number, 1).unwrap();
        let mut stubs = 0;
        for &(object, section, place, target) in &calls {
            let place = layout.section(object, section).unwrap() + place;
            let expected = if target == sizes.len() { FAR } else { BASE + start(target) };
            let (arrived, by_stub) = arrival(&image, place);
            assert_eq!(arrived, expected, "{sizes:?}: from {place:#x}");
            stubs += usize::from(by_stub);
        }
        assert!(stubs >= 2 * sizes.len(), "{sizes:?}: calls of the process, at least");
        for (number, _) in sizes.iter().enumerate() {
            let (object, symbol) = layout.find(format!("start{number}").as_str().into()).unwrap();
            assert_eq!(layout.symbol(object, symbol).unwrap().at(0), start(number));
        }
        let late = (0..sizes.len()).filter(|number| name(*number) == "late");
        let places: Vec<u64> = late.map(start).collect();
        if let (Some(first), Some(last)) = (places.first(), places.last()) {
            assert!(
                places.is_sorted()
                    && (0..sizes.len()).all(|it| name(it) == "late" || start(it) < *first)
            );
            let data = layout.section(0, 2).unwrap();
            let edges = [0, 8].map(|at| word(&image, data + at) - BASE);
            assert_eq!(edges, [*first, last + sizes[sizes.len() - 1] * MIB]);
        }
        // each has one for every symbol that needs one
        let symbol = |stub: &StubEntry| (stub.object, stub.symbol);
        let first = layout.stubs().next().unwrap();
        layout.stubs().filter(|it| symbol(it) == symbol(&first)).count()
    })
}

#[test]
#[cfg_attr(not(feature = "thunks"), ignore = "needs the feature thunks")]
fn every_call_arrives() {
    for (sizes, sections) in [
        (&[1, 60, 60][..], 2),
        (&[1, 100, 100, 1], 4),
        (&[127, 1, 127, 1], 5),
        (&[1, 200, 1], 3),
        (&[200, 200, 50], 4),
        (&[2; 140], 3),
        (&[48; 4], 2),
    ] {
        assert_eq!(check(sizes), sections, "{sizes:?}");
    }
}

/// What all branches reach has no stub.
#[test]
#[cfg_attr(not(feature = "thunks"), ignore = "needs the feature thunks")]
fn only_what_is_far_has_stubs() {
    let [mut first, mut second] = [Object::new(), Object::new()];
    let text = first.zeros(".text", CODE, 16, 120 * MIB);
    second.zeros(".text", CODE, 16, 120 * MIB);
    let near = first.global("near", text, 8);
    let distant = second.global("distant", 1, 119 * MIB);
    let asked = first.undefined("distant");
    first.relocation(text, 0, R_AARCH64_CALL26, near, 0);
    first.relocation(text, 4, R_AARCH64_CALL26, asked, 0);
    plan(&[&first, &second], &mut nobody, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        let [near, distant] = [(0, first.index(near)), (1, second.index(distant))]
            .map(|(object, symbol)| layout.symbol(object, symbol).unwrap().at(BASE));
        let start = layout.section(0, text).unwrap();
        let arrivals = [0, 4].map(|at| arrival(&image, start + at));
        assert_eq!(arrivals, [(near, false), (distant, true)]);
        assert!(layout.stubs().all(|stub| stub.object == 1));
    });
}

#[test]
fn stubs_behind_code_of_odd_size() {
    let mut object = Object::new();
    let text = object.zeros(".text", CODE, 4, 33);
    let far = object.undefined("far");
    object.relocation(text, 8, R_AARCH64_CALL26, far, 0);
    plan(&[&object], &mut process, |layout| {
        let layout = layout.unwrap();
        let place = layout.section(0, text).unwrap() + 8;
        assert_eq!(arrival(&image(&layout).unwrap(), place), (FAR, true));
    });
}

/// The middle of a section may be too far from both of its ends.
#[test]
#[cfg_attr(
    not(all(feature = "thunks", feature = "linker-defined")),
    ignore = "needs the features thunks and linker-defined"
)]
fn sections_behind_all_others_are_reached() {
    let name = |number| if number % 2 == 0 { ".text" } else { "late" };
    for (sizes, sections) in
        [([60, 60, 60, 60], 3), ([20, 5, 20, 5], 1), ([150, 1, 1, 1], 3), ([1, 120, 1, 120], 2)]
    {
        assert_eq!(check_named(&sizes, name), sections, "{sizes:?}");
    }
}

#[test]
fn what_reaches_no_thunk_is_refused() {
    let mut object = Object::new();
    let text = object.zeros(".text", CODE, 16, 300 * MIB);
    let far = object.undefined("far");
    object.relocation(text, 150 * MIB, R_AARCH64_CALL26, far, 0);
    plan(&[&object], &mut process, |layout| {
        let kind = image(&layout.unwrap()).unwrap_err().kind;
        assert!(matches!(kind, ErrorKind::Apply(error) if error.offset == 150 * MIB), "{kind:?}");
    });
}

/// Branches to what nobody defines go on with the next instruction, and what counts from a page is its own place (AAELF64, "Weak
/// references"): neither needs a stub, nor a low address.
#[test]
fn weak_functions_that_nobody_defines() {
    let mut object = Object::new();
    let text = object.section(
        ".text",
        CODE,
        16,
        &[0x94000000_u32, 0x90000000].map(u32::to_le_bytes).concat(),
    );
    let weak = object.undefined_weak("nobody");
    object.relocation(text, 0, R_AARCH64_CALL26, weak, 0);
    object.relocation(text, 4, R_AARCH64_ADR_PREL_PG_HI21, weak, 0);
    let data = object.section(".data", WRITE, 4, &[0xff; 4]);
    object.relocation(data, 0, R_AARCH64_PREL32, weak, 0);
    plan(&[&object], &mut nobody, |layout| {
        let layout = layout.unwrap();
        assert_eq!((layout.stubs().count(), layout.limit()), (0, None));
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, 1 << 40).unwrap();
        assert_eq!(word(&image, 0), 0x9000_0000_9400_0001);
        assert_eq!(image[layout.section(0, data).unwrap() as usize..][..4], [0; 4]);
    });
}

/// What reaches less than most does not count from a constant that is in reach of others.
#[test]
#[cfg_attr(not(feature = "copy-relocations"), ignore = "needs the feature copy-relocations")]
fn narrow_places_count_from_copies() {
    const HIGH: u64 = 1 << 40;
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &0x10000000_u32.to_le_bytes()); // adr x0, .
    let constant = object.undefined("constant");
    object.relocation(text, 0, R_AARCH64_ADR_PREL_LO21, constant, 0);
    let mut near = |_: Name<'_>| Some(ExternalSymbol::constant(HIGH + (1 << 28), 8));
    plan(&[&object], &mut near, |layout| {
        let layout = layout.unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.write(&mut image, HIGH).unwrap();
        let code = u32::from_le_bytes(image[..4].try_into().unwrap());
        let distance = (code >> 5 & 0x7_ffff) << 2 | code >> 29 & 3;
        assert_eq!(u64::from(distance), layout.copies().next().unwrap().offset);
    });
}

/// A conditional branch never goes by way of a stub.
#[test]
fn conditional_branches_are_refused() {
    let mut object = Object::new();
    let text = object.zeros(".text", CODE, 16, 16);
    let other = object.zeros(".text.other", CODE, 16, 200 * MIB);
    let end = object.global("end", other, 200 * MIB - 4);
    object.relocation(text, 0, R_AARCH64_CONDBR19, end, 0);
    plan(&[&object], &mut nobody, |layout| {
        let kind = image(&layout.unwrap()).unwrap_err().kind;
        assert!(
            matches!(kind, ErrorKind::Apply(error) if error.r#type == R_AARCH64_CONDBR19),
            "{kind:?}"
        );
    });
}

/// What stands together, and what is put behind fragments of functions, is as it was before the code was placed anew.
#[test]
#[cfg_attr(
    not(all(feature = "thunks", feature = "linker-defined")),
    ignore = "needs the features thunks and linker-defined"
)]
fn what_belongs_together_stays_so() {
    let mut object = Object::new();
    let init = object.zeros(".init", CODE, 4, 4);
    let fini = object.zeros(".fini", CODE, 4, 4);
    let first = object.zeros("mine", CODE, 4, 8);
    for name in [".text.a", ".text.b"] {
        let text = object.zeros(name, CODE, 16, 80 * MIB);
        let far = object.undefined("far");
        object.relocation(text, 0, R_AARCH64_CALL26, far, 0);
    }
    let last = object.zeros("mine", CODE, 64, 8);
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let [start, stop] = ["__start_mine", "__stop_mine"].map(|name| object.undefined(name));
    object.relocation(data, 0, R_AARCH64_ABS64, start, 0);
    object.relocation(data, 8, R_AARCH64_ABS64, stop, 0);
    plan(&[&object], &mut process, |layout| {
        let layout = layout.unwrap();
        let at = |section| layout.section(0, section).unwrap();
        assert!(at(fini) >= at(init) + 4 + FRAGMENT_ROOM);
        assert_eq!(at(last), (at(first) + 8).next_multiple_of(64));
        let address = |symbol| layout.symbol(0, object.index(symbol)).unwrap().at(0);
        assert_eq!((address(start), address(stop)), (at(first), at(last) + 8));
        let image = image(&layout).unwrap();
        assert_eq!(word(&image, at(data)), BASE + at(first));
        assert_eq!(word(&image, at(data) + 8), BASE + at(last) + 8);
    });
}
