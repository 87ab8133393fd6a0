//! Code that uses thread-local variables, as linkers leave it in executables. `links/transitions.py` asked them.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use elf_core::tls::TpOffsets;
use elf_core::{Arch, Special};
use reloc_x86::{I386, X86_64};

/// Offsets from the thread pointer that the linkers had, in bytes.
const VARIABLE: i64 = -20;
const BLOCK: i64 = -64;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|it| it.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// What becomes of code, and how far behind the place the record of the call must be.
fn rewritten<A: Arch>(name: &str, place: usize, addend: i64, code: &str) -> Option<(Vec<u8>, u64)> {
    let kind = A::KINDS.iter().find(|kind| kind.name == name).unwrap();
    let Special::Transition(transition) = kind.special else { panic!("{name} has no transition") };
    let before = bytes(code);
    let offsets = TpOffsets::new(VARIABLE + addend, BLOCK).counting(addend);
    // what stands around it is left alone
    let mut all = [&[0x90; 3][..], &before, &[0x90; 3]].concat();
    let call = (transition.rewrite)(&mut all, place + 3, &offsets);
    let code = all[3..all.len() - 3].to_vec();
    assert!(
        all.starts_with(&[0x90; 3]) && all.ends_with(&[0x90; 3]),
        "{name} {before:x?}: {all:x?}"
    );
    assert_eq!(
        transition.takes_call,
        matches!(kind.name.rsplit('_').next(), Some("TLSGD" | "TLSLD" | "GD" | "LDM"))
    );
    if call.is_none() {
        assert_eq!(code, before, "{name}");
    }
    Some((code, call?))
}

/// GNU ld looks at the code, lld at most of it only: what GNU ld refuses is refused, but for calls that go where no PLT is needed any more.
#[test]
fn code_is_as_linkers_leave_it() {
    let (mut as_ld, mut as_lld, mut beyond_ld, mut refused) = (0, 0, 0, 0);
    for line in include_str!("links/transitions.txt").lines().filter(|it| !it.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().take(7).collect();
        let [name, place, addend, call, before, ld, lld] = *words else { panic!("{line}") };
        let (place, addend) = (place.parse().unwrap(), addend.parse().unwrap());
        let found = if name.starts_with("R_386_") {
            rewritten::<I386>(name, place, addend, before)
        } else {
            rewritten::<X86_64>(name, place, addend, before)
        };
        let Some((code, distance)) = found else {
            assert!(ld == "-" || ld == "?" && lld == "-", "{line}");
            refused += 1;
            continue;
        };
        assert_eq!(distance.to_string(), call, "{line}");
        if !matches!(ld, "-" | "?") && code == bytes(ld) {
            as_ld += 1;
        } else {
            assert_eq!(code, bytes(lld), "{line}");
            // APX, which GNU ld is not asked about; `lea` for an addition, where it adds
            as_lld += usize::from(ld != "-");
            beyond_ld += usize::from(ld == "-");
        }
    }
    assert_eq!((as_ld, as_lld, beyond_ld, refused), (128, 55, 17, 27));
}
