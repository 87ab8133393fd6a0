//! Every row of the table, and the ends of common ranges by hand.

#[cfg(test)]
#[path = "../../reloc-x86/tests/table/mod.rs"]
mod table;

use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, Query, Record, Role, SectionMut, Slot, StubRelocation,
    apply, find,
};
use reloc_aarch64::Aarch64;

#[test]
fn applications() {
    table::applications::<Aarch64>(&|_| 1 << 30); // MOVN or MOVZ
}

#[test]
fn limits() {
    table::limits::<Aarch64>();
}

#[test]
fn addends() {
    table::addends::<Aarch64>();
}

#[test]
fn refusals() {
    table::refusals::<Aarch64>();
}

/// `instruction` at `place` after a relocation with this answer to any question.
fn word(r#type: u32, instruction: u32, place: u64, answer: u64) -> Result<u32, ApplyErrorKind> {
    let mut bytes = instruction.to_le_bytes();
    let mut section = SectionMut { bytes: &mut bytes, address: place, big_endian: false };
    let record = Record { offset: 0, symbol: 1, r#type, addend: Some(0) };
    apply::<Aarch64>(&record, &mut section, &|_: &Query| Some(answer))
        .map_err(|error: ApplyError| error.kind)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Stubs stand in runs: a branch has one within its reach only if they are told how far that is.
#[test]
fn stubs_are_told_how_far_branches_go_that_need_them() {
    for r#type in [282, 283] {
        let kind = find(Aarch64::KINDS, r#type).expect("a branch");
        let Check::Signed(bits) = kind.check else { panic!("{kind:?}") };
        for stub in Aarch64::STUBS {
            assert_eq!(stub.reach, Some(1 << (bits - 1)), "{}", kind.name);
        }
    }
}

#[test]
fn branches_end_where_the_abi_says() {
    let place = 0x1_0000_0000;
    for (r#type, instruction, reach, most, least) in [
        (282, 0x1400_0000, 1 << 27, 0x15ff_ffff, 0x1600_0000), // b
        (283, 0x9400_0000, 1 << 27, 0x95ff_ffff, 0x9600_0000), // bl
        (280, 0x5400_0001, 1 << 20, 0x547f_ffe1, 0x5480_0001), // b.ne
        (279, 0x3600_0003, 1 << 15, 0x3603_ffe3, 0x3604_0003u32), // tbz w3, #0
    ] {
        assert_eq!(word(r#type, instruction, place, place + reach - 4), Ok(most));
        assert_eq!(word(r#type, instruction, place, place - reach), Ok(least));
        assert!(matches!(
            word(r#type, instruction, place, place + reach),
            Err(ApplyErrorKind::Overflow { .. })
        ));
        assert!(matches!(
            word(r#type, instruction, place, place - reach - 4),
            Err(ApplyErrorKind::Overflow { .. })
        ));
        assert!(matches!(
            word(r#type, instruction, place, place + 2),
            Err(ApplyErrorKind::Misaligned { alignment: 4, .. })
        ));
    }
}

#[test]
fn pages_count_from_pages() {
    let (adrp, place) = (0x9000_0005, 0x1_2345_6ffc);
    assert_eq!(word(275, adrp, place, 0x1_2345_6fff), Ok(0x9000_0005));
    assert_eq!(word(275, adrp, place, 0x1_2345_7000), Ok(0xb000_0005));
    assert_eq!(word(275, adrp, place, 0x1_2345_5fff), Ok(0xf0ff_ffe5));
    assert_eq!(word(275, adrp, place, 0x2_2345_5fff), Ok(0xf07f_ffe5));
    assert!(word(275, adrp, place, 0x2_2345_6000).is_err());
    assert_eq!(word(276, adrp, place, 0x2_2345_6000), Ok(0x9080_0005)); // NC
}

#[test]
fn signed_moves_follow_the_sign() {
    let (movz, movn, movk) = (0xd280_0001, 0x9280_0001, 0xf280_0001);
    for instruction in [movz, movn] {
        assert_eq!(word(270, instruction, 0, 0xffff), Ok(0xd29f_ffe1)); // movz x1, #0xffff
        assert_eq!(word(270, instruction, 0, 0), Ok(0xd280_0001)); // movz x1, #0
        assert_eq!(word(270, instruction, 0, u64::MAX), Ok(0x9280_0001)); // movn x1, #0
        assert_eq!(word(270, instruction, 0, -0x1_0000i64 as u64), Ok(0x929f_ffe1)); // movn x1, #0xffff
        assert!(word(270, instruction, 0, 0x1_0000).is_err());
        assert!(word(270, instruction, 0, -0x1_0001i64 as u64).is_err());
    }
    assert_eq!(word(287, movk, 4, 2), Ok(0xf29f_ffc1)); // a MOVK stays one: movk x1, #0xfffe
}

#[test]
fn scaled_loads_want_multiples() {
    for (r#type, scale) in [(278, 1), (284, 2), (285, 4), (286, 8), (299, 16), (312, 8), (563, 8)] {
        let imm12 = u64::from(0xfff_u32) & !(scale - 1);
        assert_eq!(
            word(r#type, 0xf940_0000, 0, 0x1_2345_6000 | imm12),
            Ok(0xf940_0000 | ((imm12 / scale) << 10) as u32)
        );
        let odd = word(r#type, 0xf940_0000, 0, 0x1_2345_6001);
        assert_eq!(odd.is_err(), scale > 1, "{type}");
    }
}

#[test]
fn big_endian_files_have_little_endian_instructions() {
    for (r#type, before, after) in
        [(283, [0, 0, 0, 0x94], [4, 0, 0, 0x94]), (258, [0; 4], [0, 0, 0, 0x10])]
    {
        let mut bytes = before;
        let mut section = SectionMut { bytes: &mut bytes, address: 0, big_endian: true };
        let record = Record { offset: 0, symbol: 1, r#type, addend: Some(0) };
        assert_eq!(apply::<Aarch64>(&record, &mut section, &|_: &Query| Some(0x10)), Ok(()));
        assert_eq!(bytes, after);
    }
}

#[test]
fn stub_jumps_through_the_got_entry() {
    let [stub] = Aarch64::STUBS else { panic!("one stub") };
    let mut bytes = stub.code.to_vec();
    for relocation in stub.relocations {
        let StubRelocation { offset, r#type, addend, .. } = *relocation;
        let mut section = SectionMut { bytes: &mut bytes, address: 0x40_1000, big_endian: true };
        let record = Record { offset, symbol: 1, r#type, addend: Some(addend) };
        let entry = |query: &Query| (query.role == Role::Got(Slot::Address)).then_some(0x40_3018);
        assert_eq!(apply::<Aarch64>(&record, &mut section, &entry), Ok(()));
    }
    let words: Vec<u32> =
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // adrp x16, 0x403000; ldr x17, [x16, #0x18]; br x17; nop
    assert_eq!(words, [0xd000_0010, 0xf940_0e11, 0xd61f_0220, 0xd503_201f]);
}

#[test]
fn other_abis_are_not_taken_for_this_one() {
    assert!(find(Aarch64::KINDS, 1).is_none(), "ILP32's R_AARCH64_P32_ABS32");
    assert!(word(580, 0, 0, 0).is_err(), "pointer authentication");
}

/// AAELF64, "Weak references": of what counts from the place, a weak symbol that nobody defines is the place itself, for branches the next
/// instruction; of all else it is 0.
#[test]
fn weak_symbols_that_nobody_defines() {
    use reloc_aarch64::aarch64::*;
    let address = |number: u32, addend: i64| {
        let kind = find(Aarch64::KINDS, number).unwrap();
        Aarch64::undefined_weak(&Query {
            role: kind.value.of,
            symbol: 1,
            place: 0x1000,
            addend,
            kind,
        })
    };
    for branch in [R_AARCH64_TSTBR14, R_AARCH64_CONDBR19, R_AARCH64_JUMP26, R_AARCH64_CALL26] {
        // S + A - P is 4
        assert_eq!(
            (address(branch, 0), address(branch, 8)),
            (Some(0x1004), Some(0xffc)),
            "{branch}"
        );
    }
    for counted in [R_AARCH64_PREL64, R_AARCH64_PREL32, R_AARCH64_LD_PREL_LO19, R_AARCH64_PLT32] {
        assert_eq!(
            (address(counted, 0), address(counted, 8)),
            (Some(0x1000), Some(0x1000)),
            "{counted}"
        );
    }
    for absolute in [R_AARCH64_ABS64, R_AARCH64_ABS32, R_AARCH64_ADD_ABS_LO12_NC] {
        assert_eq!(address(absolute, 0), None, "{absolute}");
    }
}
