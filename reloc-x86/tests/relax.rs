//! Instructions that do without a GOT entry, word for word.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use elf_core::{
    Arch, Query, Reach, Record, Rewrite, SectionMut, Site, Special, apply_got_load, apply_rewrite,
    find,
};
use reloc_x86::i386::R_386_GOT32X;
use reloc_x86::x86_64::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_CODE_4_GOTPCRELX, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX,
    R_X86_64_REX_GOTPCRELX,
};
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
    let Special::Relax(relax) = find(A::KINDS, r#type)?.special else { return None };
    let rewrite = relax(&Site::new(&bytes, &[record], 0)?, reach)?;
    assert_eq!(rewrite.takes, 0);
    let symbol = |_: &Query| Some(SYMBOL);
    let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
    apply_rewrite::<A>(&rewrite, &mut section, &symbol).unwrap();
    Some(bytes)
}

/// The number of the relocation that relaxed code has.
fn relaxed_as<A: Arch>(code: &[u8], r#type: u32, reach: Reach) -> Option<u32> {
    let record = Record { offset: code.len() as u64 - 4, symbol: 1, r#type, addend: Some(-4) };
    let Special::Relax(relax) = find(A::KINDS, r#type)?.special else { return None };
    Some(relax(&Site::new(code, &[record], 0)?, reach)?.records.first()?.as_ref()?.r#type)
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
    assert_eq!(
        relaxed(&load, R_X86_64_REX_GOTPCRELX, NEAR),
        code(&[0x4c, 0x8d, 0x0d], distance(7))
    );
    assert_eq!(
        relaxed(&load, R_X86_64_REX_GOTPCRELX, BOTH),
        relaxed(&load, R_X86_64_REX_GOTPCRELX, NEAR)
    );
    assert_eq!(relaxed(&load, R_X86_64_REX_GOTPCRELX, LOW), code(&[0x49, 0xc7, 0xc1], SYMBOL));
    // mov foo@GOTPCREL(%rip), %ecx
    assert_eq!(relaxed(&[0x8b, 0x0d], R_X86_64_GOTPCRELX, NEAR), code(&[0x8d, 0x0d], distance(6)));
    assert_eq!(relaxed(&[0x8b, 0x0d], R_X86_64_GOTPCRELX, LOW), code(&[0xc7, 0xc1], SYMBOL));
    // call, jmp
    assert_eq!(relaxed(&[0xff, 0x15], R_X86_64_GOTPCRELX, NEAR), code(&[0x67, 0xe8], distance(6)));
    let mut jump = code(&[0xe9], distance(5)).unwrap();
    jump.push(0x90);
    assert_eq!(relaxed(&[0xff, 0x25], R_X86_64_GOTPCRELX, NEAR), Some(jump));
    // test %r10, foo; cmp foo, %r10; xor foo, %eax
    assert_eq!(
        relaxed(&[0x4c, 0x85, 0x15], R_X86_64_REX_GOTPCRELX, BOTH),
        code(&[0x49, 0xf7, 0xc2], SYMBOL)
    );
    assert_eq!(
        relaxed(&[0x4c, 0x3b, 0x15], R_X86_64_REX_GOTPCRELX, BOTH),
        code(&[0x49, 0x81, 0xfa], SYMBOL)
    );
    assert_eq!(relaxed(&[0x33, 0x05], R_X86_64_GOTPCRELX, BOTH), code(&[0x81, 0xf0], SYMBOL));
    // REX2: mov foo, %r17; add foo, %r25
    assert_eq!(
        relaxed(&[0xd5, 0x48, 0x8b, 0x0d], R_X86_64_CODE_4_GOTPCRELX, NEAR),
        code(&[0xd5, 0x48, 0x8d, 0x0d], distance(8))
    );
    assert_eq!(
        relaxed(&[0xd5, 0x4c, 0x03, 0x0d], R_X86_64_CODE_4_GOTPCRELX, LOW),
        code(&[0xd5, 0x19, 0x81, 0xc1], SYMBOL)
    );

    // of 32 bits, where the number has no sign: mov foo, %r9d; cmp foo, %r25d
    let test = |words: &[u8], r#type| relaxed_as::<X86_64>(&code(words, 0).unwrap(), r#type, LOW);
    assert_eq!(
        relaxed(&[0x44, 0x8b, 0x0d], R_X86_64_REX_GOTPCRELX, LOW),
        code(&[0x41, 0xc7, 0xc1], SYMBOL)
    );
    assert_eq!(test(&[0x44, 0x8b, 0x0d], R_X86_64_REX_GOTPCRELX), Some(R_X86_64_32));
    assert_eq!(test(&load, R_X86_64_REX_GOTPCRELX), Some(R_X86_64_32S));
    assert_eq!(test(&[0xd5, 0x44, 0x3b, 0x0d], R_X86_64_CODE_4_GOTPCRELX), Some(R_X86_64_32));
    assert_eq!(test(&[0xd5, 0x4c, 0x3b, 0x0d], R_X86_64_CODE_4_GOTPCRELX), Some(R_X86_64_32S));

    // what stays: too far, push, movb, another operand, a prefix that is none, REX2 that is called REX, map 1
    assert_eq!(relaxed(&load, R_X86_64_REX_GOTPCRELX, Reach { low: false, ..LOW }), None);
    assert_eq!(relaxed(&[0x4c, 0x85, 0x15], R_X86_64_REX_GOTPCRELX, NEAR), None);
    assert_eq!(relaxed(&[0xff, 0x35], R_X86_64_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&[0x8a, 0x05], R_X86_64_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&[0x8b, 0x80], R_X86_64_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&[0x0f, 0x8b, 0x0d], R_X86_64_REX_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&[0xd5, 0x48, 0x03, 0x0d], R_X86_64_REX_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&[0xd5, 0xc8, 0x8b, 0x0d], R_X86_64_CODE_4_GOTPCRELX, BOTH), None);
    assert_eq!(relaxed(&load, R_X86_64_GOTPCREL, BOTH), None);
    // of a prefix, an opcode and an operand: what looks like a load but for one of them
    for words in [[0x5c, 0x8b, 0x0d], [0x4c, 0x89, 0x0d], [0x4c, 0x8b, 0x88], [0x4c, 0x8b, 0x0c]] {
        assert_eq!(relaxed(&words, R_X86_64_REX_GOTPCRELX, NEAR), None, "{words:x?}");
    }
    // half an instruction, or another part of the entry
    assert_eq!(relaxed(&[0x0d], R_X86_64_GOTPCRELX, BOTH), None);
    let half = code(&load, 0).unwrap();
    for addend in [0, 4, -3] {
        let relaxed = self::relaxed::<X86_64>(&half, R_X86_64_REX_GOTPCRELX, Some(addend), BOTH);
        assert_eq!(relaxed, None);
    }
}

#[test]
fn i386() {
    let relaxed = |words: &[u8], addend| {
        relaxed::<I386>(&code(words, addend).unwrap(), R_386_GOT32X, None, BOTH)
    };
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

/// What is taken for [`Arch::GOT_LOAD`] becomes what the long way makes of it, whatever stands there.
#[test]
fn the_short_way_of_loads_is_the_long_one() {
    let load = X86_64::GOT_LOAD.unwrap();
    let Special::Relax(relax) = find(X86_64::KINDS, load.r#type).unwrap().special else {
        panic!("no relaxation")
    };
    let symbol = |_: &Query| Some(SYMBOL);
    let relocated = |bytes: &[u8], rewrite: &Rewrite| {
        let mut bytes = bytes.to_vec();
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        apply_rewrite::<X86_64>(rewrite, &mut section, &symbol).unwrap();
        bytes
    };
    let mut count = 0;
    for word in 0..1 << 24 {
        let [modrm, opcode, rex, _] = u32::to_le_bytes(word);
        // all of two bytes, and of the third one a few where the others are right
        if (opcode != 0x8b) as u8 + (modrm & 0o307 != 0o005) as u8 + (rex & 0xf0 != 0x40) as u8 > 1
        {
            continue;
        }
        let bytes = [0x90, rex, opcode, modrm, 0x11, 0x22, 0x33, 0x44];
        for addend in [Some(-4), Some(-5), Some(4), None] {
            let record = Record { offset: 4, symbol: 1, r#type: load.r#type, addend };
            let records = [record];
            let long = relax(&Site::new(&bytes, &records, 0).unwrap(), NEAR);
            if !load.is_at(&record, &bytes) {
                continue;
            }
            count += 1;
            let short = load.rewrite(&record);
            assert_eq!(
                long.as_ref().map(|long| relocated(&bytes, long)),
                Some(relocated(&bytes, &short))
            );
            let mut written = bytes.to_vec();
            let mut section = SectionMut { bytes: &mut written, address: PLACE, big_endian: false };
            apply_got_load::<X86_64>(&load, &record, &mut section, &symbol).unwrap();
            assert_eq!(written, relocated(&bytes, &short));
        }
    }
    // sixteen prefixes, eight registers
    assert_eq!(count, 128);
}

/// Where a part of the load is missing, it is none; where the distance does not fit, nothing is written.
#[test]
fn loads_are_whole() {
    let load = X86_64::GOT_LOAD.unwrap();
    let bytes = [0x48, 0x8b, 0x05, 1, 2, 3, 4];
    let at = |offset| Record { offset, symbol: 1, r#type: load.r#type, addend: Some(-4) };
    assert!(load.is_at(&at(3), &bytes));
    for end in 0..bytes.len() {
        assert!(!load.is_at(&at(3), &bytes[..end]));
    }
    for offset in [0, 1, 2, 4, 7, u64::MAX] {
        assert!(!load.is_at(&at(offset), &bytes));
    }
    let far = |_: &Query| Some(PLACE + (1 << 31) + 7);
    let mut written = bytes;
    let mut section = SectionMut { bytes: &mut written, address: PLACE, big_endian: false };
    apply_got_load::<X86_64>(&load, &at(3), &mut section, &far).unwrap_err();
    let near = |_: &Query| Some(PLACE + (1 << 31) + 6);
    apply_got_load::<X86_64>(&load, &at(3), &mut section, &near).unwrap();
    assert_eq!(written, [0x48, 0x8d, 0x05, 0xff, 0xff, 0xff, 0x7f]);
}
