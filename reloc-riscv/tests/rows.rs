//! Every row of the table, and by hand what no table says: pairs, differences, padding, the ends of branches.
#![cfg(test)]

#[path = "../../reloc-x86/tests/table/mod.rs"]
mod table;

use elf_core::{
    ApplyError, ApplyErrorKind, Arch, Check, Decision, Facts, Query, Record, Resolve, Role,
    SectionMut, Site, Slot, apply, apply_kind, decide, find,
};
use reloc_riscv::riscv::*;
use reloc_riscv::{Rv32, Rv64};

/// All bits of `c.lui`: an encoder makes `c.li` of it.
const C_LUI: u128 = 0xf07c;

#[test]
fn applications() {
    table::applications::<Rv32>(&|_| C_LUI);
    table::applications::<Rv64>(&|_| C_LUI);
}

#[test]
fn limits() {
    table::limits::<Rv32>();
    table::limits::<Rv64>();
}

#[test]
fn addends() {
    table::addends::<Rv32>();
    table::addends::<Rv64>();
}

#[test]
fn refusals() {
    table::refusals::<Rv32>();
    table::refusals::<Rv64>();
}

const PLACE: u64 = 0x1_0000;

/// Symbol 1 is at an address, or has its GOT entry there; symbol 2 is at another; symbol 3 is the label at offset 0.
struct Symbols {
    first: u64,
    second: u64,
}

impl Resolve for Symbols {
    fn resolve(&self, query: &Query) -> Option<u64> {
        match query.symbol {
            1 => Some(self.first),
            2 => Some(self.second),
            _ => None,
        }
    }
}

impl Facts for Symbols {
    fn label(&self, record: &Record) -> Option<u64> {
        (record.symbol == 3).then_some(0)
    }
}

