//! Which symbol means which.
#![cfg(test)]

mod support;

use elf_core::Name;
use elf_core::names::*;
use elf_layout::{ErrorKind, ExternalSymbol, Options, SymbolAddress};
use reloc_x86::x86_64::{R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_PC32, R_X86_64_PC64};
use std::collections::BTreeMap;
use support::{
    BASE, CODE, Object, Place, READ, WRITE, image, laid_out, nobody, plan, refused, word,
};

/// What an object says of the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Wants,
    WantsWeakly,
    Weak,
    Common(u64),
    Strong,
    Absolute,
}

use Says::*;

/// An object that says so, and refers to the symbol.
fn object(says: Says) -> Object {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 16]);
    let symbol = match says {
        Wants => object.undefined("symbol"),
        WantsWeakly => object.undefined_weak("symbol"),
        Weak => object.weak("symbol", data, 8),
        Common(size) => object.common("symbol", size, 4),
        Strong => object.global("symbol", data, 8),
        Absolute => object.symbol("symbol", STB_GLOBAL, STT_NOTYPE, Place::Absolute, 0x1234, 0),
    };
    object.relocation(data, 0, R_X86_64_64, symbol, 0);
    object
}

/// The index of the object whose definition is taken, or the pair of which there is one too many.
fn expected(says: &[Says]) -> Result<Option<usize>, (usize, usize)> {
    let strong = |says: &Says| matches!(says, Strong | Absolute);
    let mut all = (0..says.len()).filter(|at| strong(&says[*at]));
    let (first, second) = (all.next(), all.next());
    if let (Some(first), Some(second)) = (first, second) {
        return Err((first, second));
    }
    let mut common: Option<(usize, u64)> = None;
    for (at, says) in says.iter().enumerate() {
        if let Common(size) = *says
            && common.is_none_or(|(_, most)| size > most)
        {
            common = Some((at, size));
        }
    }
    let weak = says.iter().position(|says| *says == Weak);
    Ok(first.or(common.map(|(at, _)| at)).or(weak))
}

fn check(says: &[Says]) {
    let objects: Vec<_> = says.iter().map(|says| object(*says).build()).collect();
    plan(&objects, Options::default(), &mut nobody, |layout| match (expected(says), layout) {
        (Err((first, object)), Err(error)) => {
            assert_eq!(error.object, object, "{says:?}");
            assert_eq!(error.kind, ErrorKind::Duplicate { symbol: 1, first }, "{says:?}");
        }
        (Ok(None), layout) => {
            if let Some(object) = says.iter().position(|says| *says == Wants) {
                let error = layout.map(|_| ()).unwrap_err();
                let undefined = matches!(
                    error.kind,
                    ErrorKind::Undefined { symbol: 1, offset: 0, r#type: R_X86_64_64, .. }
                );
                assert!(undefined && error.object <= object, "{says:?}: {error}");
            } else {
                let layout = layout.unwrap();
                let image = image(&layout).unwrap();
                for at in 0..says.len() {
                    assert_eq!(layout.symbol(at, 1), Some(SymbolAddress::Absolute(0)));
                    assert_eq!(word(&image, layout.section(at, 1).unwrap()), 0);
                }
            }
        }
        (Ok(Some(owner)), layout) => {
            let layout = layout.unwrap();
            let image = image(&layout).unwrap();
            let address = layout.symbol(owner, 1).unwrap().at(BASE);
            for at in 0..says.len() {
                assert_eq!(layout.definition(at, 1), Some((owner, 1)), "{says:?}");
                assert_eq!(layout.is_definition(at, 1), at == owner, "{says:?}");
                assert!(!layout.is_definition(at, 7777));
                assert_eq!(layout.symbol(at, 1).map(|symbol| symbol.at(BASE)), Some(address));
                assert_eq!(word(&image, layout.section(at, 1).unwrap()), address, "{says:?}");
            }
            let own = layout.section(owner, 1).unwrap();
            match says[owner] {
                Strong | Weak => assert_eq!(address, BASE + own + 8),
                Absolute => assert_eq!(address, 0x1234),
                _ => assert!(address >= BASE && address < BASE + layout.size()),
            }
            assert_eq!(layout.find("symbol".into()), Some((owner, 1)));
        }
        (Err(_), Ok(_)) => panic!("{says:?}: there is one too many"),
    });
}

#[test]
fn every_combination_in_every_order() {
    let all = [Wants, WantsWeakly, Weak, Common(8), Common(32), Strong, Absolute];
    for first in all {
        for second in all {
            check(&[first, second]);
            for third in all {
                check(&[first, second, third]);
            }
        }
    }
    let many = [Wants, Weak, Common(8), WantsWeakly, Strong, Common(64), Weak, Wants];
    for turn in 0..many.len() {
        let mut says = many;
        says.rotate_left(turn);
        check(&says);
    }
}

#[test]
fn a_duplicate_names_both() {
    let quiet = object(WantsWeakly);
    let error = refused(&[&quiet, &object(Strong), &quiet, &object(Strong)], Options::default());
    assert_eq!(error.to_string(), "object 3: symbol 1 is defined in object 1 already");
}

#[test]
fn answers_are_told_once() {
    let wants = |names: &[&str]| {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 64]);
        for (at, name) in names.iter().enumerate() {
            let symbol = object.undefined(name);
            object.relocation(data, at as u64 * 8, R_X86_64_64, symbol, 0);
            // nobody's answer
            let fixed = format!("{name} of {}", names[0]);
            object.symbol(&fixed, STB_GLOBAL, STT_NOTYPE, Place::Absolute, 0x3000, 0);
        }
        object.build()
    };
    let mut answer = |name: Name<'_>| match name.to_str()? {
        "data" => Some(ExternalSymbol::new(0x1000)),
        "function" => Some(ExternalSymbol::function(0x2000)),
        _ => None,
    };
    let objects = [wants(&["data", "function"]), wants(&["function", "data"])];
    plan(&objects, Options::default(), &mut answer, |layout| {
        let mut answers: Vec<u64> = layout.unwrap().answers().collect();
        answers.sort_unstable();
        assert_eq!(answers, [0x1000, 0x2000]);
    });
}

