//! Many of everything: nothing takes more than a little time for each.
#![cfg(test)]

mod support;

use elf_core::names::*;
use elf_layout::Options;
use reloc_x86::x86_64::{R_X86_64_64, R_X86_64_GOTPCREL};
use std::collections::BTreeMap;
use support::{BASE, CODE, Object, Place, READ, WRITE, image, laid_out, nobody, plan, word};

/// 40,000 sections, each with a symbol, relocations against its neighbour, and three symbols more: 200,000 in two objects.
#[test]
fn many_sections_and_symbols() {
    const COUNT: u32 = 20_000;
    let make = |own: char, other: char| {
        let mut object = Object::new();
        for number in 1..=COUNT {
            let section = object.section(".text", CODE, 16, &[0x90; 24]);
            assert_eq!(section, number);
            object.local("local", section, 4);
            object.global(&format!("{own}{number}"), section, 0);
            object.weak(&format!("weak{number}"), section, 8);
            object.symbol(
                &format!("absolute{own}{number}"),
                STB_GLOBAL,
                STT_NOTYPE,
                Place::Absolute,
                number.into(),
                0,
            );
            let symbol = object.undefined(&format!("{other}{number}"));
            object.relocation(section, 0, R_X86_64_64, symbol, 0);
            object.relocation(section, 8, R_X86_64_GOTPCREL, symbol, 0);
        }
        object
    };
    let (one, two) = (make('a', 'b'), make('b', 'a'));
    laid_out(&[&one, &two], |layout| {
        assert_eq!(layout.got_entries().count(), 2 * COUNT as usize);
        let image = image(layout).unwrap();
        for number in (1..=COUNT).step_by(997) {
            let place = |object| layout.section(object, number).unwrap();
            assert_eq!(word(&image, place(0)), BASE + place(1));
            assert_eq!(word(&image, place(1)), BASE + place(0));
            let weak = one.index((number as usize - 1) * 5 + 2);
            assert_eq!(layout.definition(1, weak), Some((0, weak)), "the first one");
        }
    });
}

/// Sections at addresses of their own, from the last to the first, and shuffled.
#[test]
#[cfg_attr(not(feature = "addresses"), ignore = "needs the feature addresses")]
fn many_addresses_in_any_order() {
    const COUNT: u64 = 40_000;
    let orders: [fn(u64) -> u64; 3] = [|at| at, |at| COUNT - 1 - at, |at| at * 7919 % COUNT];
    for order in orders {
        let mut object = Object::new();
        for at in 0..COUNT {
            let section = object.section("", READ, 1, &[at as u8; 8]);
            object.at(section, 0x1_0000 + order(at) * 8);
        }
        plan(&[object.build()], Options::default(), &mut nobody, |layout| {
            let layout = layout.unwrap();
            let mut next = 0x1_0000;
            for fixed in layout.fixed_sections() {
                assert_eq!(fixed.segment.offset, next);
                next += 8;
            }
            assert_eq!(next, 0x1_0000 + COUNT * 8);
        });
    }
}

/// The finisher of the table's hash, to make names that collide in all bits.
fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

/// Sixteen letters each, all of one hash.
fn colliding(count: usize) -> Vec<String> {
    let start = 0xcbf2_9ce4_8422_2325u64 ^ 16;
    let mut names = Vec::new();
    let mut seed = 1u64;
    while names.len() < count {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let first = (mix(seed) & 0x1f1f_1f1f_1f1f_1f1f) + 0x4141_4141_4141_4141;
        let second = 0x4b4b_4b4b_4b4b_4b4b ^ mix(start ^ first);
        let name: Vec<u8> = [first, second].iter().flat_map(|word| word.to_le_bytes()).collect();
        // a name is text here; bytes above 0x7f are letters in Latin-1 and two bytes in UTF-8
        if let Ok(name) = String::from_utf8(name)
            && !name.contains('\0')
        {
            names.push(name);
        }
    }
    names
}

/// Names whose hashes are equal are still told apart.
#[test]
fn names_that_collide() {
    let names = colliding(1000);
    let mut one = Object::new();
    let data = one.section(".data", WRITE, 8, &vec![0; 8 * names.len()]);
    let mut two = Object::new();
    let own = two.section(".rodata", READ, 8, &vec![0; 16 * names.len()]);
    for (at, name) in (0u64..).zip(&names) {
        let symbol = one.undefined(name);
        one.relocation(data, 8 * at, R_X86_64_64, symbol, 0);
    }
    for (at, name) in names.iter().enumerate().rev() {
        let at = at as u64;
        two.global(name, own, 16 * at);
    }
    for order in [[&one, &two], [&two, &one]] {
        let first = usize::from(std::ptr::eq(order[1], &one));
        laid_out(&order, |layout| {
            let image = image(layout).unwrap();
            let (places, targets) =
                (layout.section(first, data).unwrap(), layout.section(1 - first, own).unwrap());
            for at in 0..names.len() as u64 {
                assert_eq!(word(&image, places + 8 * at), BASE + targets + 16 * at);
            }
        });
    }
    let distinct: BTreeMap<_, _> = names.iter().map(|name| (name, ())).collect();
    assert_eq!(distinct.len(), names.len());
}

/// Groups and objects in numbers: of each group one copy is left.
#[test]
fn many_objects_and_groups() {
    let make = |number: usize| {
        let mut object = Object::new();
        let own = object.section(".data", WRITE, 8, &[0; 8]);
        object.global(&format!("own{number}"), own, 0);
        let next = object.undefined(&format!("own{}", (number + 1) % 300));
        object.relocation(own, 0, R_X86_64_64, next, 0);
        for group in 0..20 {
            let text = object.section(".text", CODE, 1, &[0xc3; 3]);
            let symbol = object.weak(&format!("inline{}", (number + group) % 40), text, 0);
            object.group(symbol, GRP_COMDAT, &[text]);
        }
        object
    };
    let objects: Vec<Object> = (0..300).map(make).collect();
    laid_out(&objects.iter().collect::<Vec<_>>(), |layout| {
        let kept = (0..300).flat_map(|object| (2..22).map(move |section| (object, section)));
        let kept = kept.filter(|(object, section)| layout.section(*object, *section).is_some());
        assert_eq!(kept.count(), 40);
        let image = image(layout).unwrap();
        for object in 0..300 {
            let next = layout.section((object + 1) % 300, 1).unwrap();
            assert_eq!(word(&image, layout.section(object, 1).unwrap()), BASE + next);
        }
    });
}