/// The bytes after all records, as [`elf_core::apply_all`] would have them.
fn after<A: Arch>(
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
    let mut skips = 0;
    for (index, record) in records.iter().enumerate() {
        if skips > 0 {
            skips -= 1;
            continue;
        }
        let kind = find(A::KINDS, record.r#type).unwrap();
        let decision = decide(kind, &Site::new(&bytes, &records, index).unwrap(), symbols)?;
        skips = decision.takes();
        let partner = match decision {
            Decision::Pair(pairing) => Some(pairing.partner),
            _ => None,
        };
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        apply_kind::<A>(kind, record, partner.as_ref(), &mut section, symbols)
            .map_err(|error: ApplyError| error.kind)?;
    }
    Ok(bytes)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

const AUIPC_A0: u32 = 0x0000_0517;
const LUI_A0: u32 = 0x0000_0537;
const ADDI_A0_A0: u32 = 0x0005_0513;
const SW_A1_A0: u32 = 0x00b5_2023;

/// The value that an upper part and a signed lower part make.
fn sum(upper: u32, lower: u32) -> i64 {
    i64::from((upper & 0xffff_f000) as i32) + i64::from(lower as i32 >> 20)
}

#[test]
fn two_parts_make_the_distance() {
    let code = words(&[AUIPC_A0, ADDI_A0_A0, SW_A1_A0]);
    let records = [
        // the lower parts come first, and share one upper part
        (4, R_RISCV_PCREL_LO12_I, 3, 0),
        (8, R_RISCV_PCREL_LO12_S, 3, 0),
        (0, R_RISCV_PCREL_HI20, 1, 4),
        (0, R_RISCV_RELAX, 0, 0),
    ];
    for distance in [0, 0x7ff, 0x800, 0xfff, -1, -0x800, -0x801, 0x7fff_f7ff, -0x8000_0800] {
        let first = PLACE.wrapping_add_signed(distance - 4);
        let bytes = after::<Rv64>(&code, &records, &Symbols { first, second: 0 }).unwrap();
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        assert_eq!(sum(word(0), word(4)), distance);
        // the parts of a store
        let store = word(8) & 0xfe00_0000 | (word(8) >> 7 & 0x1f) << 20;
        assert_eq!(sum(word(0), store), distance);
        let kept = [(0, 0xfff), (4, 0xf_ffff), (8, 0x01ff_f07f)];
        for (at, mask) in kept {
            let old = u32::from_le_bytes(*code[at..].first_chunk().unwrap());
            assert_eq!(word(at) & mask, old & mask, "the rest of the instruction");
        }
    }
    for distance in [0x7fff_f800, -0x8000_0801] {
        let symbols = Symbols { first: PLACE.wrapping_add_signed(distance - 4), second: 0 };
        let result = after::<Rv64>(&code, &records, &symbols);
        assert!(matches!(result, Err(ApplyErrorKind::Overflow { .. })), "{distance:#x}");
        // addresses of 4 bytes go round
        assert!(after::<Rv32>(&code, &records, &symbols).is_ok());
    }
}

#[test]
fn every_upper_part_but_a_descriptor_has_a_lower_one() {
    let code = words(&[AUIPC_A0, ADDI_A0_A0]);
    let symbols = Symbols { first: PLACE + 0x1804, second: 0 };
    let pair = |upper, lower| after::<Rv64>(&code, &[(0, upper, 1, 0), (4, lower, 3, 0)], &symbols);
    let expected = Ok(words(&[0x0000_2517, 0x8045_0513]));
    for upper in [R_RISCV_GOT_HI20, R_RISCV_TLS_GOT_HI20, R_RISCV_TLS_GD_HI20, R_RISCV_PCREL_HI20] {
        assert_eq!(pair(upper, R_RISCV_PCREL_LO12_I), expected);
        assert_eq!(pair(upper, R_RISCV_TLSDESC_ADD_LO12), Err(ApplyErrorKind::Unpaired));
    }
    for lower in [R_RISCV_TLSDESC_LOAD_LO12, R_RISCV_TLSDESC_ADD_LO12] {
        assert_eq!(pair(R_RISCV_TLSDESC_HI20, lower), expected);
    }
    let unpaired = pair(R_RISCV_TLSDESC_HI20, R_RISCV_PCREL_LO12_I);
    assert_eq!(unpaired, Err(ApplyErrorKind::Unpaired));
}

#[test]
fn pairs_that_are_none() {
    let code = words(&[AUIPC_A0, ADDI_A0_A0]);
    let symbols = Symbols { first: PLACE, second: PLACE };
    let fails = |records: &[_]| after::<Rv64>(&code, records, &symbols).unwrap_err();
    let (upper, lower) = ((0, R_RISCV_PCREL_HI20, 1, 0), (4, R_RISCV_PCREL_LO12_I, 3, 0));
    assert_eq!(fails(&[lower]), ApplyErrorKind::Unpaired);
    // a symbol that is no label
    assert_eq!(fails(&[upper, (4, R_RISCV_PCREL_LO12_I, 1, 0)]), ApplyErrorKind::Unpaired);
    // two upper parts at one place
    assert_eq!(fails(&[upper, (0, R_RISCV_GOT_HI20, 1, 0), lower]), ApplyErrorKind::Unpaired);
    // an addend, with which the linkers do not agree
    assert_eq!(
        fails(&[upper, (4, R_RISCV_PCREL_LO12_I, 3, 4)]),
        ApplyErrorKind::Overflow { value: 4, check: Check::Unsigned(0) }
    );
    // alone, without its neighbours
    let mut bytes = code.clone();
    let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
    let record = Record { offset: 4, symbol: 3, r#type: R_RISCV_PCREL_LO12_I, addend: Some(0) };
    let error = apply::<Rv64>(&record, &mut section, &symbols).unwrap_err();
    assert_eq!(error.kind, ApplyErrorKind::Unpaired);
}

#[test]
fn absolute_parts() {
    let code = words(&[LUI_A0, ADDI_A0_A0]);
    let records = [(0, R_RISCV_HI20, 1, 0), (4, R_RISCV_LO12_I, 1, 0)];
    let result = |first| after::<Rv64>(&code, &records, &Symbols { first, second: 0 });
    assert_eq!(result(0x7fff_f7ff), Ok(words(&[0x7fff_f537, 0x7ff5_0513])));
    assert!(result(0x7fff_f800).is_err());
    let high = Symbols { first: 0x8000_1000, second: 0 };
    assert_eq!(after::<Rv32>(&code, &records, &high), Ok(words(&[0x8000_1537, 0x0005_0513])));
    assert!(after::<Rv64>(&code, &records, &high).is_err());
}

#[test]
fn differences() {
    let symbols = Symbols { first: 0x8000_1008, second: 0x8000_1000 };
    let (mut expected, zeros) = (vec![0; 9], [0; 9]);
    for (add, sub, size) in [
        (R_RISCV_ADD8, R_RISCV_SUB8, 1),
        (R_RISCV_ADD16, R_RISCV_SUB16, 2),
        (R_RISCV_ADD32, R_RISCV_SUB32, 4),
        (R_RISCV_ADD64, R_RISCV_SUB64, 8),
    ] {
        // up to the last byte of the section, in either order, from what is there
        let at = 9 - size;
        let mut bytes = zeros.to_vec();
        bytes[at] = 100;
        expected.fill(0);
        expected[at] = 108;
        let (at, add, sub) = (at as u64, (add, 1, 0), (sub, 2, 0));
        for [one, other] in [[add, sub], [sub, add]] {
            let records = [(at, one.0, one.1, one.2), (at, other.0, other.1, other.2)];
            assert_eq!(after::<Rv64>(&bytes, &records, &symbols), Ok(expected.clone()));
            assert_eq!(after::<Rv32>(&bytes, &records, &symbols), Ok(expected.clone()));
        }
        assert!(after::<Rv64>(&bytes, &[(at + 1, add.0, 1, 0)], &symbols).is_err());
    }
    for (set, sub, size) in [
        (R_RISCV_SET8, R_RISCV_SUB8, 1),
        (R_RISCV_SET16, R_RISCV_SUB16, 2),
        (R_RISCV_SET32, R_RISCV_SUB32, 4),
    ] {
        let at = 9 - size;
        expected.fill(0xa5);
        expected[at..].fill(0);
        expected[at] = 8;
        let records = [(at as u64, set, 1, 0), (at as u64, sub, 2, 0)];
        assert_eq!(after::<Rv64>(&[0xa5; 9], &records, &symbols), Ok(expected.clone()));
    }
}

#[test]
fn upper_words_of_sums() {
    // the sum of 8 bytes is one of 8 bytes, also where addresses have 4
    let bytes = 0x1_0000_0000u64.to_le_bytes();
    let records = [(0, R_RISCV_ADD64, 1, 0), (0, R_RISCV_SUB64, 2, 0)];
    let symbols = Symbols { first: 0x8000_0000, second: 0x7fff_fff8 };
    let expected = 0x1_0000_0008u64.to_le_bytes().to_vec();
    assert_eq!(after::<Rv32>(&bytes, &records, &symbols), Ok(expected));
    // and an address has no sign there
    let expected = 0x8000_0000u64.to_le_bytes().to_vec();
    assert_eq!(after::<Rv32>(&bytes, &[(0, R_RISCV_64, 1, 0)], &symbols), Ok(expected));
}

#[test]
fn six_bits_keep_the_other_two() {
    let symbols = Symbols { first: 0x1048, second: 0x1002 };
    let records = [(0, R_RISCV_SET6, 1, 0), (0, R_RISCV_SUB6, 2, 0)];
    for opcode in [0x00, 0x40, 0x80, 0xc0] {
        let after = after::<Rv64>(&[opcode | 0x2a], &records, &symbols);
        assert_eq!(after, Ok(vec![opcode | 0x06]));
    }
}

#[test]
fn numbers_keep_their_length() {
    let difference = |bytes: &[u8], by: u64| {
        let records = [(0, R_RISCV_SET_ULEB128, 1, 3), (0, R_RISCV_SUB_ULEB128, 2, 1)];
        after::<Rv64>(bytes, &records, &Symbols { first: 0x1000 + by - 2, second: 0x1000 })
    };
    assert_eq!(difference(&[0x80, 0x81, 0x02, 0xff], 4), Ok(vec![0x84, 0x80, 0x00, 0xff]));
    assert_eq!(difference(&[0x00], 0x7f), Ok(vec![0x7f]));
    assert!(difference(&[0x00], 0x80).is_err(), "too long");
    assert!(difference(&[0x80], 4).is_err(), "does not end");
    let symbols = Symbols { first: 0x1000, second: 0x1004 };
    let pair = [(0, R_RISCV_SET_ULEB128, 1, 0), (0, R_RISCV_SUB_ULEB128, 2, 0)];
    assert!(after::<Rv32>(&[0x80, 0x00], &pair, &symbols).is_err(), "negative");
    let elsewhere = [pair[0], (1, R_RISCV_SUB_ULEB128, 2, 0)];
    for alone in [&pair[..1], &pair[1..], &elsewhere] {
        let result = after::<Rv64>(&[0x80, 0x00], alone, &symbols);
        assert_eq!(result, Err(ApplyErrorKind::Unpaired));
    }
}

#[test]
fn padding_stays_where_it_is_right() {
    let result = |offset, padding, size| {
        let records = [(offset, R_RISCV_ALIGN, 0, padding)];
        after::<Rv64>(&vec![0; size], &records, &Symbols { first: 0, second: 0 })
    };
    let misaligned = |value, alignment| Err(ApplyErrorKind::Misaligned { value, alignment });
    // c.nop for 4, which ends at a multiple of 4 or not
    assert!(result(2, 2, 4).is_ok());
    assert_eq!(result(4, 2, 8), misaligned(PLACE + 6, 4));
    // 16 of code with 2-byte instructions, and of code without
    assert!(result(2, 14, 16).is_ok());
    assert!(result(4, 12, 16).is_ok());
    assert_eq!(result(2, 12, 16), misaligned(PLACE + 14, 16));
    assert!(result(3, 0, 4).is_ok());
    assert_eq!(result(4, 6, 8), Err(ApplyErrorKind::OutsideSection { size: 8 }));
    assert_eq!(result(4, -1, 8), Err(ApplyErrorKind::OutsideSection { size: 8 }));
}

#[test]
fn branches_end_where_the_abi_says() {
    let place = 0x1_0000_0000;
    for (r#type, size, before, reach, most, least) in [
        (R_RISCV_BRANCH, 4, 0x00b5_0063u32, 1 << 12, 0x7eb5_0fe3u32, 0x80b5_0063u32), // beq a0, a1
        (R_RISCV_JAL, 4, 0x0000_00ef, 1 << 20, 0x7fff_f0ef, 0x8000_00ef),             // jal ra
        (R_RISCV_RVC_BRANCH, 2, 0xc101, 1 << 8, 0xcd7d, 0xd101),                      // c.beqz a0
        (R_RISCV_RVC_JUMP, 2, 0xa001, 1 << 11, 0xaffd, 0xb001),                       // c.j
    ] {
        let word = |target: u64| {
            let mut bytes = before.to_le_bytes();
            let bytes_of = &mut bytes[..size];
            let mut section = SectionMut { bytes: bytes_of, address: place, big_endian: false };
            let record = Record { offset: 0, symbol: 1, r#type, addend: Some(0) };
            apply::<Rv64>(&record, &mut section, &|_: &Query| Some(target))
                .map_err(|error| error.kind)?;
            Ok(u32::from_le_bytes(bytes))
        };
        assert_eq!(word(place + reach - 2), Ok(most), "{type}");
        assert_eq!(word(place - reach), Ok(least), "{type}");
        for beyond in [place + reach, place - reach - 2] {
            assert!(matches!(word(beyond), Err(ApplyErrorKind::Overflow { .. })), "{type}");
        }
        let odd = word(place + 1);
        assert!(matches!(odd, Err(ApplyErrorKind::Misaligned { alignment: 2, .. })), "{type}");
    }
}

#[test]
fn c_lui_of_nothing_is_c_li() {
    let result = |first| {
        let symbols = Symbols { first, second: 0 };
        let bytes = after::<Rv64>(&[0x05, 0x65], &[(0, R_RISCV_RVC_LUI, 1, 0)], &symbols)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    assert_eq!(result(0x7ff), Ok(0x4501)); // c.li a0, 0
    assert_eq!(result(0x800), Ok(0x6505)); // c.lui a0, 1
    assert_eq!(result(0x1_f7ff), Ok(0x657d)); // c.lui a0, 31
    assert_eq!(result(-0x2_0800i64 as u64), Ok(0x7501)); // c.lui a0, -32
    assert!(matches!(result(0x1_f800), Err(ApplyErrorKind::Overflow { .. })));
}

fn stub<A: Arch>() -> Vec<u32> {
    let [stub] = A::STUBS else { panic!("one stub") };
    let mut bytes = stub.code.to_vec();
    let entry = |query: &Query| (query.role == Role::Got(Slot::Address)).then_some(PLACE + 0x2ff8);
    let record = |it: &elf_core::StubRelocation| Record {
        offset: it.offset,
        symbol: 1,
        r#type: it.r#type,
        addend: Some(it.addend),
    };
    for relocation in stub.relocations {
        let labelled = stub.relocations.iter().find(|it| Some(it.offset) == relocation.label);
        let partner = labelled.map(record);
        let kind = find(A::KINDS, relocation.r#type).unwrap();
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        let record = record(relocation);
        apply_kind::<A>(kind, &record, partner.as_ref(), &mut section, &entry).unwrap();
    }
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn stubs_jump_through_the_got_entry() {
    // auipc t3, 3; ld t3, -8(t3) or lw; jr t3; nop
    assert_eq!(stub::<Rv64>(), [0x0000_3e17, 0xff8e_3e03, 0x000e_0067, 0x0000_0013]);
    assert_eq!(stub::<Rv32>(), [0x0000_3e17, 0xff8e_2e03, 0x000e_0067, 0x0000_0013]);
}

#[test]
fn vendors_are_refused_by_name() {
    let result =
        after::<Rv64>(&[0; 4], &[(0, R_RISCV_VENDOR, 1, 0)], &Symbols { first: 0, second: 0 });
    assert_eq!(result, Err(ApplyErrorKind::Unsupported));
    assert!((192..256).all(|number| find(Rv64::KINDS, number).is_none()));
}

/// What `__tls_get_addr` counts from lies 0x800 bytes behind the start of a block (psABI, "Thread Local Storage").
#[test]
fn blocks_begin_before_what_offsets_count_from() {
    assert_eq!(Rv64::TLS.map(|tls| tls.dtp_bias), Some(-0x800));
    assert_eq!(Rv32::TLS.map(|tls| tls.dtp_bias), Some(-0x800));
}
