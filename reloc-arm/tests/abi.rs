//! Every static row by the words of AAELF32 alone: what the relocated instruction means, read as a processor reads it, is X after the mask
//! that the ABI has for it; what overflows is refused, and no other bit changes. Nothing here is taken from the rows themselves.
#![cfg(test)]

#[path = "abi/class.rs"]
mod class;
#[path = "abi/rows.rs"]
mod rows;

use class::Class;
use elf_core::{
    Arch as _, Order, Query, Record, Resolve, Role, SectionMut, SymbolAttributes, apply, find,
};
use reloc_arm::Arm;
use reloc_arm::arm::KINDS;
use rows::Minus::{Base, Nothing, Origin, Place, Word};
use rows::{L, ORIGIN, ROWS};

/// What a symbol answers.
struct Answers {
    role: Role,
    value: u32,
    base: u32,
    origin: u32,
    attributes: SymbolAttributes,
}

impl Resolve for Answers {
    fn resolve(&self, query: &Query) -> Option<u64> {
        match query.role {
            role if role == self.role => Some(self.value.into()),
            Role::SegmentBase => Some(self.base.into()),
            Role::GotBase => Some(self.origin.into()),
            _ => None,
        }
    }

    fn attributes(&self, _: &Query) -> SymbolAttributes {
        self.attributes
    }
}

/// X about everything that may change anything.
fn values() -> impl Iterator<Item = i32> {
    let powers = (0..32).flat_map(|bit| (-4..=4).map(move |by| (1i32 << bit).wrapping_add(by)));
    let others = [0x3fc, 0x7c, 0x7e, 0x7ff8, 0xff_0fff, 0xff_1000, 0x1234_5678, 0x1ffff, 0x5a_a55a];
    powers.chain(others).flat_map(|value| [value, value.wrapping_neg()])
}

fn put(word: u32, class: Class, order: Order, is_big: bool) -> Vec<u8> {
    let word = if order == Order::Halfwords && !is_big { word.rotate_left(16) } else { word };
    match is_big {
        false => word.to_le_bytes()[..class.size()].to_vec(),
        true => word.to_be_bytes()[4 - class.size()..].to_vec(),
    }
}

