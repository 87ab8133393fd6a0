//! Code that becomes shorter, at the limits of each form.
#![cfg(test)]

use elf_core::names::EF_RISCV_RVC;
use elf_core::{Addresses, Decision, Facts, Query, Record, Rewrite, Site, decide, find};
use reloc_riscv::riscv::*;

/// What is known of every symbol.
#[derive(Clone, Copy, Debug, Default)]
struct Known(Addresses);

impl Facts for Known {
    fn addresses(&self, _: &Record) -> Option<Addresses> {
        Some(self.0)
    }

    fn may_go(&self, _: &Record) -> bool {
        true
    }

    fn is_local_exec(&self, _: &Record) -> bool {
        true
    }

    fn label(&self, _: &Record) -> Option<u64> {
        Some(0)
    }
}

fn known(change: impl FnOnce(&mut Addresses)) -> Known {
    let mut known = Known::default();
    known.0.address_size = 8;
    change(&mut known.0);
    known
}

/// What stands for the code of the record at its end, of those that all may be relaxed.
fn rewritten(code: &[u32], records: &[(u64, u32, i64)], known: Known) -> Option<Rewrite> {
    let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let record =
        |offset, r#type, addend| Record { offset, symbol: 1, r#type, addend: Some(addend) };
    let records: Vec<Record> = records
        .iter()
        .flat_map(|&(at, r#type, addend)| {
            [record(at, r#type, addend), record(at, R_RISCV_RELAX, 0)]
        })
        .collect();
    let index = records.len() - 2;
    let site = Site::new(&bytes, &records, index)?;
    match decide(find(KINDS, records[index].r#type)?, &site, &known).ok()? {
        Decision::Rewrite(rewrite) => Some(rewrite),
        _ => None,
    }
}

/// Code, its size, what goes, and the relocation of what stays.
fn parts(rewrite: Option<Rewrite>) -> Option<(u64, usize, u64, Option<u32>)> {
    let of =
        |it: Rewrite| (it.code, it.size, it.deletes, it.records[0].map(|record| record.r#type));
    rewrite.map(of)
}

/// `auipc ra; jalr ra`, and the same that links nothing, by `t1`.
const CALL: [u32; 2] = [0x0000_0097, 0x0000_80e7];
const TAIL: [u32; 2] = [0x0000_0317, 0x0003_0067];
const CALLS: &[(u64, u32, i64)] = &[(0, R_RISCV_CALL_PLT, 0)];

#[test]
fn calls() {
    let call = |code: &[u32], distance, flags, address_size| {
        let known = known(|it| {
            (it.distance, it.flags, it.address_size) = (Some(distance), flags, address_size);
        });
        parts(rewritten(code, CALLS, known))
    };
    let jal = |code| Some((code, 4, 4, Some(R_RISCV_JAL)));
    let compressed = |code| Some((code, 2, 6, Some(R_RISCV_RVC_JUMP)));
    for distance in [0xf_fffe, -0x10_0000] {
        assert_eq!(call(&CALL, distance, EF_RISCV_RVC, 8), jal(0xef), "{distance:#x}");
    }
    for distance in [0x10_0000, -0x10_0001, i64::MAX, i64::MIN] {
        assert_eq!(call(&CALL, distance, EF_RISCV_RVC, 8), None, "{distance:#x}");
    }
    for distance in [0x7fe, -0x800] {
        assert_eq!(call(&TAIL, distance, EF_RISCV_RVC, 8), compressed(0xa001));
        assert_eq!(call(&TAIL, distance, 0, 8), jal(0x6f));
        // c.jal is RV32's
        assert_eq!(call(&CALL, distance, EF_RISCV_RVC, 4), compressed(0x2001));
        assert_eq!(call(&CALL, distance, EF_RISCV_RVC, 8), jal(0xef));
    }
    for distance in [0x800, -0x802] {
        assert_eq!(call(&TAIL, distance, EF_RISCV_RVC, 8), jal(0x6f));
    }
    assert_eq!(call(&[0x0000_0097, 0x0000_8067], 0, 0, 8), jal(0x6f), "it links nothing");
    assert_eq!(call(&[0x0000_0037, 0x0000_80e7], 0, 0, 8), None, "lui");
    assert_eq!(call(&[0x0000_0097], 0, 0, 8), None, "the section ends");
    assert_eq!(parts(rewritten(&CALL, CALLS, known(|_| {}))), None, "nothing is known");
}

#[test]
fn nothing_without_the_mark() {
    let bytes: Vec<u8> = CALL.iter().flat_map(|word| word.to_le_bytes()).collect();
    let record = |offset, r#type| Record { offset, symbol: 1, r#type, addend: Some(0) };
    // the mark is another place's
    let records = [record(0, R_RISCV_CALL), record(4, R_RISCV_RELAX)];
    let site = Site::new(&bytes, &records, 0).unwrap();
    let known = known(|it| it.distance = Some(16));
    let decided = decide(find(KINDS, R_RISCV_CALL).unwrap(), &site, &known);
    assert!(matches!(decided, Ok(Decision::Apply)));
}

/// Each form asks for the mark, the upper parts for their instruction as well; a lower part that is found by its label for both marks.
#[test]
fn marks_and_instructions() {
    let known = known(|it| (it.from_global_pointer, it.size) = (Some(16), 4));
    let is_rewritten = |code: &[u32], records: &[(u64, u32)]| {
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let record = |&(offset, r#type)| Record { offset, symbol: 1, r#type, addend: Some(0) };
        let records: Vec<Record> = records.iter().map(record).collect();
        let index = records.iter().rposition(|it| it.r#type != R_RISCV_RELAX).unwrap();
        let site = Site::new(&bytes, &records, index).unwrap();
        let decided = decide(find(KINDS, records[index].r#type).unwrap(), &site, &known).unwrap();
        matches!(decided, Decision::Rewrite(_))
    };
    let (mark, elsewhere) = ((0, R_RISCV_RELAX), (2, R_RISCV_RELAX));
    for (kind, code, other) in
        [(R_RISCV_HI20, LUI_A0, AUIPC_A0), (R_RISCV_PCREL_HI20, AUIPC_A0, LUI_A0)]
    {
        assert!(is_rewritten(&[code], &[(0, kind), mark]));
        assert!(!is_rewritten(&[code], &[(0, kind), elsewhere]));
        assert!(!is_rewritten(&[code], &[(0, kind)]));
        assert!(!is_rewritten(&[other], &[(0, kind), mark]));
    }
    let code = [AUIPC_A0, LW_A1_A0];
    let (high, low) = ((0, R_RISCV_PCREL_HI20), (4, R_RISCV_PCREL_LO12_I));
    let low_mark = (4, R_RISCV_RELAX);
    assert!(is_rewritten(&code, &[high, mark, low, low_mark]));
    assert!(!is_rewritten(&code, &[high, low, low_mark]));
    assert!(!is_rewritten(&code, &[high, mark, low]));
    assert!(!is_rewritten(&code, &[high, low]));
}

const LUI_A0: u32 = 0x0000_0537;
const LUI_SP: u32 = 0x0000_0137;
const AUIPC_A0: u32 = 0x0000_0517;
const LW_A1_A0: u32 = 0x0005_2583;
const SW_A1_A0: u32 = 0x00b5_2023;

#[test]
fn addresses_near_a_register() {
    let gone = Some((0, 0, 4, None));
    let high = |known| parts(rewritten(&[LUI_A0], &[(0, R_RISCV_HI20, 0)], known));
    let load = |known| parts(rewritten(&[LW_A1_A0], &[(0, R_RISCV_LO12_I, 0)], known));
    let store = |known| parts(rewritten(&[SW_A1_A0], &[(0, R_RISCV_LO12_S, 0)], known));
    let code = |code: u32| Some((u64::from(code), 4, 0, None));
    for (value, i, s) in
        [(0x7ffi64, 0x7ff0_0000u32, 0x7e00_0f80u32), (-0x800, 0x8000_0000, 0x8000_0000), (0, 0, 0)]
    {
        let gp = known(|it| (it.from_global_pointer, it.size) = (Some(value), 1));
        assert_eq!((high(gp), load(gp)), (gone, code(0x0001_a583 | i)), "{value:#x}");
        assert_eq!(store(gp), code(0x00b1_a023 | s), "{value:#x}");
        let zero = known(|it| it.absolute = Some(value));
        assert_eq!((high(zero), load(zero)), (gone, code(0x0000_2583 | i)), "{value:#x}");
    }
    for value in [0x800, -0x801] {
        let gp = known(|it| it.from_global_pointer = Some(value));
        assert_eq!((high(gp), load(gp), store(gp)), (None, None, None));
    }
    // all of the symbol must be in reach, so that no other access to it counts from the register that is gone
    let known = known(|it| (it.from_global_pointer, it.size) = (Some(0x7f8), 16));
    assert_eq!(high(known), None);
    assert!(load(known).is_some());
    // a label: the code may go on to bytes that are not in reach
    let label = crate::known(|it| it.from_global_pointer = Some(0));
    assert_eq!(high(label), None);
    assert!(load(label).is_some());
}

#[test]
fn small_values() {
    let high = |code, value, flags| {
        let known = known(|it| (it.absolute, it.flags) = (Some(value), flags));
        parts(rewritten(&[code], &[(0, R_RISCV_HI20, 0)], known))
    };
    let c_lui = Some((0x6501, 2, 2, Some(R_RISCV_RVC_LUI)));
    for (value, expected) in [
        (0x800, c_lui),
        (0x1_e7ff, c_lui),
        (0x1_e800, None),
        (-0x801, None),
        (-0x2000, c_lui),
        (-0x2_0800, c_lui),
        (-0x2_0801, None),
    ] {
        assert_eq!(high(LUI_A0, value, EF_RISCV_RVC), expected, "{value:#x}");
    }
    assert_eq!(high(LUI_SP, 0x1000, EF_RISCV_RVC), None);
    assert_eq!(high(LUI_A0, 0x1000, 0), None);
}

#[test]
fn distances_that_become_addresses_from_gp() {
    let records = [(0, R_RISCV_PCREL_HI20, 4), (4, R_RISCV_PCREL_LO12_I, 0)];
    let near = known(|it| it.from_global_pointer = Some(0x7fb));
    let high = rewritten(&[AUIPC_A0, LW_A1_A0], &records[..1], near);
    assert_eq!(parts(high), Some((0, 0, 4, None)));
    let low = rewritten(&[AUIPC_A0, LW_A1_A0], &records, near);
    assert_eq!(parts(low), Some((0x7ff1_a583, 4, 0, None)), "the addend is the upper part's");
    let far = known(|it| it.from_global_pointer = Some(0x7fc));
    assert_eq!(parts(rewritten(&[AUIPC_A0, LW_A1_A0], &records, far)), None);
}

#[test]
fn variables_near_the_thread_pointer() {
    let lui = |known| parts(rewritten(&[LUI_A0], &[(0, R_RISCV_TPREL_HI20, 0)], known));
    let add = |known| parts(rewritten(&[0x0045_0533], &[(0, R_RISCV_TPREL_ADD, 0)], known));
    let load = |known| parts(rewritten(&[LW_A1_A0], &[(0, R_RISCV_TPREL_LO12_I, 0)], known));
    let gone = Some((0, 0, 4, None));
    let near = known(|it| it.from_thread_pointer = Some(0x7ff));
    assert_eq!((lui(near), add(near)), (gone, gone));
    assert_eq!(load(near), Some((0x7ff2_2583, 4, 0, None)));
    let far = known(|it| it.from_thread_pointer = Some(0x800));
    assert_eq!((lui(far), add(far), load(far)), (None, None, None));
}

#[test]
fn closures_know_nothing() {
    let nobody = |_: &Query| None;
    assert_eq!(
        Facts::addresses(&nobody, &Record { offset: 0, symbol: 0, r#type: 0, addend: None }),
        None
    );
}

/// Whether the instruction of the last of these records goes as the descriptor becomes local exec; the upper part's record is marked, or not.
fn goes(r#type: u32, addend: i64, is_marked: bool, known: &impl Facts) -> bool {
    let record =
        |offset, r#type, addend| Record { offset, symbol: 1, r#type, addend: Some(addend) };
    let mut records = vec![record(0, R_RISCV_TLSDESC_HI20, addend)];
    if is_marked {
        records.push(record(0, R_RISCV_RELAX, 0));
    }
    if r#type != R_RISCV_TLSDESC_HI20 {
        records.push(record(4, r#type, 0));
    }
    let index = if r#type == R_RISCV_TLSDESC_HI20 { 0 } else { records.len() - 1 };
    let site = Site::new(&[0; 8], &records, index).unwrap();
    let kind = find(KINDS, r#type).unwrap();
    match decide(kind, &site, known).unwrap() {
        Decision::Transition { goes, .. } => {
            assert!(!goes || kind.goes == 4);
            goes
        }
        decision => panic!("{decision:?}"),
    }
}

#[test]
fn descriptors() {
    let offset = |offset| known(|it| it.from_thread_pointer = Some(offset));
    let parts = [R_RISCV_TLSDESC_HI20, R_RISCV_TLSDESC_LOAD_LO12];
    for (to, is_near) in [(0, true), (0x7ff, true), (0x800, false), (-0x800, true), (-0x801, false)]
    {
        for addend in [0, 0x123] {
            let to = offset(to - addend);
            for r#type in parts {
                assert!(goes(r#type, addend, true, &to));
                assert!(!goes(r#type, addend, false, &to));
            }
            assert_eq!(goes(R_RISCV_TLSDESC_ADD_LO12, addend, true, &to), is_near, "{to:?}");
            assert!(!goes(R_RISCV_TLSDESC_ADD_LO12, addend, false, &to));
            assert!(!goes(R_RISCV_TLSDESC_CALL, addend, true, &to));
        }
    }
    // its offset is not known yet
    let unknown = known(|_| ());
    for r#type in [parts[0], parts[1], R_RISCV_TLSDESC_ADD_LO12] {
        assert!(!goes(r#type, 0, true, &unknown));
    }
    assert!(!goes(R_RISCV_TLSDESC_ADD_LO12, i64::MAX, true, &offset(1)));
}

/// Nothing may go.
#[derive(Debug)]
struct Fixed(Known);

impl Facts for Fixed {
    fn addresses(&self, record: &Record) -> Option<Addresses> {
        self.0.addresses(record)
    }

    fn is_local_exec(&self, _: &Record) -> bool {
        true
    }

    fn label(&self, _: &Record) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn nothing_goes_where_it_must_stay() {
    let near = Fixed(known(|it| it.from_thread_pointer = Some(0)));
    for r#type in [R_RISCV_TLSDESC_HI20, R_RISCV_TLSDESC_LOAD_LO12, R_RISCV_TLSDESC_ADD_LO12] {
        assert!(!goes(r#type, 0, true, &near));
    }
    let bytes: Vec<u8> = CALL.iter().flat_map(|word| word.to_le_bytes()).collect();
    let call = Record { offset: 0, symbol: 1, r#type: R_RISCV_CALL_PLT, addend: Some(0) };
    let records = [call, Record { r#type: R_RISCV_RELAX, ..call }];
    let site = Site::new(&bytes, &records, 0).unwrap();
    let kind = find(KINDS, R_RISCV_CALL_PLT).unwrap();
    let here = Fixed(known(|it| it.distance = Some(0)));
    assert!(matches!(decide(kind, &site, &here), Ok(Decision::Apply)));
    assert!(matches!(decide(kind, &site, &here.0), Ok(Decision::Rewrite(_))));
}
