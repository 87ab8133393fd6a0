//! Applies any record to any section: on error the section is as it was, else only bits of the field have moved.

use super::input::Input;
use super::sink::Sink;
use archs::{Architecture, with_arch};
use elf_core::{Arch, Kind, Order, Query, Record, Role, SectionMut, apply, find};

/// Takes architecture, record, answers and section from `bytes`.
pub fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let choice = usize::from(input.u8()) % Architecture::ALL.len();
    with_arch!(Architecture::ALL[choice], A => with::<A>(input));
}

fn with<A: Arch>(mut input: Input<'_>) {
    let flags = input.u8();
    let is = |bit: u8| flags >> bit & 1 != 0;
    let choice = usize::from(input.u16());
    let number = match A::KINDS.get(choice % (A::KINDS.len() + 1)) {
        Some(kind) => kind.number,
        None => input.u32(),
    };
    let offset = if is(0) { input.u64() } else { input.u8().into() };
    let addend = is(1).then(|| input.u64().cast_signed());
    let symbol = input.u32();
    let address = input.u64();
    let answers = [input.u64(), input.u64()];
    let record = Record { offset, symbol, r#type: number, addend };
    let resolve = |query: &Query| {
        assert!(!matches!(query.role, Role::Zero | Role::Place), "nothing of the symbol");
        assert_eq!((query.symbol, query.place), (symbol, address.wrapping_add(offset)));
        assert_eq!(query.kind.number, number);
        match query.role {
            Role::Bank if is(4) => Some(answers[1] & 31),
            Role::Address | Role::Plt => (!is(2)).then_some(answers[0]),
            _ => (!is(3)).then_some(answers[1]),
        }
    };
    let before = input.0.to_vec();
    let mut after = before.clone();
    let mut section = SectionMut { bytes: &mut after, address, big_endian: is(5) };
    match apply::<A>(&record, &mut section, &resolve) {
        Err(error) => {
            Sink::default().display(error);
            assert_eq!(before, after, "an error leaves the section as it was");
        }
        Ok(()) => {
            let kind = find(A::KINDS, number).expect("an unknown type is an error");
            only_the_field_moved(kind, is(5), offset, &before, &after);
        }
    }
}

/// Whether all changed bits are in the field. A field with an encoder may change its whole word.
fn only_the_field_moved(kind: &Kind, big_endian: bool, offset: u64, before: &[u8], after: &[u8]) {
    let size = if kind.field.is_uleb128 { 10 } else { kind.field.bytes() };
    let big_endian = big_endian && kind.field.order != Order::Little;
    let is_free = kind.field.encode.is_some() || kind.branch.is_some() || kind.field.is_uleb128;
    let mut mask = if is_free { u128::MAX } else { 0 };
    for bits in kind.field.parts {
        mask |= (u128::MAX >> (128 - bits.width)) << bits.at;
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let allowed = match at.checked_sub(start).filter(|at| *at < size) {
            None => 0,
            Some(at) if kind.field.order == Order::Halfwords && size == 4 => {
                // the first halfword is the upper half
                let byte = if big_endian { 1 - at % 2 } else { at % 2 };
                mask >> (8 * (byte + if at < 2 { 2 } else { 0 }))
            }
            Some(at) if big_endian => mask >> (8 * (size - 1 - at)),
            Some(at) => mask >> (8 * at),
        };
        assert_eq!((before ^ after) & !(allowed as u8), 0, "{} moved byte {at}", kind.name);
    }
}
