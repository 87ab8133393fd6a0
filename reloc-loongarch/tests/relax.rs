//! Pairs of instructions that become one, and descriptors whose instructions go, at the limits of each form.
#![cfg(test)]

use elf_core::{Addresses, Kind, Record, Rewrite, Site, Special, find};
use reloc_loongarch::loongarch::*;

fn at(distance: i64) -> Addresses {
    let mut to = Addresses::default();
    to.distance = Some(distance);
    to
}

fn variable(offset: i64) -> Addresses {
    let mut to = Addresses::default();
    to.from_thread_pointer = Some(offset);
    to
}

/// `pcalau12i a0, 0`; `addi.d a0, a0, 0`; `ld.d a0, a0, 0`
const PCALAU12I: u32 = 0x1a00_0004;
const ADDI: u32 = 0x02c0_0084;
const LOAD: u32 = 0x28c0_0084;

/// Two marked relocations, without the record of this index if any.
fn pair(types: [u32; 2], addends: [i64; 2], without: Option<usize>) -> Vec<Record> {
    let record =
        |offset, r#type, addend| Record { offset, symbol: 3, r#type, addend: Some(addend) };
    let mark = |offset| Record { symbol: 0, ..record(offset, R_LARCH_RELAX, 0) };
    let mut all = vec![record(0, types[0], addends[0]), mark(0)];
    all.extend([record(4, types[1], addends[1]), mark(4)]);
    without.map(|index| all.remove(index));
    all
}

/// What stands for a pair of instructions, by the row that is chosen for it.
fn of_pair(words: [u32; 2], records: &[Record], distance: i64) -> Option<Rewrite> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let site = Site::new(&bytes, records, 0).unwrap();
    let row = find(KINDS, records[0].r#type).unwrap();
    let Kind { special: Special::Alternative(alternative), goes: 8, .. } = row else {
        panic!("{}", row.name);
    };
    let chosen = alternative(&site, false).unwrap();
    let Special::Shrink(shrink) = chosen.special else { panic!("{}", chosen.name) };
    assert_eq!((chosen.number, chosen.name, chosen.goes), (row.number, row.name, 8));
    (shrink.rewrite)(&site, &records[0], &at(distance))
}

