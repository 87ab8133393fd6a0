//! Every row of the table, and by hand what no table says: parts of 64 bits, pairs, alternatives, padding, the ends of branches.
#![cfg(test)]

#[path = "../../reloc-x86/tests/table/mod.rs"]
mod table;

use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, Decision, Facts, Query, Record, Resolve, Role,
    SectionMut, Site, Slot, Stage, apply, apply_kind, choose, decide, find,
};
use reloc_loongarch::LoongArch64;
use reloc_loongarch::loongarch::*;

/// Bits 57 to 52 of `CALL30`: an encoder clears them.
const SIGN: u128 = 0x3f << 52;

#[test]
fn applications() {
    table::applications::<LoongArch64>(&|_| SIGN);
}

#[test]
fn limits() {
    table::limits::<LoongArch64>();
}

#[test]
fn addends() {
    table::addends::<LoongArch64>();
}

#[test]
fn refusals() {
    table::refusals::<LoongArch64>();
}

#[test]
fn the_stack_machine_is_refused_by_name() {
    for number in R_LARCH_SOP_PUSH_PCREL..=R_LARCH_SOP_POP_32_U {
        let kind = find(LoongArch64::KINDS, number).unwrap();
        assert!(kind.stage == Stage::Unsupported && kind.name.starts_with("R_LARCH_SOP_"));
    }
    assert!([101, 104].iter().all(|number| find(LoongArch64::KINDS, *number).is_none()));
}

const PLACE: u64 = 0x1_0ff8;

/// Symbol 1 is at an address, or has an entry there; symbol 2 is at another; symbol 3 is the label at offset 0. Entries of general
/// dynamic code are 8 bytes behind.
struct Symbols {
    first: u64,
    second: u64,
    is_thread_local: bool,
}

impl Resolve for Symbols {
    fn resolve(&self, query: &Query) -> Option<u64> {
        let behind = if query.role == Role::Got(Slot::TlsGd) { 8 } else { 0 };
        match query.symbol {
            1 => Some(self.first.wrapping_add(behind)),
            2 => Some(self.second),
            _ => None,
        }
    }
}

impl Facts for Symbols {
    fn label(&self, record: &Record) -> Option<u64> {
        (record.symbol == 3).then_some(0)
    }

    fn is_thread_local(&self, _: &Record) -> bool {
        self.is_thread_local
    }
}

const fn at(first: u64) -> Symbols {
    Symbols { first, second: 0x1000, is_thread_local: false }
}