#[test]
fn local_symbols_are_nobody_elses() {
    let one = || {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 16]);
        let symbol = object.local("symbol", data, 8);
        object.relocation(data, 0, R_X86_64_64, symbol, 0);
        object
    };
    laid_out(&[&one(), &one()], |layout| {
        assert_eq!(layout.definition(1, 1), Some((1, 1)));
        assert_ne!(layout.symbol(0, 1), layout.symbol(1, 1));
        assert_eq!(layout.find("symbol".into()), None, "others may not see it");
    });
    let mut other = Object::new();
    let data = other.section(".data", WRITE, 8, &[0; 8]);
    let symbol = other.undefined("symbol");
    other.relocation(data, 0, R_X86_64_64, symbol, 0);
    let error = refused(&[&one(), &other], Options::default());
    assert!(matches!(error.kind, ErrorKind::Undefined { .. }), "{error}");
}

#[test]
fn an_undefined_symbol_that_nothing_needs() {
    let mut object = Object::new();
    object.section(".data", WRITE, 8, &[0; 8]);
    object.undefined("nobody");
    laid_out(&[&object, &object], |layout| assert_eq!(layout.symbol(0, 1), None));
}

/// The caller is asked once for each name, and only where no object has an answer.
#[test]
fn externals_are_asked_once_a_name() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 64]);
    for (at, name) in ["one", "two", "weak", "defined"].into_iter().enumerate() {
        let symbol =
            if name == "weak" { object.undefined_weak(name) } else { object.undefined(name) };
        object.relocation(data, at as u64 * 8, R_X86_64_64, symbol, 3);
    }
    let mut other = Object::new();
    let text = other.section(".text", CODE, 1, &[0xc3]);
    other.global("defined", text, 0);
    let objects = [object.build(), object.build(), other.build()];
    let mut asked = BTreeMap::new();
    let mut answer = |name: Name<'_>| {
        *asked.entry(name.to_str().unwrap().to_owned()).or_insert(0) += 1;
        (name != "weak").then_some(ExternalSymbol::function(0x100))
    };
    plan(&objects, Options::default(), &mut answer, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        let own = layout.section(1, data).unwrap();
        assert_eq!([0, 8, 16].map(|at| word(&image, own + at)), [0x103, 0x103, 3]);
        assert_eq!(word(&image, own + 24), BASE + layout.section(2, text).unwrap() + 3);
    });
    assert!(asked.iter().map(|(name, count)| (name.as_str(), *count)).eq([
        ("one", 1),
        ("two", 1),
        ("weak", 1)
    ]));
}

