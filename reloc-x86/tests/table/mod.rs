//! What holds of every row of every table of relocation kinds. Each `reloc-*` crate includes this file and names its tables.

use elf_core::names::EM_ARM;
use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, Contents, Field, Kind, Order, Page, Query, Record,
    Resolve, Role, SectionMut, Special, Stage, Value, apply, apply_kind, find,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const SIZE: usize = 48;

/// One application: a row, the value its formula shall give, and everything around it.
#[derive(Clone, Debug)]
struct Case {
    row: usize,
    target: u64,
    /// Low bits of a sum that will be rounded to a page.
    below_page: u64,
    minus: u64,
    /// Or `None`, if the place holds it.
    addend: Option<i64>,
    address: u64,
    offset: usize,
    big_endian: bool,
    before: [u8; SIZE],
}

/// What came of it.
struct Outcome {
    result: Result<(), ApplyError>,
    after: [u8; SIZE],
    /// The value that the formula gave.
    value: u64,
}

fn load(bytes: &[u8], big_endian: bool) -> u128 {
    let append = |word: u128, byte: &u8| word << 8 | u128::from(*byte);
    if big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) }
}

/// The word at the place.
fn word(field: &Field, case: &Case, bytes: &[u8]) -> u128 {
    let bytes = &bytes[case.offset..case.offset + field.bytes()];
    match (field.order, case.big_endian) {
        (Order::Halfwords, false) => load(&bytes[..2], false) << 16 | load(&bytes[2..], false),
        (order, big_endian) => load(bytes, big_endian && order != Order::Little),
    }
}

/// The value as an address has it, if it does not count from what the place holds.
fn modulo<A: Arch>(kind: &Kind, value: u64) -> u64 {
    let is_plain = kind.value == Value::of(kind.value.of).plus_a();
    match (A::ADDRESS_SIZE, kind.value.contents) {
        (4, Contents::Ignored) if is_plain && kind.field.bytes() == 8 => value as u32 as u64,
        (4, Contents::Ignored) => value as i32 as u64,
        _ => value,
    }
}

/// The check of a kind for addresses of the architecture: of all values modulo 2^32, the ABI allows every one of 32 bits.
fn check<A: Arch>(kind: &Kind) -> Check {
    match kind.check {
        Check::Signed(32) | Check::Either(32) if A::ADDRESS_SIZE == 4 => Check::Any,
        check => check.modulo(A::ADDRESS_SIZE),
    }
}