#[test]
fn entries_for_tls_get_addr() {
    for (r#type, short) in [
        (R_LARCH_TLS_GD_PC_HI20, R_LARCH_TLS_GD_PCREL20_S2),
        (R_LARCH_TLS_LD_PC_HI20, R_LARCH_TLS_LD_PCREL20_S2),
    ] {
        let bytes = [PCALAU12I, ADDI].map(u32::to_le_bytes).concat();
        let records = pair([r#type, R_LARCH_GOT_PC_LO12], [0, 0], None);
        let site = Site::new(&bytes, &records, 0).unwrap();
        let row = find(KINDS, r#type).unwrap();
        let Special::Alternative(alternative) = row.special else { panic!("{}", row.name) };
        let chosen = alternative(&site, true).unwrap();
        let Special::Shrink(shrink) = chosen.special else { panic!("{}", chosen.name) };
        assert_eq!((chosen.name, chosen.goes, row.goes), (row.name, 8, 8));
        let made = |entry| {
            let mut to = at(0);
            to.tls_entry = entry;
            (shrink.rewrite)(&site, &records[0], &to)
        };
        let rewrite = made(Some(0x1f_fffc)).unwrap();
        assert_eq!((rewrite.code, rewrite.deletes, rewrite.takes), (0x1800_0004, 4, 2));
        assert_eq!(rewrite.records[0].unwrap().r#type, short);
        // too far, misaligned, without an entry
        for entry in [Some(0x20_0000), Some(2), None] {
            assert_eq!(made(entry), None);
        }
    }
}

#[test]
fn addresses() {
    let address = [R_LARCH_PCALA_HI20, R_LARCH_PCALA_LO12];
    let entry = [R_LARCH_GOT_PC_HI20, R_LARCH_GOT_PC_LO12];
    let words = [PCALAU12I, ADDI];
    let short = of_pair(words, &pair(address, [8, 8], None), 0x100).unwrap();
    // pcaddi a0, ..
    assert_eq!((short.code, short.size, short.deletes, short.takes), (0x1800_0004, 4, 4, 2));
    let record = short.records[0].unwrap();
    let expected = (R_LARCH_PCREL20_S2, Some(8), 3, 0);
    assert_eq!((record.r#type, record.addend, record.symbol, record.offset), expected);
    let load = [PCALAU12I, LOAD];
    let short = of_pair(load, &pair(entry, [0, 0], None), 0x100).unwrap();
    assert_eq!((short.code, short.records[0].unwrap().r#type), (0x1800_0004, R_LARCH_PCREL20_S2));
    for (to, fits) in [
        (0x1f_fffc, true),
        (0x20_0000, false),
        (-0x20_0000, true),
        (-0x20_0004, false),
        (1, false),
        (2, false),
    ] {
        let found = of_pair(words, &pair(address, [0, 0], None), to);
        assert_eq!(found.is_some(), fits, "{to:#x}");
        let found = of_pair(words, &pair(address, [4, 4], None), to - 4);
        assert_eq!(found.is_some(), fits, "{to:#x}");
        let found = of_pair(load, &pair(entry, [0, 0], None), to);
        assert_eq!(found.is_some(), fits, "{to:#x}");
    }
    assert!(of_pair(words, &pair(address, [1, 1], None), i64::MAX).is_none());
    // behind the entry; one mark too few; of two addresses; of another kind
    assert!(of_pair(load, &pair(entry, [4, 4], None), 0).is_none());
    for without in [1, 2, 3] {
        assert!(of_pair(words, &pair(address, [0, 0], Some(without)), 0).is_none());
    }
    // a mark of another place in place of one
    for mark in [1, 3] {
        let mut records = pair(address, [0, 0], None);
        records[mark].offset += 2;
        assert!(of_pair(words, &records, 0).is_none(), "{mark}");
    }
    assert!(of_pair(words, &pair(address, [0, 4], None), 0).is_none());
    let mixed = [R_LARCH_PCALA_HI20, R_LARCH_GOT_PC_LO12];
    assert!(of_pair(words, &pair(mixed, [0, 0], None), 0).is_none());
    // to another register, from another, a load, no pcalau12i, no second instruction
    for words in [[PCALAU12I, ADDI ^ 1], [PCALAU12I, ADDI ^ 1 << 5], load, [ADDI, ADDI]] {
        assert!(of_pair(words, &pair(address, [0, 0], None), 0).is_none(), "{words:x?}");
    }
    assert!(of_pair([PCALAU12I, ADDI], &pair(entry, [0, 0], None), 0).is_none());
}

#[test]
fn descriptors() {
    let goes = |r#type, addend, to: &Addresses, is_marked: bool| {
        let kind = find(KINDS, r#type).unwrap();
        let Special::Transition(transition) = kind.special else { panic!("{}", kind.name) };
        assert_eq!((kind.goes, transition.size), (4, 4));
        let records = pair([r#type, 0], [addend, 0], (!is_marked).then_some(1));
        let site = Site::new(&[0; 4], &records, 0).unwrap();
        transition.goes.unwrap()(&site, &records[0], to)
    };
    for offset in [0, 0xfff, 0x1000, -1] {
        let to = variable(offset);
        assert!(goes(R_LARCH_TLS_DESC_PC_LO12, 0, &to, true));
        assert!(!goes(R_LARCH_TLS_DESC_PC_LO12, 0, &to, false));
        let is_near = (0..0x1000).contains(&offset);
        assert_eq!(goes(R_LARCH_TLS_DESC_LD, 0, &to, true), is_near, "{offset:#x}");
        assert_eq!(goes(R_LARCH_TLS_DESC_LD, 4, &variable(offset - 4), true), is_near);
        assert!(!goes(R_LARCH_TLS_DESC_LD, 0, &to, false));
    }
    let unknown = Addresses::default();
    assert!(!goes(R_LARCH_TLS_DESC_PC_LO12, 0, &unknown, true));
    assert!(!goes(R_LARCH_TLS_DESC_LD, 0, &unknown, true));
    assert!(!goes(R_LARCH_TLS_DESC_LD, i64::MAX, &variable(1), true));
}

/// Of four instructions that make 64 bits together none becomes local exec, or shorter, by itself.
#[test]
fn sequences_of_64_bits() {
    // pcalau12i a0, 0; addi.d a1, zero, 0; lu32i.d a1, 0; lu52i.d a1, a1, 0
    let whole = [PCALAU12I, 0x02c0_0005, 0x1600_0005, 0x0300_00a5];
    let chosen = |words: [u32; 4], offset, r#type| {
        let bytes = words.map(u32::to_le_bytes).concat();
        let records = [Record { offset, symbol: 3, r#type, addend: Some(0) }];
        let site = Site::new(&bytes, &records, 0).unwrap();
        let row = find(KINDS, r#type).unwrap();
        let Special::Alternative(alternative) = row.special else { panic!("{}", row.name) };
        alternative(&site, true)
    };
    let is_whole = |words| {
        let low = chosen(words, 4, R_LARCH_TLS_IE_PC_LO12);
        let is_low = low.is_none();
        if let Some(low) = low {
            assert!(matches!(low.special, Special::Transition(_)), "{}", low.name);
        }
        let high = chosen(words, 0, R_LARCH_PCALA_HI20).unwrap();
        assert_eq!(!matches!(high.special, Special::Shrink(_)), is_low, "{words:x?}");
        is_low
    };
    assert!(is_whole(whole));
    // ori a1, a1, 0
    assert!(is_whole([whole[0], 0x0380_00a5, whole[2], whole[3]]));
    let [first, second, third, fourth] = whole;
    for words in [
        [first, second ^ 1, third, fourth],
        [first, 0x02c0_00a5, third, fourth],
        [first, second, third ^ 1, fourth],
        [first, second, fourth, fourth],
        [first, second, third, fourth ^ 1],
        [first, second, third, third],
    ] {
        assert!(!is_whole(words), "{words:x?}");
    }
}
