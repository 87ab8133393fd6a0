//! Symbols with versions (`.symver`): which references they answer. What is said here of two objects is what GNU ld 2.40 makes of them.
#![cfg(test)]
#![cfg(feature = "symbol-versions")]

mod support;

use elf_core::names::*;
use elf_layout::{ErrorKind, Options};
use reloc_x86::x86_64::R_X86_64_64;
use support::{BASE, Object, Place, WRITE, image, nobody, plan, word};

/// Adds definitions, which are at the eight bytes of their number.
fn define(object: &mut Object, names: &[&str], binding: u8) -> u32 {
    let data = object.section(".data", WRITE, 8, &vec![0; 8 * names.len()]);
    for (name, at) in names.iter().zip((0..).step_by(8)) {
        object.symbol(name, binding, STT_NOTYPE, Place::In(data), at, 8);
    }
    data
}

/// Adds references, weak ones or others. Gives their section and symbols.
fn refer(object: &mut Object, names: &[&str], is_weak: bool) -> (u32, Vec<usize>) {
    let data = object.section(".data", WRITE, 8, &vec![0; 8 * names.len()]);
    let symbols = names.iter().zip((0..).step_by(8)).map(|(name, at)| {
        let symbol = if is_weak { object.undefined_weak(name) } else { object.undefined(name) };
        object.relocation(data, at, R_X86_64_64, symbol, 0);
        symbol
    });
    let symbols = symbols.collect();
    (data, symbols)
}

/// The numbers of the definitions that references mean, in an object of their own before or behind, or in the same one.
fn check(defined: &[&str], binding: u8, references: &[&str], expected: &[Option<u64>]) {
    for is_weak in [true, false] {
        for (definer, user) in [(0, 1), (1, 0), (0, 0)] {
            let mut objects = vec![Object::new(), Object::new()];
            if definer == user {
                objects.pop();
            }
            let definitions = define(&mut objects[definer], defined, binding);
            let (words, symbols) = refer(&mut objects[user], references, is_weak);
            let files: Vec<Vec<u8>> = objects.iter().map(Object::build).collect();
            let what = format!("{defined:?} {references:?} in {definer} and {user}, {is_weak}");
            let missing: Vec<u32> = symbols
                .iter()
                .zip(expected)
                .filter(|(_, it)| it.is_none() && !is_weak)
                .map(|(symbol, _)| objects[user].index(*symbol))
                .collect();
            #[cfg(feature = "alloc")]
            {
                let files: Vec<_> =
                    files.iter().map(|it| elf_core::File::parse(it).unwrap()).collect();
                let (errors, _) =
                    elf_layout::undefined_symbols::<reloc_x86::X86_64>(&files, 99, &mut |_| true);
                let found = errors.iter().map(|error| match error.kind {
                    ErrorKind::Undefined { symbol, .. } => symbol,
                    other => panic!("{other}"),
                });
                assert_eq!(found.collect::<Vec<_>>(), missing, "{what}");
            }
            plan(&files, Options::default(), &mut nobody, |layout| {
                if let Some(first) = missing.first() {
                    let kind = layout.map(|_| ()).unwrap_err().kind;
                    let is_first =
                        matches!(kind, ErrorKind::Undefined { symbol, .. } if symbol == *first);
                    assert!(is_first, "{what}: {kind}");
                    return;
                }
                let layout = layout.unwrap();
                let image = image(&layout).unwrap();
                let at = layout.section(definer, definitions).unwrap();
                let place = layout.section(user, words).unwrap();
                let found = (0..).step_by(8).zip(expected).map(|(offset, expected)| {
                    let value = word(&image, place + offset);
                    (value, expected.map_or(0, |number| BASE + at + 8 * number))
                });
                for (value, expected) in found {
                    assert_eq!(value, expected, "{what}");
                }
            });
        }
    }
}

#[test]
fn default_versions_answer_names_without() {
    check(&["f@@V1"], STB_GLOBAL, &["f"], &[Some(0)]);
    check(&["f@@V1"], STB_GLOBAL, &["f@V1"], &[Some(0)]);
    check(&["f@@V1"], STB_GLOBAL, &["f@V2"], &[None]);
    check(&["f@@V1"], STB_GLOBAL, &["e", "fg", "ff", "g"], &[None; 4]);
    check(&["f@@V1"], STB_WEAK, &["f"], &[Some(0)]);
    check(&["e", "f@@V1", "g"], STB_GLOBAL, &["f"], &[Some(1)]);
}

#[test]
fn other_versions_answer_only_for_themselves() {
    check(&["f@V1"], STB_GLOBAL, &["f"], &[None]);
    check(&["f@V1"], STB_GLOBAL, &["f@V1"], &[Some(0)]);
    check(&["f@V1"], STB_GLOBAL, &["f@V2"], &[None]);
}

#[test]
fn the_default_is_one_of_several() {
    let defined = ["f@V1", "f@@V2", "f@V0"];
    check(&defined, STB_GLOBAL, &["f"], &[Some(1)]);
    check(&defined, STB_GLOBAL, &["f@V1", "f@V2", "f@V0"], &[Some(0), Some(1), Some(2)]);
    check(&defined, STB_GLOBAL, &["f@V3", "f"], &[None, Some(1)]);
}

#[test]
fn many_names_in_any_order() {
    let defined = ["d@@V2", "a@@V1", "c@@V3", "b@@V1", "e@@V1", "aa@@V1"];
    let references = ["e", "c", "a@V1", "b@V1", "aa", "d@V2", "d", "a", "c@V3", "b"];
    let numbers = [4, 2, 1, 3, 5, 0, 0, 1, 2, 3];
    check(&defined, STB_GLOBAL, &references, &numbers.map(Some));
    let references = ["e", "c@V1", "a@V1", "bb", "aa", "d@V1", "d", "a"];
    let expected = [Some(4), None, Some(1), None, Some(5), None, Some(0), Some(1)];
    check(&defined, STB_GLOBAL, &references, &expected);
}

/// What is local answers nobody else, and no version in the same object either.
#[test]
fn local_symbols_have_no_versions() {
    let mut definer = Object::new();
    define(&mut definer, &["f@@V1"], STB_LOCAL);
    let mut both = definer.clone();
    let words = |files: &[Vec<u8>], words| {
        plan(files, Options::default(), &mut nobody, |layout| {
            let layout = layout.unwrap();
            let image = image(&layout).unwrap();
            let place = layout.section(files.len() - 1, words).unwrap();
            [0, 8].map(|at| word(&image, place + at))
        })
    };
    let mut user = Object::new();
    let (own, _) = refer(&mut user, &["f", "f@V1"], true);
    assert_eq!(words(&[definer.build(), user.build()], own), [0; 2]);
    let (own, _) = refer(&mut both, &["f", "f@V1"], true);
    assert_eq!(words(&[both.build()], own), [0; 2]);
}