/// Applies a record, or what it is with a partner whose value is an address.
fn apply_row<A: Arch>(
    record: &Record,
    section: &mut SectionMut<'_>,
    symbols: &impl Resolve,
) -> Result<(), ApplyError> {
    let Some(kind) = find(A::KINDS, record.r#type).filter(|kind| is_paired(kind)) else {
        return apply::<A>(record, section, symbols);
    };
    let plain = |kind: &&Kind| kind.value == Value::of(Role::Address).plus_a();
    let plain = A::KINDS.iter().find(plain).unwrap().number;
    let partner = Record { offset: 0, symbol: PARTNER, r#type: plain, addend: Some(0) };
    apply_kind::<A>(kind, record, Some(&partner), section, symbols)
}

fn is_paired(kind: &Kind) -> bool {
    matches!(kind.special, Special::Pair(_) | Special::Second)
}

/// The symbol of partners.
const PARTNER: u32 = 6;

fn is_word(kind: &Kind) -> bool {
    !kind.field.is_uleb128 && !matches!(kind.special, Special::Padding(_))
}

fn is_rounded(field: &Field) -> bool {
    field.parts.iter().any(|bits| bits.rounded)
}

fn formula(kind: &Kind, before: &[u8]) -> Value {
    kind.select.map_or(kind.value, |select| select(before))
}

/// Applies with answers from which the formula gives `target`, or its page.
fn run<A: Arch>(case: &Case) -> Outcome {
    let kind = &A::KINDS[case.row];
    let formula = formula(kind, &case.before[..case.offset]);
    let held = kind.field.addend(word(&kind.field, case, &case.before));
    let (addend, target) = match formula.contents {
        Contents::Ignored => (case.addend.or(held).unwrap(), case.target),
        Contents::Plus => {
            (case.addend.unwrap_or(0), case.target.wrapping_sub(held.unwrap() as u64))
        }
        _ => (case.addend.unwrap_or(0), (held.unwrap() as u64).wrapping_sub(case.target)),
    };
    let minus = match formula.minus {
        Role::Zero => 0,
        Role::Place => case.address.wrapping_add(case.offset as u64),
        _ if formula.of == Role::Zero => (addend as u64).wrapping_sub(target),
        _ => case.minus,
    };
    let (target, rounded, low) = match formula.page {
        Page::Neither => (target, minus, 0),
        Page::Minus => (target, minus & !0xfff, 0),
        Page::MinusWord => (target, minus & !3, 0),
        Page::Both => (target & !0xfff, minus & !0xfff, case.below_page),
        Page::Nearest => (target & !0xfff, minus & !0xfff, case.below_page.wrapping_sub(0x800)),
        Page::Upper { .. } => (target, 0, 0),
        page => panic!("no kind here has {page:?}"),
    };
    let sum = target.wrapping_add(rounded).wrapping_add(low);
    let of = if formula.addend { sum.wrapping_sub(addend as u64) } else { sum };
    let answer = |query: &Query| {
        if formula.of == Role::Partner {
            assert_eq!((query.addend, query.symbol, query.role), (0, PARTNER, Role::Address));
            return Some(of);
        }
        assert_eq!((query.addend, query.symbol), (addend, 5));
        [(formula.of, of), (formula.minus, minus)]
            .iter()
            .find(|(role, _)| *role == query.role)
            .map(|(_, answer)| *answer)
    };
    let record =
        Record { offset: case.offset as u64, symbol: 5, r#type: kind.number, addend: case.addend };
    let mut after = case.before;
    let mut section =
        SectionMut { bytes: &mut after, address: case.address, big_endian: case.big_endian };
    let result = apply_row::<A>(&record, &mut section, &answer);
    let value = match (formula.page, formula.contents) {
        (Page::Upper { back }, _) => upper(target, minus, back.into()),
        (_, Contents::Ignored) => target,
        _ => case.target,
    };
    Outcome { result, after, value: modulo::<A>(kind, value) }
}

/// The distance of 64 bits of which an instruction `back` bytes before P begins the pages, in the words of the LoongArch ABI.
fn upper(target: u64, place: u64, back: u64) -> u64 {
    let mut distance = (target & !0xfff).wrapping_sub(place.wrapping_sub(back) & !0xfff);
    if target & 0x800 != 0 {
        distance = distance.wrapping_add(0x1000).wrapping_sub(1 << 32);
    }
    if distance & 1 << 31 != 0 {
        distance = distance.wrapping_add(1 << 32);
    }
    distance
}

/// Whether the check allows the value, read as the ABI reads it.
fn allowed(check: Check, value: u64) -> bool {
    let signed = i128::from(value as i64);
    let unsigned = i128::from(value);
    match check {
        Check::Any => true,
        Check::Signed(bits) => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&signed),
        Check::Unsigned(bits) => (0..1i128 << bits).contains(&unsigned),
        Check::Either(bits) => {
            allowed(Check::Signed(bits), value) || allowed(Check::Unsigned(bits), value)
        }
        Check::SignedRounded { bits, low } => {
            let rounded = signed + (1 << (low - 1));
            (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&rounded)
        }
        check => panic!("no kind here has {check:?}"),
    }
}

fn aligned(field: &Field, value: u64) -> bool {
    field.parts.iter().all(|bits| !bits.exact || value.is_multiple_of(1 << bits.shift))
}

/// The word with its parts taken from the value, bit by bit.
fn filled(field: &Field, mut word: u128, value: u64) -> u128 {
    for bits in field.parts {
        let half = if bits.rounded { 1 << (bits.shift - 1) } else { 0 };
        let value = value.wrapping_add(half);
        for bit in 0..bits.width {
            let one = u128::from(value >> (bits.shift + bit) & 1);
            word = word & !(1 << (bits.at + bit)) | one << (bits.at + bit);
        }
    }
    word
}

/// The bits of the parts.
fn mask(field: &Field) -> u128 {
    field.parts.iter().fold(0, |all, bits| all | ((1 << bits.width) - 1) << bits.at)
}

/// What of a value a field keeps, its highest bit the sign.
fn kept(field: &Field, value: u64) -> i64 {
    let mask = |bits: &elf_core::Bits| (u64::MAX >> (64 - bits.width)) << bits.shift;
    let mask = field.parts.iter().fold(0, |all, bits| all | mask(bits));
    let unused = mask.leading_zeros();
    ((value & mask) << unused) as i64 >> unused
}

/// What must hold of one application; encoders may also change the bits `opcode`.
fn holds<A: Arch>(case: &Case, opcode: u128) {
    let kind = &A::KINDS[case.row];
    let field = &kind.field;
    if case.addend.is_none() && field.addend(word(field, case, &case.before)).is_none() {
        return refuses_word::<A>(case);
    }
    let Outcome { result, after, value } = run::<A>(case);
    if kind.stage != Stage::Link {
        assert!(result.is_err_and(|error| error.name == Some(kind.name)), "refused by name");
        return assert_eq!(after, case.before);
    }
    let place = case.offset..case.offset + field.bytes();
    assert_eq!(after[..place.start], case.before[..place.start], "bytes before the place");
    assert_eq!(after[place.end..], case.before[place.end..], "bytes behind the place");
    let (old, new) = (word(field, case, &case.before), word(field, case, &after));
    let check = check::<A>(kind);
    if !allowed(check, value) {
        assert_eq!(
            result.map_err(|error| error.kind),
            Err(ApplyErrorKind::Overflow { value, check })
        );
        assert_eq!(old, new, "an error leaves memory as it was");
    } else if !aligned(field, value) {
        assert!(
            matches!(result, Err(ApplyError { kind: ApplyErrorKind::Misaligned { .. }, .. })),
            "{result:?}"
        );
        assert_eq!(old, new, "an error leaves memory as it was");
    } else if field.encode.is_some() || kind.branch.is_some() {
        let is_refused = matches!(
            result,
            Err(ApplyError {
                kind: ApplyErrorKind::Unencodable { .. } | ApplyErrorKind::Sequence,
                ..
            })
        );
        // only Arm has encoders that look at the instruction, and values with holes
        if is_refused && A::MACHINE == EM_ARM {
            return assert_eq!(old, new, "an error leaves memory as it was");
        }
        assert_eq!(result, Ok(()));
        assert_eq!((old ^ new) & !(mask(field) | opcode), 0, "bits outside the field");
    } else {
        assert_eq!(result, Ok(()));
        assert_eq!(new, filled(field, old, value), "each bit of the word");
        assert!(
            is_rounded(field)
                || field.decode.is_some()
                || field.addend(new)
                    == Some(if field.bytes() == 0 { 0 } else { kept(field, value) }),
            "the addend a REL would read"
        );
    }
}

/// A place that holds no instruction of the kind's has no addend.
fn refuses_word<A: Arch>(case: &Case) {
    let kind = &A::KINDS[case.row];
    let mut after = case.before;
    let mut section =
        SectionMut { bytes: &mut after, address: case.address, big_endian: case.big_endian };
    let offset = case.offset as u64;
    let record = Record { offset, symbol: 5, r#type: kind.number, addend: None };
    let result = apply::<A>(&record, &mut section, &|_: &Query| Some(0));
    assert_eq!(result.map_err(|error| error.kind), Err(ApplyErrorKind::Sequence));
    assert_eq!(after, case.before);
}

/// Values of all widths and signs, about the limits, mostly aligned.
fn target(kind: &'static Kind) -> impl Strategy<Value = u64> {
    let (least, most) = kind.check.limits();
    let near = (prop_oneof![Just(least), Just(most)], -40i128..40)
        .prop_map(|(limit, by)| (limit + by) as u64);
    let wide = (any::<u64>(), 0u32..64, any::<bool>())
        .prop_map(|(value, by, not)| (value >> by) ^ if not { u64::MAX } else { 0 });
    (prop_oneof![near, wide], 0u32..5).prop_map(|(value, low)| value >> low << low)
}

fn cases(kinds: &'static [Kind]) -> impl Strategy<Value = Case> {
    let row = (0..kinds.len())
        .prop_filter("a word", |row| is_word(&kinds[*row]))
        .prop_flat_map(|row| (Just(row), target(&kinds[row])));
    let around = (0u64..0x1000, any::<u64>(), any::<Option<i64>>(), any::<u64>(), 0..SIZE - 16);
    (row, around, any::<bool>(), any::<[[u8; 16]; 3]>()).prop_map(
        |((row, target), around, big_endian, before)| {
            let (below_page, minus, addend, address, offset) = around;
            let before = core::array::from_fn(|at| before[at / 16][at % 16]);
            Case { row, target, below_page, minus, addend, address, offset, big_endian, before }
        },
    )
}

/// Random applications of every row but those of numbers of variable length and of padding. Encoders may also change the bits
/// `opcode` of a kind.
pub(crate) fn applications<A: Arch>(opcode: &dyn Fn(&Kind) -> u128) {
    let config = Config {
        cases: 200 * A::KINDS.len() as u32,
        failure_persistence: None,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&cases(A::KINDS), |case| {
        holds::<A>(&case, opcode(&A::KINDS[case.row]));
        Ok(())
    });
    assert!(run.is_ok(), "{}", run.map_or_else(|error| error.to_string(), |()| String::new()));
}

/// For every row with a check: the last values inside pass, the first outside fail.
pub(crate) fn limits<A: Arch>() {
    let checked = |(_, kind): &(usize, &Kind)| check::<A>(kind) != Check::Any;
    for (row, kind) in A::KINDS.iter().enumerate().filter(checked) {
        let step = match kind.value.page {
            Page::Both | Page::Nearest => 0x1000,
            // branches from and to wherever any instruction may be
            _ if kind.branch.is_some() && kind.field.bytes() == 4 => 4,
            _ => kind
                .field
                .parts
                .iter()
                .filter(|bits| bits.exact)
                .map(|bits| 1 << bits.shift)
                .max()
                .unwrap_or(1),
        };
        let (least, most) = kind.check.limits();
        let (first, last) = (least, most + 1 - step);
        for (value, passes) in
            [(first - step, false), (first, true), (last, true), (last + step, false)]
        {
            let case = Case {
                row,
                target: value as u64,
                below_page: 0xfff,
                minus: 0x7654_3000,
                addend: Some(-3),
                address: 0x1234_0000,
                offset: 8,
                big_endian: false,
                before: [0; SIZE],
            };
            assert_eq!(run::<A>(&case).result.is_ok(), passes, "{} {value:#x}", kind.name);
        }
    }
}

/// Where all answers are 0, an addend read from the place is written back as it was, if at all.
pub(crate) fn addends<A: Arch>() {
    let words = any::<[u8; 16]>();
    let config = Config {
        cases: 200 * A::KINDS.len() as u32,
        failure_persistence: None,
        ..Config::default()
    };
    let run = TestRunner::new(config).run(
        &(0..A::KINDS.len(), words, any::<bool>()),
        |(row, before, big_endian)| {
            let kind = &A::KINDS[row];
            let mut after = before;
            let mut section = SectionMut { bytes: &mut after, address: 0, big_endian };
            let record = Record { offset: 0, symbol: 0, r#type: kind.number, addend: None };
            let result = apply::<A>(&record, &mut section, &|_: &Query| Some(0));
            let is_wider = kind.field.bytes() as u64 > A::ADDRESS_SIZE && !is_paired(kind);
            let is_coded = kind.field.encode.is_some() || kind.field.decode.is_some();
            let is_branch = kind.branch.is_some();
            let is_other = is_coded || is_branch || is_rounded(&kind.field) || is_wider;
            // a sum with a minus may change the sign, an encoder the opcode
            prop_assert!(is_other || before == after, "{}: {result:?}", kind.name);
            Ok(())
        },
    );
    assert!(run.is_ok(), "{}", run.map_or_else(|error| error.to_string(), |()| String::new()));
}

/// Numbers are found; places that are not wholly inside, and answers that are missing, are errors that change nothing.
pub(crate) fn refusals<A: Arch>() {
    for kind in A::KINDS {
        assert!(find(A::KINDS, kind.number).is_some_and(|found| found.name == kind.name));
        let fails = |offset: u64, answer: Option<u64>| {
            let before = [0x5a; SIZE];
            let mut bytes = before;
            let mut section = SectionMut { bytes: &mut bytes, address: 0, big_endian: false };
            let record = Record { offset, symbol: 1, r#type: kind.number, addend: Some(0) };
            let result = apply_row::<A>(&record, &mut section, &|_: &Query| answer);
            assert!(result.is_ok() || bytes == before);
            result.err().map(|error| error.kind)
        };
        if kind.stage != Stage::Link || kind.field.bytes() == 0 || kind.field.is_uleb128 {
            continue;
        }
        for offset in
            [SIZE as u64 + 1 - kind.field.bytes() as u64, SIZE as u64, SIZE as u64 + 1, u64::MAX]
        {
            assert_eq!(
                fails(offset, Some(0)),
                Some(ApplyErrorKind::OutsideSection { size: SIZE as u64 }),
                "{}",
                kind.name
            );
        }
        assert!(matches!(fails(0, None), Some(ApplyErrorKind::Unresolved(_))), "{}", kind.name);
    }
    assert!(find(A::KINDS, u32::MAX).is_none());
}
