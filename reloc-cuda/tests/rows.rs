//! What holds of every row: bits outside the field never move, an error changes nothing, what is put can be read back, the first
//! value outside a check fails; and the ends of the common fields by hand.
#![cfg(test)]

use elf_core::{
    ApplyErrorKind, Arch, Check, Kind, Query, Record, Role, SectionMut, Stage, Value, apply, find,
};
use reloc_cuda::{Cuda, Proof, Resolver, row, without_unified_table};

/// A fixed sequence of random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 29
    }

    /// Of any width, or close to a power of two.
    fn value(&mut self) -> u64 {
        let (value, how) = (self.next(), self.next());
        let shift = how as u32 % 64;
        match how >> 61 {
            0..3 => value >> shift,
            3 => !(value >> shift),
            _ => (1u64 << shift).wrapping_add(value % 9).wrapping_sub(4),
        }
    }
}

fn kinds() -> impl Iterator<Item = &'static Kind> {
    Cuda::KINDS.iter().filter(|kind| kind.stage == Stage::Link && kind.field.bytes() != 0)
}

/// Applies with the answer `value` to whatever the formula asks, and `bank` for the bank.
fn run(
    kind: &Kind,
    bytes: &mut [u8],
    offset: u64,
    value: u64,
    addend: Option<i64>,
    bank: u64,
) -> Result<(), ApplyErrorKind> {
    let record = Record { offset, symbol: 5, r#type: kind.number, addend };
    let mut section = SectionMut { bytes, address: 0, big_endian: false };
    let answer = |query: &Query| {
        assert_eq!((query.symbol, query.kind.number), (5, kind.number));
        Some(if query.role == Role::Bank { bank } else { value })
    };
    apply::<Cuda>(&record, &mut section, &answer).map_err(|error| error.kind)
}

fn word(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
}

#[test]
fn every_bit_of_every_row() {
    let mut random = Random(1);
    for kind in kinds() {
        for _ in 0..2000 {
            let before: [u8; 48] = core::array::from_fn(|_| random.next() as u8);
            let offset = random.next() as usize % (48 - kind.field.bytes() + 1);
            let (value, bank) = (random.value(), random.next() % 40);
            let place = offset..offset + kind.field.bytes();
            let mut after = before;
            // the value that the formula gives: the place is at its own offset
            let given =
                value.wrapping_sub(if kind.value.minus == Role::Place { offset as u64 } else { 0 });
            let result = run(kind, &mut after, offset as u64, value, Some(0), bank);
            assert_eq!(
                (&after[..place.start], &after[place.end..]),
                (&before[..place.start], &before[place.end..])
            );
            if result.is_err() {
                assert_eq!(after, before, "{}", kind.name);
            }
            let fits = |bits: &elf_core::Bits| match bits.role {
                Some(_) => bank >> bits.shift >> bits.width == 0,
                None => !bits.exact || given.is_multiple_of(1 << bits.shift),
            };
            let (least, most) = kind.check.limits();
            let signed =
                matches!(kind.check, Check::Signed(_) | Check::Either(_)) && (given as i64) < 0;
            let number = if signed { i128::from(given as i64) } else { i128::from(given) };
            let allowed = kind.check == Check::Any || (least..=most).contains(&number);
            assert_eq!(
                result.is_ok(),
                allowed && kind.field.parts.iter().all(fits),
                "{} {given:#x} {bank}",
                kind.name
            );
            if result.is_ok() {
                let mut expected = word(&before[place.clone()]);
                for bits in kind.field.parts {
                    let source = if bits.role.is_some() { bank } else { given };
                    for bit in 0..bits.width {
                        let one = u128::from(source >> bits.shift >> bit & 1);
                        expected = expected & !(1 << (bits.at + bit)) | one << (bits.at + bit);
                    }
                }
                assert_eq!(word(&after[place]), expected, "{}", kind.name);
            }
        }
    }
}

/// Applying again with the same answers changes nothing, and an addend in the place counts once.
#[test]
fn with_addends_it_is_idempotent() {
    let mut random = Random(7);
    for kind in kinds() {
        for _ in 0..200 {
            let mut bytes: [u8; 16] = core::array::from_fn(|_| random.next() as u8);
            let addend = i64::from(random.next() as i16) & !3;
            let answer = random.value() & !3;
            if run(kind, &mut bytes, 0, answer, Some(addend), 3).is_ok() {
                let once = bytes;
                assert_eq!(run(kind, &mut bytes, 0, answer, Some(addend), 3), Ok(()));
                assert_eq!(bytes, once, "{}", kind.name);
            }
            let sum = answer.wrapping_add_signed(if kind.value.addend { addend } else { 0 });
            let (mut one, mut other) = ([0; 16], [0; 16]);
            assert_eq!(
                run(kind, &mut one, 0, answer, Some(addend), 3),
                run(kind, &mut other, 0, sum, Some(0), 3)
            );
            assert_eq!(one, other, "{}", kind.name);
        }
    }
}

/// A `REL` place holds the addend: where the answer is 0 it is written back as it was.
#[test]
fn rel_addends_are_read_from_the_place() {
    let mut random = Random(3);
    for kind in kinds().filter(|kind| kind.value.addend && kind.value.minus == Role::Zero) {
        for _ in 0..200 {
            let before: [u8; 16] = core::array::from_fn(|_| random.next() as u8);
            let mut after = before;
            let bank = kind.field.parts.iter().filter(|bits| bits.role.is_some());
            let bank = bank.fold(0, |bank, bits| bank | bits.get(word(&before)) << bits.shift);
            if kind.field.parts.iter().filter(|bits| bits.role.is_some()).count() < 2 {
                let _ = run(kind, &mut after, 0, 0, None, bank);
                assert_eq!(after, before, "{}", kind.name);
            }
        }
    }
}

#[test]
fn places_outside_and_answers_missing_are_errors() {
    for kind in kinds() {
        let mut bytes = [0x5a; 48];
        let size = bytes.len() as u64;
        for offset in [size + 1 - kind.field.bytes() as u64, size, u64::MAX] {
            assert_eq!(
                run(kind, &mut bytes, offset, 0, Some(0), 0),
                Err(ApplyErrorKind::OutsideSection { size })
            );
        }
        let record = Record { offset: 0, symbol: 1, r#type: kind.number, addend: Some(0) };
        let mut section = SectionMut { bytes: &mut bytes, address: 0, big_endian: false };
        let error = apply::<Cuda>(&record, &mut section, &|_: &Query| None).unwrap_err();
        assert!(matches!(error.kind, ApplyErrorKind::Unresolved(_)), "{error}");
        assert_eq!(bytes, [0x5a; 48]);
    }
}

#[test]
fn first_values_outside_fail() {
    for kind in kinds().filter(|kind| kind.check != Check::Any) {
        let step = kind
            .field
            .parts
            .iter()
            .filter(|bits| bits.exact)
            .map(|bits| 1i128 << bits.shift)
            .max()
            .unwrap_or(1);
        let (least, most) = kind.check.limits();
        let last = (most + 1 - step, true);
        for (value, passes) in [(least - step, false), (least, true), last, (most + 1, false)] {
            assert_eq!(
                run(kind, &mut [0; 16], 0, value as u64, Some(0), 0).is_ok(),
                passes,
                "{} {value:#x}",
                kind.name
            );
        }
    }
}

#[test]
fn the_common_fields_by_hand() {
    let value = |number, value, bank| {
        let mut bytes = [0; 16];
        run(find(Cuda::KINDS, number).unwrap(), &mut bytes, 0, value, Some(0), bank)
            .map(|()| word(&bytes))
    };
    assert_eq!(value(2, 0x1234_5678_9abc_def0, 0), Ok(0x1234_5678_9abc_def0)); // 64
    assert_eq!(value(56, 0x1234_5678_9abc_def0, 0), Ok(0x9abc_def0 << 32)); // ABS32_LO_32
    assert_eq!(value(57, 0x1234_5678_9abc_def0, 0), Ok(0x1234_5678 << 32)); // ABS32_HI_32
    assert_eq!(value(58, 0x7f_1234_5670, 0), Ok(0x1f_c48d_159c << 34)); // ABS47_34
    assert_eq!(value(75, 0x7f_1234_5670, 0), Ok(0x9c << 16 | (0x7f_1234_5670 >> 10) << 34)); // ABS55_16_34
    assert_eq!(value(64, 0x28, 3), Ok(0xa << 40 | 3 << 54)); // CONST_FIELD19_40
    assert_eq!(value(66, 0x28, 3), Ok(0x28 << 38 | 3 << 54)); // CONST_FIELD21_38
    assert_eq!(value(115, 0x1_0000, 4), Ok(0x1_0000 << 37 | 4 << 54)); // CONST_FIELD22_37
    assert_eq!(value(74, -0x40i64 as u64, 0), Ok(0xff_ffc0 << 40)); // ABS24_40
    assert_eq!(value(24, 0x28, 15), Ok(0xa << 28 | 15 << 42)); // CONST_FIELD19_28
    assert!(matches!(value(24, 0x28, 16), Err(ApplyErrorKind::Overflow { value: 16, .. })));
    assert!(matches!(
        value(64, 0x2a, 3),
        Err(ApplyErrorKind::Misaligned { value: 0x2a, alignment: 4 })
    ));
}

#[test]
fn refused_by_name() {
    let error = |number| {
        let record = Record { offset: 0, symbol: 1, r#type: number, addend: Some(0) };
        let mut section = SectionMut { bytes: &mut [0; 16], address: 0, big_endian: false };
        apply::<Cuda>(&record, &mut section, &|_: &Query| Some(0)).unwrap_err()
    };
    assert_eq!(
        (error(67).name, error(67).kind),
        (Some("R_CUDA_INSTRUCTION128"), ApplyErrorKind::Dynamic)
    );
    assert_eq!(
        (error(0x10001).name, error(0x10001).kind),
        (Some("R_MERCURY_G64"), ApplyErrorKind::Dynamic)
    );
    assert_eq!(error(0x1003f).name, Some("R_MERCURY_UNIFIED32_HI"));
    for number in [116, 0xffff, 0x10040, u32::MAX] {
        assert_eq!((error(number).name, error(number).kind), (None, ApplyErrorKind::UnknownType));
    }
}

#[test]
fn families() {
    let count =
        |resolver| (0..116).filter(|&number| row(number).unwrap().resolver == resolver).count();
    let families =
        [Resolver::Nobody, Resolver::Linker, Resolver::Driver, Resolver::Either].map(count);
    assert_eq!(families, [1, 39, 52, 24]);
    assert!(row(116).is_none());
    for number in 0..116 {
        let row = row(number).unwrap();
        assert_eq!(row.kind.number, number);
        let asks_the_driver = matches!(
            row.kind.value.of,
            Role::Generic | Role::Unified | Role::Descriptor | Role::HeaderIndex
        );
        assert!(!asks_the_driver || row.resolver == Resolver::Driver, "{}", row.kind.name);
        let changes_nothing = row.kind.value == Value::ZERO && row.kind.stage == Stage::Link;
        assert_eq!(changes_nothing, [0, 68, 69].contains(&number));
    }
    let proved = (0..116).filter(|&number| row(number).unwrap().proof != Proof::Table).count();
    assert_eq!(proved, 66, "rows with a proof beside the tools' own tables");
}

/// What stands for a unified address without a table of them fills the same bits with S + A; of all others nothing does.
#[test]
fn plain_rows_of_unified_ones() {
    let mut found = 0;
    for unified in Cuda::KINDS {
        let Some(plain) = without_unified_table(unified.number) else { continue };
        let plain = find(Cuda::KINDS, plain).unwrap();
        assert_eq!((unified.value.of, plain.value.of), (Role::Unified, Role::Address));
        assert_eq!(unified.check, plain.check);
        for value in [0x1234_5678, 0x1234_5678_9abc_def0, u64::MAX] {
            let [mut one, mut other] = [[0u8; 16]; 2];
            let done = run(unified, &mut one, 0, value, Some(0), 0);
            assert_eq!(done, run(plain, &mut other, 0, value, Some(0), 0), "{}", unified.name);
            assert_eq!(one, other, "{}", unified.name);
        }
        found += 1;
    }
    // 64 bits, 32, each half of an immediate, each of eight bytes
    assert_eq!(found, 12);
}