#[test]
fn names_that_the_layout_knows_itself() {
    let mut object = Object::new();
    let data = object.section(".data", WRITE, 8, &[0; 24]);
    let got = object.undefined("_GLOBAL_OFFSET_TABLE_");
    let handle = object.symbol("__dso_handle", STB_GLOBAL, STT_NOTYPE, Place::Undefined, 0, 0);
    let target = object.local("target", data, 16);
    object.relocation(data, 0, R_X86_64_64, got, 0);
    object.relocation(data, 8, R_X86_64_64, handle, 0);
    let text = object.section(".text", CODE, 1, &[0; 8]);
    object.relocation(text, 0, R_X86_64_GOTPCREL, target, -4);
    let objects = [object.build(), object.build()];
    plan(&objects, Options::default(), &mut nobody, |layout| {
        let layout = layout.unwrap();
        let image = image(&layout).unwrap();
        for number in 0..2 {
            let own = layout.section(number, data).unwrap();
            assert_eq!(word(&image, own), BASE + layout.got().0);
            let handle = BASE + layout.dso_handle().unwrap();
            assert_eq!(word(&image, own + 8), handle);
            assert_eq!(word(&image, handle - BASE), handle, "it holds its own address");
        }
        let handle = layout.symbol(0, object.index(handle));
        assert_eq!(handle, layout.dso_handle().map(SymbolAddress::Image));
    });
    // an object may define them itself
    let mut own = Object::new();
    let data = own.section(".data", WRITE, 8, &[0; 8]);
    own.global("__dso_handle", data, 4);
    let objects = [object.build(), own.build()];
    plan(&objects, Options::default(), &mut nobody, |layout| {
        let layout = layout.unwrap();
        let place = layout.symbol(0, object.index(handle));
        assert_eq!(place, Some(SymbolAddress::Image(layout.section(1, data).unwrap() + 4)));
    });
}

/// An object with a group of code and data that `signature` names.
fn grouped(signature: &str, flags: u32, code: u8) -> (Object, u32, u32) {
    let mut object = Object::new();
    let text = object.section(".text.f", CODE, 1, &[code; 8]);
    let data = object.section(".data.f", WRITE, 8, &[0; 8]);
    let own = object.section(".data", WRITE, 8, &[0; 8]);
    let symbol = object.weak(signature, text, 2);
    let inner = object.local("inner", data, 0);
    object.relocation(own, 0, R_X86_64_64, symbol, 0);
    object.relocation(data, 0, R_X86_64_64, inner, 0);
    object.group(symbol, flags, &[text, data]);
    (object, text, own)
}

#[test]
fn of_equal_groups_the_first_is_kept() {
    let (one, text, own) = grouped("f", GRP_COMDAT, 1);
    let (two, ..) = grouped("f", GRP_COMDAT, 2);
    let (other, ..) = grouped("g", GRP_COMDAT, 3);
    laid_out(&[&one, &two, &other], |layout| {
        let kept = [0, 1, 2].map(|object| layout.section(object, text).is_some());
        assert_eq!(kept, [true, false, true]);
        let kept = [0, 1, 2].map(|object| layout.section(object, text + 1).is_some());
        assert_eq!(kept, [true, false, true]);
        let image = image(layout).unwrap();
        let address = BASE + layout.section(0, text).unwrap() + 2;
        assert_eq!(word(&image, layout.section(1, own).unwrap()), address);
        let inner = one.index(1);
        assert!(layout.symbol(0, inner).is_some());
        assert_eq!(layout.symbol(1, inner), None, "it is dropped with its section");
    });
    // without the flag nothing is dropped
    let (one, ..) = grouped("f", 0, 1);
    laid_out(&[&one, &one], |layout| {
        assert!(layout.section(0, text).is_some() && layout.section(1, text).is_some());
        assert_eq!(layout.definition(1, 2), Some((0, 2)), "the first weak definition");
    });
}

#[test]
fn group_and_symbol_of_one_name_are_two_things() {
    let (one, text, _) = grouped("f", GRP_COMDAT, 1);
    let mut user = Object::new();
    let data = user.section(".data", WRITE, 8, &[0; 8]);
    let symbol = user.undefined("f");
    user.relocation(data, 0, R_X86_64_64, symbol, 0);
    for order in [[&user, &one], [&one, &user]] {
        let own = usize::from(std::ptr::eq(order[1], &one));
        laid_out(&order, |layout| {
            assert_eq!(layout.definition(1 - own, 1).map(|at| at.0), Some(own));
            assert!(layout.section(own, text).is_some());
        });
    }
}

/// What is hidden and weak means a definition of the objects or nothing: gABI ch. 5, "Symbol Visibility".
#[test]
fn hidden_weak_names_are_nobody_elses() {
    let object = |binding: u8, visibility: u8| {
        let mut object = Object::new();
        let data = object.section(".data", WRITE, 8, &[0; 8]);
        let symbol = object.symbol("f", binding, STT_NOTYPE, Place::Undefined, 0, 0);
        object.visibility(symbol, visibility);
        object.relocation(data, 0, R_X86_64_64, symbol, 0);
        (object.build(), data)
    };
    let value = |objects: &[(u8, u8)], hidden_externals: bool| {
        let (files, data): (Vec<_>, Vec<_>) =
            objects.iter().map(|&(binding, visibility)| object(binding, visibility)).unzip();
        let options = Options { hidden_externals, ..Options::default() };
        plan(&files, options, &mut |_| Some(ExternalSymbol::new(0x1234)), |layout| {
            let layout = layout.unwrap();
            let image = image(&layout).unwrap();
            let words = data
                .iter()
                .enumerate()
                .map(|(at, data)| word(&image, layout.section(at, *data).unwrap()));
            words.collect::<Vec<_>>()
        })
    };
    assert_eq!(value(&[(STB_WEAK, STV_DEFAULT)], false), [0x1234]);
    for visibility in [STV_HIDDEN, STV_INTERNAL, STV_PROTECTED] {
        assert_eq!(value(&[(STB_WEAK, visibility)], false), [0]);
        assert_eq!(value(&[(STB_WEAK, visibility)], true), [0x1234]);
        assert_eq!(value(&[(STB_WEAK, STV_DEFAULT), (STB_WEAK, visibility)], false), [0, 0]);
        assert_eq!(value(&[(STB_WEAK, visibility), (STB_WEAK, STV_DEFAULT)], false), [0, 0]);
    }
}

