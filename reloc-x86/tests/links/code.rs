//! Compares what becomes of code that uses thread-local variables with what linkers left of it, as `transitions.py` wrote it down.

use elf_core::tls::TpOffsets;
use elf_core::{Kind, Special};

/// How many pieces of code become what GNU ld makes of them, what lld alone does, what lld does where GNU ld refuses, and are refused.
pub(crate) type Counts = (usize, usize, usize, usize);

/// Asks of each piece in `text`, whose records are of `kinds`; `offsets` are those that the linkers had of the variable of this name, without an
/// addend.
pub(crate) fn compare(
    text: &str,
    kinds: &[&[Kind]],
    offsets: impl Fn(&str) -> TpOffsets,
) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (row, source) = line.split_once(" # ").unwrap();
        let [before, ld, lld, records @ ..] = &*row.split(' ').collect::<Vec<_>>() else {
            panic!("{line}")
        };
        let variable = if source.contains(":y") { "y" } else { "x" };
        match rewritten(&bytes(before), records, kinds, offsets(variable)) {
            None => {
                assert!(*ld == "-" || *ld == "?" && *lld == "-", "{line}");
                counts.3 += 1;
            }
            Some(code) if !matches!(*ld, "-" | "?") && code == bytes(ld) => counts.0 += 1,
            Some(code) => {
                assert!(*lld != "-" && code == bytes(lld), "{line}: {code:x?}");
                *if *ld == "-" { &mut counts.2 } else { &mut counts.1 } += 1;
            }
        }
    }
    counts
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|it| it.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The code when all its records that have a transition have made it; `None` if one does not.
fn rewritten(
    before: &[u8],
    records: &[&str],
    kinds: &[&[Kind]],
    offsets: TpOffsets,
) -> Option<Vec<u8>> {
    const AROUND: [u8; 4] = [0x90; 4];
    // what stands around it is left alone
    let mut code = [&AROUND, before, &AROUND].concat();
    let parts = |record: &str| {
        let mut parts = record.split(':').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        let (name, place, addend) = (next(), next(), next());
        (name, place.parse::<usize>().unwrap(), addend.parse::<i64>().unwrap())
    };
    for (index, record) in records.iter().enumerate() {
        let (name, place, addend) = parts(record);
        let kind = kinds.iter().copied().flatten().find(|kind| kind.name == name).unwrap();
        let Special::Transition(transition) = kind.special else {
            assert!(index > 0, "{name} has no transition");
            continue;
        };
        let variable = offsets.variable + addend;
        let offsets = TpOffsets::new(variable, offsets.block).counting(addend);
        let unchanged = code.clone();
        let Some(distance) = (transition.rewrite)(&mut code, place + AROUND.len(), &offsets) else {
            assert_eq!(code, unchanged, "{name}");
            return None;
        };
        assert_eq!(transition.takes_call, distance > 0, "{name}");
        if transition.takes_call {
            let (_, call, _) = parts(records[index + 1]);
            assert_eq!(distance, (call - place) as u64, "{name}");
        }
    }
    let inside = code.strip_prefix(&AROUND)?.strip_suffix(&AROUND);
    assert!(inside.is_some(), "{before:x?}: {code:x?}");
    inside.map(<[u8]>::to_vec)
}
