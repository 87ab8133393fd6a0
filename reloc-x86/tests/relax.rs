//! Instructions that do without a GOT entry, word for word.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use elf_core::{Arch, Query, Reach, Record, SectionMut, Site};
use reloc_x86::{I386, X86_64};

const PLACE: u64 = 0x1000;
const SYMBOL: u64 = 0x12_3456;

const NEAR: Reach = Reach { near: true, low: false, distance: None };
const LOW: Reach = Reach { near: false, low: true, distance: None };
const BOTH: Reach = Reach { near: true, low: true, distance: None };

/// `code`, whose last four bytes are the field, relaxed and relocated; `None` if it stays as it is.
fn relaxed<A: Arch>(
    code: &[u8],
    r#type: u32,
    addend: Option<i64>,
    reach: Reach,
) -> Option<Vec<u8>> {
    let mut bytes = code.to_vec();
    let record = Record { offset: code.len() as u64 - 4, symbol: 1, r#type, addend };
    let rewrite = A::relax(&Site { bytes: &bytes, record: &record, next: None }, reach)?;
    assert!(!rewrite.takes_next);
    let symbol = |_: &Query| Some(SYMBOL);
    let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
    rewrite.write::<A>(&mut section, &symbol).unwrap();
    Some(bytes)
}

/// `words` and a field, which is `value`.
fn code(words: &[u8], value: u64) -> Option<Vec<u8>> {
    Some([words, &(value as u32).to_le_bytes()].concat())
}

/// The distance from the end of an instruction of so many bytes.
fn distance(size: u64) -> u64 {
    SYMBOL - (PLACE + size)
}

#[test]
fn x86_64() {
    let relaxed = |words: &[u8], r#type, reach| {
        relaxed::<X86_64>(&code(words, 0).unwrap(), r#type, Some(-4), reach)
    };
    // mov foo@GOTPCREL(%rip), %r9
    let load = [0x4c, 0x8b, 0x0d];
    assert_eq!(relaxed(&load, 42, NEAR), code(&[0x4c, 0x8d, 0x0d], distance(7)));
    assert_eq!(relaxed(&load, 42, BOTH), relaxed(&load, 42, NEAR));
    assert_eq!(relaxed(&load, 42, LOW), code(&[0x49, 0xc7, 0xc1], SYMBOL));
    // mov foo@GOTPCREL(%rip), %ecx
    assert_eq!(relaxed(&[0x8b, 0x0d], 41, NEAR), code(&[0x8d, 0x0d], distance(6)));
    assert_eq!(relaxed(&[0x8b, 0x0d], 41, LOW), code(&[0xc7, 0xc1], SYMBOL));
    // call, jmp
    assert_eq!(relaxed(&[0xff, 0x15], 41, NEAR), code(&[0x67, 0xe8], distance(6)));
    let mut jump = code(&[0xe9], distance(5)).unwrap();
    jump.push(0x90);
    assert_eq!(relaxed(&[0xff, 0x25], 41, NEAR), Some(jump));
    // test %r10, foo; cmp foo, %r10; xor foo, %eax
    assert_eq!(relaxed(&[0x4c, 0x85, 0x15], 42, BOTH), code(&[0x49, 0xf7, 0xc2], SYMBOL));
    assert_eq!(relaxed(&[0x4c, 0x3b, 0x15], 42, BOTH), code(&[0x49, 0x81, 0xfa], SYMBOL));
    assert_eq!(relaxed(&[0x33, 0x05], 41, BOTH), code(&[0x81, 0xf0], SYMBOL));
    // REX2: mov foo, %r17; add foo, %r25
    assert_eq!(
        relaxed(&[0xd5, 0x48, 0x8b, 0x0d], 43, NEAR),
        code(&[0xd5, 0x48, 0x8d, 0x0d], distance(8))
    );
    assert_eq!(
        relaxed(&[0xd5, 0x4c, 0x03, 0x0d], 43, LOW),
        code(&[0xd5, 0x19, 0x81, 0xc1], SYMBOL)
    );

    // what stays: too far, push, movb, another operand, a prefix that is none, REX2 that is called REX, map 1
    assert_eq!(relaxed(&load, 42, Reach { low: false, ..LOW }), None);
    assert_eq!(relaxed(&[0x4c, 0x85, 0x15], 42, NEAR), None);
    assert_eq!(relaxed(&[0xff, 0x35], 41, BOTH), None);
    assert_eq!(relaxed(&[0x8a, 0x05], 41, BOTH), None);
    assert_eq!(relaxed(&[0x8b, 0x80], 41, BOTH), None);
    assert_eq!(relaxed(&[0x0f, 0x8b, 0x0d], 42, BOTH), None);
    assert_eq!(relaxed(&[0xd5, 0x48, 0x03, 0x0d], 42, BOTH), None);
    assert_eq!(relaxed(&[0xd5, 0xc8, 0x8b, 0x0d], 43, BOTH), None);
    assert_eq!(relaxed(&load, 9, BOTH), None);
    // half an instruction, or another part of the entry
    assert_eq!(relaxed(&[0x0d], 41, BOTH), None);
    let half = code(&load, 0).unwrap();
    assert_eq!(self::relaxed::<X86_64>(&half, 42, Some(0), BOTH), None);
}

#[test]
fn i386() {
    let relaxed =
        |words: &[u8], addend| relaxed::<I386>(&code(words, addend).unwrap(), 43, None, BOTH);
    // mov foo@GOT(%ebx), %edx; mov foo@GOT, %edx
    assert_eq!(relaxed(&[0x8b, 0x93], 0), code(&[0xc7, 0xc2], SYMBOL));
    assert_eq!(relaxed(&[0x8b, 0x15], 0), code(&[0xc7, 0xc2], SYMBOL));
    assert_eq!(relaxed(&[0xff, 0x93], 0), code(&[0x67, 0xe8], distance(6)));
    let mut jump = code(&[0xe9], distance(5)).unwrap();
    jump.push(0x90);
    assert_eq!(relaxed(&[0xff, 0xa3], 0), Some(jump));
    assert_eq!(relaxed(&[0x3b, 0x93], 0), code(&[0x81, 0xfa], SYMBOL));
    assert_eq!(relaxed(&[0x85, 0x93], 0), code(&[0xf7, 0xc2], SYMBOL));

    // another part of the entry, a SIB byte, push
    assert_eq!(relaxed(&[0x8b, 0x93], 4), None);
    assert_eq!(relaxed(&[0x8b, 0x94], 0), None);
    assert_eq!(relaxed(&[0xff, 0xb3], 0), None);
}