/// A group whose signature is a section symbol is known by the section's name.
#[test]
fn groups_by_section_name() {
    let object = |name: &str, symbol: &str, r#type| {
        let mut object = Object::new();
        let text = object.section(name, CODE, 1, &[0xc3]);
        let symbol = object.symbol(symbol, STB_LOCAL, r#type, Place::In(text), 0, 0);
        object.group(symbol, GRP_COMDAT, &[text]);
        object
    };
    let kept = |names: [(&str, &str); 2], r#type| {
        let [one, two] = names.map(|(name, symbol)| object(name, symbol, r#type));
        laid_out(&[&one, &two], |layout| layout.section(1, 1).is_some())
    };
    assert!(!kept([("same", ""), ("same", "")], STT_SECTION));
    assert!(kept([("one", ""), ("two", "")], STT_SECTION));
    // what has a name, or stands for no section, is known by its own
    assert!(!kept([("one", "same"), ("two", "same")], STT_SECTION));
    assert!(kept([("same", "one"), ("same", "two")], STT_SECTION));
    assert!(!kept([("one", ""), ("two", "")], STT_NOTYPE));
}

#[test]
fn a_dropped_local_symbol_cannot_be_used_from_outside() {
    let (one, ..) = grouped("f", GRP_COMDAT, 1);
    let (mut two, _, own) = grouped("f", GRP_COMDAT, 2);
    two.relocation(own, 4, R_X86_64_64, 1, 0);
    let error = refused(&[&one, &two], Options::default());
    assert_eq!((error.object, error.section), (1, own));
    assert_eq!(
        error.to_string(),
        "object 1: section 3: R_X86_64_64 at offset 0x4: symbol 1 is in a discarded section group"
    );
}

/// Unwinding tables speak of functions that were dropped: as if at 0, which is nobody's code (as GNU ld has it).
#[test]
fn unwinding_tables_of_dropped_functions() {
    let (one, text, _) = grouped("f", GRP_COMDAT, 1);
    let (mut two, ..) = grouped("f", GRP_COMDAT, 2);
    let frames = two.section(".eh_frame", READ, 8, &[0; 24]);
    let dropped = two.local("dropped", text, 2);
    for (place, kind, addend) in
        [(0, R_X86_64_64, 5), (8, R_X86_64_PC64, 3), (16, R_X86_64_PC32, 1)]
    {
        two.relocation(frames, place, kind, dropped, addend);
    }
    laid_out(&[&one, &two], |layout| {
        let image = image(layout).unwrap();
        let at = layout.section(1, frames).unwrap();
        assert_eq!([0, 8, 16].map(|place| word(&image, at + place)), [0; 3]);
    });
}

#[test]
fn more_sections_than_sixteen_bits_count() {
    let mut object = Object::new();
    let first = object.section("first", READ, 8, &[1; 8]);
    for _ in 0..0x1_0000 {
        object.zeros("", elf_core::SectionFlags::empty(), 1, 0);
    }
    let last = object.section("last", WRITE, 8, &[0; 16]);
    let symbol = object.global("symbol", last, 8);
    let same = object.local("local", first, 4);
    object.relocation(last, 0, R_X86_64_64, symbol, 0);
    object.relocation(last, 8, R_X86_64_64, same, 0);
    assert!(last > 0x1_0000);
    let mut user = Object::new();
    let data = user.section(".data", WRITE, 8, &[0; 8]);
    let wanted = user.undefined("symbol");
    user.relocation(data, 0, R_X86_64_64, wanted, 0);
    laid_out(&[&user, &object], |layout| {
        let image = image(layout).unwrap();
        let place = layout.section(1, last).unwrap();
        assert_eq!(word(&image, layout.section(0, data).unwrap()), BASE + place + 8);
        assert_eq!(word(&image, place), BASE + place + 8);
        assert_eq!(word(&image, place + 8), BASE + layout.section(1, first).unwrap() + 4);
    });
}