#[test]
fn every_row_as_the_abi_has_it() {
    let (mut applied, mut refused) = (0, 0);
    for &(number, role, or_t, minus, class) in ROWS {
        let kind = find(KINDS, number).unwrap();
        let order = kind.field.order;
        for place in [0x4000_1000u32, 0x8765_4322] {
            // of a branch bit 0 is T
            let is_branch = role == L && !or_t;
            for x in values().filter(|x| !is_branch || x & 1 == 0) {
                for &word in class.words() {
                    for (is_thumb, is_rela, is_big) in [
                        (false, false, false),
                        (true, false, false),
                        (false, true, false),
                        (false, false, true),
                    ] {
                        if is_thumb && !or_t {
                            continue;
                        }
                        let held = class.addend(word);
                        let addend = if is_rela { -0x1234_5678 } else { held };
                        let (base, origin) = (0x2000_4000u32, 0x9abc_def0u32);
                        let taken = match minus {
                            Nothing => 0,
                            Place => place,
                            Word => place & !3,
                            Base => base,
                            Origin => origin,
                        };
                        let value = (x as u32).wrapping_add(taken).wrapping_sub(addend as u32);
                        let origin = if role == ORIGIN { value } else { origin };
                        let is_function = is_thumb && or_t;
                        let t = u32::from(is_function);
                        let with_t = (x as u32).wrapping_add(taken) | t;
                        let expected = class.result(with_t.wrapping_sub(taken) as i32);
                        let attributes = SymbolAttributes::new(is_function, 0);
                        let symbol = Answers { role, value, base, origin, attributes };
                        let mut bytes = put(word, class, order, is_big);
                        let mut section = SectionMut {
                            bytes: &mut bytes,
                            address: place.into(),
                            big_endian: is_big,
                        };
                        let addend = is_rela.then_some(addend);
                        let record = Record { offset: 0, symbol: 1, r#type: number, addend };
                        let result = apply::<Arm>(&record, &mut section, &symbol);
                        let what = || {
                            format!(
                                "{} {word:#x} at {place:#x}, X {x:#x} {is_thumb} {is_rela} {is_big}",
                                kind.name
                            )
                        };
                        let Some(expected) = expected else {
                            assert!(result.is_err(), "{}: overflows", what());
                            refused += 1;
                            continue;
                        };
                        result.unwrap_or_else(|error| panic!("{}: {error}", what()));
                        let found = (0..bytes.len()).fold(0, |word, at| {
                            let at = if is_big { at } else { bytes.len() - 1 - at };
                            word << 8 | u32::from(bytes[at])
                        });
                        let found = match order {
                            Order::Halfwords if !is_big => found.rotate_left(16),
                            _ => found,
                        };
                        let (number, rest) = class.read(found);
                        assert_eq!(number, expected, "{}: {found:#x}", what());
                        assert_eq!(rest, class.read(word).1, "{}: {found:#x}", what());
                        applied += 1;
                    }
                }
            }
        }
    }
    println!("{} rows, {applied} applied, {refused} refused", ROWS.len());
    assert!(applied > 200_000 && refused > 20_000);
}

/// The symbol is weak, and nobody defines it: a branch goes on with the next instruction, what counts from its place is A, or 0 where an
/// offset has no sign, and all else counts from 0 (lld takes them for the same).
#[test]
fn every_row_of_what_nobody_defines() {
    struct Nobody {
        base: u32,
        origin: u32,
    }
    impl Resolve for Nobody {
        fn resolve(&self, query: &Query) -> Option<u64> {
            match query.role {
                Role::SegmentBase => Some(self.base.into()),
                Role::GotBase => Some(self.origin.into()),
                _ => Arm::undefined_weak(query).or(Some(0)),
            }
        }
    }
    let symbol = Nobody { base: 0x40, origin: 0x80 };
    let (mut counted, mut absolute) = (0, 0);
    for &(number, role, _, minus, class) in ROWS.iter().filter(|row| row.1 != ORIGIN) {
        let kind = find(KINDS, number).unwrap();
        for (place, &word) in class.words().iter().flat_map(|it| [(0x8000u32, it), (0x8002, it)]) {
            let addend = class.addend(word);
            let x = match (class, minus) {
                (Class::Literal8, Word) => 0,
                (Class::Branch11 | Class::Branch8 | Class::Branch6, Place) => addend + 2,
                (_, Place) if role == L => addend + 4,
                (_, Place | Word) => addend,
                (_, Base) => addend - i64::from(symbol.base),
                (_, Origin) => addend - i64::from(symbol.origin),
                (_, Nothing) => addend,
            };
            *if matches!(minus, Place | Word) { &mut counted } else { &mut absolute } += 1;
            let mut bytes = put(word, class, kind.field.order, false);
            let mut section =
                SectionMut { bytes: &mut bytes, address: place.into(), big_endian: false };
            let record = Record { offset: 0, symbol: 1, r#type: number, addend: None };
            let result = apply::<Arm>(&record, &mut section, &symbol);
            let expected = class.result(x as i32);
            assert_eq!(result.is_ok(), expected.is_some(), "{} {word:#x}", kind.name);
            let Some(expected) = expected else { continue };
            let found = (0..bytes.len()).rev().fold(0, |word, at| word << 8 | u32::from(bytes[at]));
            let is_turned = kind.field.order == Order::Halfwords;
            let found = if is_turned { found.rotate_left(16) } else { found };
            assert_eq!(class.read(found).0, expected, "{} {word:#x}: {found:#x}", kind.name);
        }
    }
    assert!(counted > 200 && absolute > 200, "{counted}, {absolute}");
}
