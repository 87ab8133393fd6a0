//! How far apart thunks stand in code of Arm, whose branches have several spans.
#![cfg(test)]
#![cfg(feature = "thunks")]

mod support;

use elf_core::Name;
use elf_core::names::{ELFCLASS32, EM_ARM};
use elf_layout::{Error, ErrorKind, ExternalSymbol, Options};
use reloc_arm::Arm;
use reloc_arm::arm::{R_ARM_CALL, R_ARM_THM_CALL, R_ARM_THM_JUMP19, R_ARM_THM_JUMP24};
use support::{CODE, Object, plan_for};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of a stub in Thumb code that all processors have, and of one in Arm code.
const THUMB: u64 = 20;
const ARM: u64 = 16;

/// Where thunks stand in so many sections of code of a size.
fn thunks((count, size): (u64, u64), branches: &[(u32, u64)]) -> Result<Vec<u64>, Error> {
    thunks_in(&vec![size; count as usize], branches)
}

/// Where thunks stand in sections of code of these sizes, of whose first so many branches of each kind go to as many functions of the
/// caller's. The ones behind the code are none of them.
fn thunks_in(sizes: &[u64], branches: &[(u32, u64)]) -> Result<Vec<u64>, Error> {
    let mut object = Object::new();
    (object.machine, object.class) = (EM_ARM, ELFCLASS32);
    for &size in sizes {
        object.zeros(".text", CODE, 4, size);
    }
    let kinds = branches.iter().flat_map(|&(kind, count)| (0..count).map(move |_| kind));
    for (place, kind) in (0..sizes[0]).step_by(4).zip(kinds) {
        let symbol = object.undefined(&format!("f{place}"));
        object.relocation(1, place, kind, symbol, 0);
    }
    let mut far = |_: Name<'_>| Some(ExternalSymbol::function(0x7000_0001));
    plan_for::<Arm, _>(&[object.build()], Options::default(), &mut far, |layout| {
        let layout = layout?;
        let firsts = layout.stubs().filter(|stub| stub.symbol == 1).map(|stub| stub.offset);
        let mut all: Vec<u64> = firsts.collect();
        all.sort();
        all.pop();
        Ok(all)
    })
}

/// Where thunks of a size stand, if there is one behind as many sections as a spacing has room for.
fn every(spacing: u64, (count, size): (u64, u64), thunk: u64) -> Vec<u64> {
    let between = spacing / size;
    let behind = (1..count).filter(|number| number % between == 0);
    behind.zip(0..).map(|(number, before)| number * size + before * thunk).collect()
}

/// The shortest branch says how far apart they are: three quarters of what it spans.
#[test]
fn as_near_as_the_shortest_branch_needs() {
    let code = (300, 64 * KIB);
    for (branches, spacing, thunk) in [
        (&[(R_ARM_THM_JUMP19, 1)][..], 768 * KIB, THUMB),
        (&[(R_ARM_THM_CALL, 1)], 3 * MIB, THUMB),
        (&[(R_ARM_THM_JUMP24, 1)], 12 * MIB, THUMB),
        (&[(R_ARM_CALL, 1)], 24 * MIB, ARM),
        (
            &[(R_ARM_CALL, 2), (R_ARM_THM_CALL, 1), (R_ARM_THM_JUMP24, 1)],
            3 * MIB,
            2 * (ARM + THUMB),
        ),
    ] {
        assert_eq!(thunks(code, branches), Ok(every(spacing, code, thunk)), "{branches:?}");
    }
}

/// Code of more than twenty times that has them farther apart, but not farther than the longest branch spans.
#[test]
fn farther_apart_in_more_code() {
    for (count, branch, spacing) in [
        (20, R_ARM_THM_JUMP19, 768 * KIB),
        (21, R_ARM_THM_JUMP19, 3 * MIB / 2),
        (40, R_ARM_THM_JUMP19, 3 * MIB / 2),
        (41, R_ARM_THM_JUMP19, 3 * MIB),
        (80, R_ARM_THM_CALL, 3 * MIB),
        (81, R_ARM_THM_CALL, 6 * MIB),
        (700, R_ARM_THM_CALL, 24 * MIB),
    ] {
        let code = (count * 4, MIB / 4);
        assert_eq!(thunks(code, &[(branch, 1)]), Ok(every(spacing, code, THUMB)), "{count} MiB");
    }
}

/// Thunks take an eighth of that at the most; of what the longest branch spans, they are refused beyond.
#[test]
fn farther_apart_where_they_are_large() {
    let code = (76, MIB / 4);
    for (calls, spacing) in [(8187, 768 * KIB), (8188, 3 * MIB / 2), (16380, 3 * MIB)] {
        let thunk = calls * ARM + 4 * THUMB;
        let branches = [(R_ARM_CALL, calls), (R_ARM_THM_JUMP19, 4)];
        assert_eq!(thunks(code, &branches), Ok(every(spacing, code, thunk)), "{calls}");
    }
    let most = 32 * MIB / 8 / ARM;
    let code = (30, 2 * MIB);
    let found = thunks(code, &[(R_ARM_CALL, most)]);
    assert_eq!(found, Ok(every(24 * MIB, code, most * ARM)));
    let error = thunks(code, &[(R_ARM_CALL, most + 1)]).unwrap_err();
    assert_eq!(error, Error { object: 0, section: 0, kind: ErrorKind::TooLarge });
}

/// There are no more than 64 inside of the code, the one at its end aside.
#[test]
fn too_many_are_refused() {
    let branches = [(R_ARM_CALL, 1)];
    let code = (65, 24 * MIB);
    assert_eq!(thunks(code, &branches), Ok(every(24 * MIB, code, ARM)));
    let error = thunks((66, 24 * MIB), &branches).unwrap_err();
    assert_eq!(error, Error { object: 0, section: 66, kind: ErrorKind::TooLarge });
}

/// A section that is larger than what is between thunks has one beside it, and no other for what is empty.
#[test]
fn one_beside_a_large_section() {
    let sizes = [30 * MIB, 0, 30 * MIB];
    assert_eq!(thunks_in(&sizes, &[(R_ARM_CALL, 1)]), Ok(vec![0, 30 * MIB + ARM]));
}