/// The bytes after all records, as [`elf_core::apply_all`] would have them.
fn after(
    bytes: &[u8],
    records: &[(u64, u32, u32, i64)],
    symbols: &Symbols,
) -> Result<Vec<u8>, ApplyErrorKind> {
    let record = |&(offset, r#type, symbol, addend): &_| Record {
        offset,
        symbol,
        r#type,
        addend: Some(addend),
    };
    let records: Vec<Record> = records.iter().map(record).collect();
    let mut bytes = bytes.to_vec();
    for (index, record) in records.iter().enumerate() {
        let kind = find(LoongArch64::KINDS, record.r#type).unwrap();
        let site = Site::new(&bytes, &records, index).unwrap();
        let kind = choose(kind, &site, symbols);
        let partner = match decide(kind, &site, symbols)? {
            Decision::Pair(pairing) => Some(pairing.partner),
            _ => None,
        };
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        apply_kind::<LoongArch64>(kind, record, partner.as_ref(), &mut section, symbols)
            .map_err(|error: ApplyError| error.kind)?;
    }
    Ok(bytes)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// `pcalau12i a0, 0`
const PCALAU12I: u32 = 0x1a00_0004;
/// `addi.d a0, a0, 0`
const ADDI_D: u32 = 0x02c0_0084;
/// `addi.d t0, zero, 0; lu32i.d t0, 0; lu52i.d t0, t0, 0`
const ABOVE: [u32; 3] = [0x02c0_000c, 0x1600_000c, 0x0300_018c];
/// `lu12i.w a0, 0; ori a0, a0, 0; lu32i.d a0, 0; lu52i.d a0, a0, 0`
const ABSOLUTE: [u32; 4] = [0x1400_0004, 0x0380_0084, 0x1600_0004, 0x0300_0084];

/// The bits `from..from + width` of an instruction, with their sign.
fn signed(word: u32, from: u32, width: u32) -> i64 {
    i64::from((word << (32 - from - width)) as i32 >> (32 - width))
}

/// What `pcalau12i` at the place and `addi.d`, `ld.d` or a store behind it make.
fn sum(bytes: &[u8]) -> u64 {
    let page = (PLACE & !0xfff).wrapping_add_signed(signed(word(bytes, 0), 5, 20) << 12);
    page.wrapping_add_signed(signed(word(bytes, 4), 10, 12))
}

/// What the processor makes of the four instructions with `ABOVE`, and an addition.
fn sum_64(bytes: &[u8]) -> u64 {
    let page = (PLACE & !0xfff).wrapping_add_signed(signed(word(bytes, 0), 5, 20) << 12);
    let low = signed(word(bytes, 4), 10, 12) as u32;
    let middle = signed(word(bytes, 8), 5, 20) << 32;
    let high = signed(word(bytes, 12), 10, 12) << 52;
    let above = (middle as u64 & ((1 << 52) - 1)) | high as u64;
    page.wrapping_add(above | u64::from(low))
}

#[test]
fn pages_and_what_is_in_them() {
    let code = words(&[PCALAU12I, ADDI_D]);
    let records = [(4, R_LARCH_PCALA_LO12, 1, 4), (0, R_LARCH_PCALA_HI20, 1, 4)];
    let page = PLACE & !0xfff;
    for distance in [0, 0x7ff, 0x800, 0xfff, 0x1000, -1, -0x800, -0x801, 0x7fff_f7ff, -0x8000_0800]
    {
        let target = page.wrapping_add_signed(distance);
        let bytes = after(&code, &records, &at(target.wrapping_sub(4))).unwrap();
        assert_eq!(sum(&bytes), target, "{distance:#x}");
        assert_eq!(
            [word(&bytes, 0) & 0xfe00_001f, word(&bytes, 4) & 0xffc0_03ff],
            [PCALAU12I, ADDI_D]
        );
    }
    for distance in [0x7fff_f800, -0x8000_0801] {
        let target = page.wrapping_add_signed(distance - 4);
        let result = after(&code, &records, &at(target));
        assert!(matches!(result, Err(ApplyErrorKind::Overflow { .. })), "{distance:#x}");
    }
}

#[test]
fn four_instructions_make_64_bits() {
    let code = words(&[&[PCALAU12I][..], &ABOVE].concat());
    // the group crosses a page
    assert_ne!(PLACE >> 12, (PLACE + 12) >> 12);
    for (hi20, lo12, lo20, hi12) in [
        (R_LARCH_PCALA_HI20, R_LARCH_PCALA_LO12, R_LARCH_PCALA64_LO20, R_LARCH_PCALA64_HI12),
        (R_LARCH_GOT_PC_HI20, R_LARCH_GOT_PC_LO12, R_LARCH_GOT64_PC_LO20, R_LARCH_GOT64_PC_HI12),
        (
            R_LARCH_TLS_IE_PC_HI20,
            R_LARCH_TLS_IE_PC_LO12,
            R_LARCH_TLS_IE64_PC_LO20,
            R_LARCH_TLS_IE64_PC_HI12,
        ),
        (
            R_LARCH_TLS_DESC_PC_HI20,
            R_LARCH_TLS_DESC_PC_LO12,
            R_LARCH_TLS_DESC64_PC_LO20,
            R_LARCH_TLS_DESC64_PC_HI12,
        ),
    ] {
        let records = [(0, hi20, 1, 0), (4, lo12, 1, 0), (8, lo20, 1, 0), (12, hi12, 1, 0)];
        for high in [0, 1, 0x7fff_1234, 0x8000_0000, 0xffff_ffff, 0x000f_ffff, 0x0010_0000u64] {
            for low in [0, 0x7ff, 0x800, 0xfff, 0x7fff_f7ff, 0x7fff_f800, 0x8000_0000, 0x8000_0800]
            {
                for target in [high << 32 | low, high << 32 | (0xffff_ffff - low)] {
                    let bytes = after(&code, &records, &at(target)).unwrap();
                    assert_eq!(sum_64(&bytes), target, "{hi20} {target:#x}");
                }
            }
        }
    }
    // without the instructions, there is no room for it
    let alone = [(0, R_LARCH_PCALA_HI20, 1, 0)];
    for code in [&code[..12], &words(&[PCALAU12I, ADDI_D, ABOVE[1], ABOVE[2]])] {
        let result = after(code, &alone, &at(0x1234_5678_9000));
        assert!(matches!(result, Err(ApplyErrorKind::Overflow { .. })));
    }
}

#[test]
fn absolute_addresses() {
    let code = words(&ABSOLUTE);
    let both = [(0, R_LARCH_ABS_HI20, 1, 0), (4, R_LARCH_ABS_LO12, 1, 0)];
    let above = [(8, R_LARCH_ABS64_LO20, 1, 0), (12, R_LARCH_ABS64_HI12, 1, 0)];
    for target in [0, 0xfff, 0x8000_0800, 0x7fff_1234_89ab_cdef, 0xffff_ffff_ffff_ffff_u64] {
        let bytes = after(&code, &[both, above].concat(), &at(target)).unwrap();
        let part = |at: usize, from: u32, width: u32| signed(word(&bytes, at), from, width) as u64;
        let low = (part(0, 5, 20) << 12 | part(4, 10, 12) & 0xfff) as u32;
        let middle = part(8, 5, 20) & 0xf_ffff;
        assert_eq!(part(12, 10, 12) << 52 | middle << 32 | u64::from(low), target);
    }
    let two = |target| after(&code[..8], &both, &at(target));
    assert_eq!(two(0x7fff_ffff), Ok(words(&[0x14ff_ffe4, 0x03bf_fc84])));
    assert_eq!(two(-0x8000_0000i64 as u64), Ok(words(&[0x1500_0004, 0x0380_0084])));
    for target in [0x8000_0000, -0x8000_0001i64 as u64] {
        assert!(matches!(two(target), Err(ApplyErrorKind::Overflow { .. })));
    }
}

#[test]
fn lower_parts_of_variables_lead_to_their_entries() {
    let code = words(&[PCALAU12I, ADDI_D]);
    let pair = |upper, is_thread_local| {
        let records = [(0, upper, 1, 0), (4, R_LARCH_GOT_PC_LO12, 1, 0)];
        let symbols = Symbols { is_thread_local, ..at(0x2_07f8) };
        sum(&after(&code, &records, &symbols).unwrap())
    };
    assert_eq!(pair(R_LARCH_GOT_PC_HI20, false), 0x2_07f8);
    // an entry 8 bytes behind, on the next half of a page
    for upper in [R_LARCH_TLS_GD_PC_HI20, R_LARCH_TLS_LD_PC_HI20] {
        assert_eq!(pair(upper, true), 0x2_0800);
    }
}

#[test]
fn lower_parts_of_jumps() {
    let code = words(&[PCALAU12I, 0x4c00_0081]); // jirl ra, a0, 0
    let records = [(0, R_LARCH_PCALA_HI20, 1, 0), (4, R_LARCH_PCALA_LO12, 1, 0)];
    for target in [0x1_2000, 0x1_27fc, 0x1_2800, 0x1_2ffc, 0x4000_0ffc] {
        let bytes = after(&code, &records, &at(target)).unwrap();
        let page = (PLACE & !0xfff).wrapping_add_signed(signed(word(&bytes, 0), 5, 20) << 12);
        let low = signed(word(&bytes, 4), 10, 16) << 2;
        assert_eq!(page.wrapping_add_signed(low), target);
        assert_eq!(word(&bytes, 4) & 0xfc00_03ff, 0x4c00_0081);
    }
    let odd = after(&code, &records, &at(0x1_2002));
    assert!(matches!(odd, Err(ApplyErrorKind::Misaligned { alignment: 4, .. })));
}

#[test]
fn labels_of_upper_parts() {
    let code = words(&[0x1c00_0004, ADDI_D]); // pcaddu12i a0, 0
    for upper in (R_LARCH_PCADD_HI20..=R_LARCH_TLS_DESC_PCADD_HI20).step_by(2) {
        let pair = |lower: u32, addend| {
            let records = [(4, lower, 3, addend), (0, upper, 1, 0)];
            after(&code, &records, &at(PLACE + 0x1_2800 - 8 * u64::from(is_general(upper))))
        };
        // pcaddu12i a0, 0x13; addi.d a0, a0, -0x800
        assert_eq!(pair(upper + 1, 0), Ok(words(&[0x1c00_0264, 0x02e0_0084])));
        let refused = ApplyErrorKind::Overflow { value: 4, check: Check::Unsigned(0) };
        assert_eq!(pair(upper + 1, 4), Err(refused));
        let other = if upper == R_LARCH_PCADD_HI20 { upper + 3 } else { R_LARCH_PCADD_LO12 };
        assert_eq!(pair(other, 0), Err(ApplyErrorKind::Unpaired));
    }
}

const fn is_general(upper: u32) -> bool {
    matches!(upper, R_LARCH_TLS_LD_PCADD_HI20 | R_LARCH_TLS_GD_PCADD_HI20)
}

#[test]
fn branches_end_where_the_abi_says() {
    let place = 0x100_0000_0000;
    for (r#type, before, reach, most, least) in [
        (R_LARCH_B16, 0x5800_0085u32, 1i64 << 17, 0x59ff_fc85u32, 0x5a00_0085u32), // beq a0, a1
        (R_LARCH_B21, 0x4000_0080, 1 << 22, 0x43ff_fc8f, 0x4000_0090),             // beqz a0
        (R_LARCH_B26, 0x5400_0000, 1 << 27, 0x57ff_fdff, 0x5400_0200),             // bl
        (R_LARCH_PCREL20_S2, 0x1800_0004, 1 << 21, 0x18ff_ffe4, 0x1900_0004),      // pcaddi a0
    ] {
        let word = |target: u64| {
            let mut bytes = before.to_le_bytes();
            let mut section = SectionMut { bytes: &mut bytes, address: place, big_endian: false };
            let record = Record { offset: 0, symbol: 1, r#type, addend: Some(0) };
            apply::<LoongArch64>(&record, &mut section, &|_: &Query| Some(target))
                .map_err(|error| error.kind)?;
            Ok(u32::from_le_bytes(bytes))
        };
        let to = |distance: i64| word(place.wrapping_add_signed(distance));
        assert_eq!(to(reach - 4), Ok(most), "{type}");
        assert_eq!(to(-reach), Ok(least), "{type}");
        for beyond in [reach, -reach - 4] {
            assert!(matches!(to(beyond), Err(ApplyErrorKind::Overflow { .. })), "{type}");
        }
        let odd = to(2);
        assert!(matches!(odd, Err(ApplyErrorKind::Misaligned { alignment: 4, .. })), "{type}");
    }
}

#[test]
fn far_calls() {
    for (call, code, shift, reach, half) in [
        // pcaddu18i ra; jirl ra, ra
        (R_LARCH_CALL36, [0x1e00_0001, 0x4c00_0021], 18, 1i64 << 37, 1 << 17),
        // pcaddu12i ra; jirl ra, ra, whose lower part has no sign
        (R_LARCH_CALL30, [0x1c00_0001, 0x4fff_ffe1], 12, 1 << 31, 0),
    ] {
        let code = words(&code);
        let to = |distance: i64| {
            after(&code, &[(0, call, 1, 0)], &at(PLACE.wrapping_add_signed(distance)))
        };
        for distance in [0, 4, half - 4, half, -half, -half - 4, reach - half - 4, -reach - half] {
            let bytes = to(distance).unwrap();
            let upper = signed(word(&bytes, 0), 5, 20) << shift;
            assert_eq!(upper + (signed(word(&bytes, 4), 10, 16) << 2), distance, "{distance:#x}");
        }
        for distance in [reach - half, -reach - half - 4] {
            assert!(matches!(to(distance), Err(ApplyErrorKind::Overflow { .. })), "{distance:#x}");
        }
        assert!(matches!(to(2), Err(ApplyErrorKind::Misaligned { alignment: 4, .. })));
    }
}

#[test]
fn offsets_of_local_exec() {
    let code = words(&[0x1400_0004, 0x0380_0084]); // lu12i.w a0, 0; ori a0, a0, 0
    let records = [(0, R_LARCH_TLS_LE_HI20, 1, 0), (4, R_LARCH_TLS_LE_LO12, 1, 0)];
    assert_eq!(after(&code, &records, &at(0x1fff)), Ok(words(&[0x1400_0024, 0x03bf_fc84])));
    let code = words(&[0x1400_0004, 0x0010_8884, 0x02c0_0084]); // .. add.d a0, a0, tp; addi.d a0, a0, 0
    let records = [
        (0, R_LARCH_TLS_LE_HI20_R, 1, 0),
        (4, R_LARCH_TLS_LE_ADD_R, 1, 0),
        (8, R_LARCH_TLS_LE_LO12_R, 1, 0),
    ];
    let expected = words(&[0x1400_0044, 0x0010_8884, 0x02ff_fc84]);
    assert_eq!(after(&code, &records, &at(0x1fff)), Ok(expected));
}

#[test]
fn differences() {
    let symbols = Symbols { second: 0x8000_1000, ..at(0x8000_1008) };
    for (add, sub, size) in [
        (R_LARCH_ADD8, R_LARCH_SUB8, 1),
        (R_LARCH_ADD16, R_LARCH_SUB16, 2),
        (R_LARCH_ADD24, R_LARCH_SUB24, 3),
        (R_LARCH_ADD32, R_LARCH_SUB32, 4),
        (R_LARCH_ADD64, R_LARCH_SUB64, 8),
    ] {
        // up to the last byte of the section, in either order, from what is there
        let start = 9 - size;
        let (mut bytes, mut expected) = (vec![0; 9], vec![0; 9]);
        (bytes[start], expected[start]) = (100, 108);
        let (start, add, sub) = (start as u64, (add, 1), (sub, 2));
        for both in [[add, sub], [sub, add]] {
            let records = both.map(|(r#type, symbol)| (start, r#type, symbol, 0));
            assert_eq!(after(&bytes, &records, &symbols), Ok(expected.clone()));
        }
        assert!(after(&bytes, &[(start + 1, add.0, 1, 0)], &symbols).is_err());
    }
    for opcode in [0x00, 0x40, 0x80, 0xc0] {
        let records = [(0, R_LARCH_ADD6, 1, 0), (0, R_LARCH_SUB6, 2, 0)];
        assert_eq!(after(&[opcode | 0x3e], &records, &symbols), Ok(vec![opcode | 0x06]));
    }
}

#[test]
fn numbers_keep_their_length() {
    let symbols = Symbols { second: 0x8000_1000, ..at(0x8000_1004) };
    let (add, sub) = ((0, R_LARCH_ADD_ULEB128, 1, 0), (0, R_LARCH_SUB_ULEB128, 2, 0));
    for both in [[add, sub], [sub, add]] {
        let result = after(&[0x85, 0x81, 0x02, 0xff], &both, &symbols);
        assert_eq!(result, Ok(vec![0x89, 0x81, 0x02, 0xff]));
        assert_eq!(after(&[0x7d], &both, &symbols), Ok(vec![0x01]));
    }
    let ten = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let expected = [0x83, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
    assert_eq!(after(&ten, &[add, sub], &symbols), Ok(expected.to_vec()));
    assert!(after(&[0x80], &[add], &symbols).is_err(), "does not end");
}

#[test]
fn padding_stays_where_it_is_right() {
    let result = |offset, symbol, addend, size| {
        after(&vec![0; size], &[(offset, R_LARCH_ALIGN, symbol, addend)], &at(0))
    };
    let misaligned = |value, alignment| Err(ApplyErrorKind::Misaligned { value, alignment });
    assert!(result(12, 0, 12, 24).is_ok());
    assert_eq!(result(4, 0, 12, 24), misaligned(PLACE + 16, 16));
    // 32, of at most 12 bytes
    assert!(result(12, 1, 0xc05, 40).is_ok());
    assert_eq!(result(8, 1, 0xc05, 40), misaligned(PLACE + 36, 32));
    assert!(result(4, 1, 2, 8).is_ok());
    for addend in [-1, 0xff] {
        assert_eq!(result(4, 1, addend, 8), Err(ApplyErrorKind::OutsideSection { size: 8 }));
    }
}

#[test]
fn stubs_jump_through_the_got_entry() {
    let [stub] = LoongArch64::STUBS else { panic!("one stub") };
    let mut bytes = stub.code.to_vec();
    let entry = |query: &Query| (query.role == Role::Got(Slot::Address)).then_some(PLACE + 0x2ff8);
    for relocation in stub.relocations {
        let record = Record {
            offset: relocation.offset,
            symbol: 1,
            r#type: relocation.r#type,
            addend: Some(relocation.addend),
        };
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        apply::<LoongArch64>(&record, &mut section, &entry).unwrap();
    }
    // 0x13ff0: pcalau12i t8, 4; ld.d t8, t8, -0x10; jr t8; nop
    let expected = words(&[0x1a00_0094, 0x28ff_c294, 0x4c00_0280, 0x0340_0000]);
    assert_eq!(bytes, expected);
}
