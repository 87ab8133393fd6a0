//! Every row of the table, and by hand what no table says: states, groups, addends in instructions, the ends of branches.
#![cfg(test)]

#[path = "../../reloc-x86/tests/table/mod.rs"]
mod table;

use elf_core::{
    ApplyErrorKind, Arch, Check, Field, Kind, Query, Record, Resolve, Role, SectionMut, Slot, Stub,
    SymbolAttributes, apply, find,
};
use reloc_arm::Arm;
use reloc_arm::arm::*;
use reloc_arm::attributes::{BLX, J1J2, MICROCONTROLLER, SHORT_BRANCHES, THUMB2};

/// What encoders may change beside the field.
fn opcode(kind: &Kind) -> u128 {
    match kind.number {
        R_ARM_PC24 | R_ARM_CALL | R_ARM_TLS_CALL => 0xff00_0000,
        R_ARM_THM_CALL | R_ARM_THM_TLS_CALL => 0x1000,
        // rotation, value, and the operation
        R_ARM_ALU_PC_G0_NC..=R_ARM_ALU_PC_G2 | R_ARM_ALU_SB_G0_NC..=R_ARM_ALU_SB_G2 => 0x0fe0_0fff,
        R_ARM_LDRS_PC_G0..=R_ARM_LDRS_PC_G2 | R_ARM_LDRS_SB_G0..=R_ARM_LDRS_SB_G2 => 0x0080_0f0f,
        R_ARM_LDC_PC_G0..=R_ARM_LDC_PC_G2 | R_ARM_LDC_SB_G0..=R_ARM_LDC_SB_G2 => 0x0080_00ff,
        R_ARM_THM_ALU_PREL_11_0 => 0x00a0_0000,
        // a NOP
        R_ARM_THM_BF16 | R_ARM_THM_BF12 | R_ARM_THM_BF18 => 0xffff_ffff,
        _ if kind.field.encode.is_some() => 0x0080_0fff,
        _ => 0,
    }
}

#[test]
fn applications() {
    table::applications::<Arm>(&opcode);
}

#[test]
fn limits() {
    table::limits::<Arm>();
}

#[test]
fn addends() {
    table::addends::<Arm>();
}

#[test]
fn refusals() {
    table::refusals::<Arm>();
}

/// The relocations of FDPIC, an ABI of its own, are refused by name.
#[test]
fn descriptors_of_functions() {
    for number in R_ARM_GOTFUNCDESC..=R_ARM_TLS_IE32_FDPIC {
        let record = Record { offset: 0, symbol: 1, r#type: number, addend: Some(0) };
        let mut section = SectionMut { bytes: &mut [0; 8], address: 0, big_endian: false };
        let error = apply::<Arm>(&record, &mut section, &|_: &Query| Some(0)).unwrap_err();
        assert_eq!(error.kind, ApplyErrorKind::Unsupported);
        let is_named = |name: &str| name.contains("FUNCDESC") || name.contains("FDPIC");
        assert!(error.name.is_some_and(is_named), "{number}: {:?}", error.name);
    }
}

const PLACE: u64 = 0x0100_0000;

/// A symbol at an address, with T or not, a function or not.
#[derive(Clone, Copy)]
struct Target {
    address: u64,
    attributes: SymbolAttributes,
}

impl Target {
    fn thumb(address: u64) -> Self {
        Self { address, attributes: SymbolAttributes::new(true, 0) }
    }

    fn arm(address: u64) -> Self {
        Self { address, attributes: SymbolAttributes::new(false, 0).function(true) }
    }

    fn label(address: u64) -> Self {
        Self { address, attributes: SymbolAttributes::default() }
    }
}

impl Resolve for Target {
    fn resolve(&self, query: &Query) -> Option<u64> {
        matches!(query.role, Role::Address | Role::Plt).then_some(self.address)
    }

    fn attributes(&self, _: &Query) -> SymbolAttributes {
        self.attributes
    }
}

/// Bytes of an instruction: of 2 or 4, or of two halfwords.
fn bytes(field: &Field, word: u32) -> Vec<u8> {
    match (field.bytes(), field.order) {
        (4, elf_core::Order::Halfwords) => word.rotate_left(16).to_le_bytes().to_vec(),
        (size, _) => word.to_le_bytes()[..size].to_vec(),
    }
}

/// The instruction `word` after a relocation whose addend it holds.
fn after(r#type: u32, word: u32, place: u64, target: impl Resolve) -> Result<u32, ApplyErrorKind> {
    let field = find(KINDS, r#type).unwrap().field;
    let mut code = bytes(&field, word);
    let record = Record { offset: 0, symbol: 1, r#type, addend: None };
    let mut section = SectionMut { bytes: &mut code, address: place, big_endian: false };
    apply::<Arm>(&record, &mut section, &target).map_err(|error| error.kind)?;
    let mut word = [0; 4];
    word[..code.len()].copy_from_slice(&code);
    let word = u32::from_le_bytes(word);
    Ok(if field.order == elf_core::Order::Halfwords { word.rotate_left(16) } else { word })
}

const BL: u32 = 0xebff_fffe;
const BLX_A32: u32 = 0xfaff_fffe;
const B: u32 = 0xeaff_fffe;
const THM_BL: u32 = 0xf7ff_fffe;
const THM_BLX: u32 = 0xf7ff_effe;
const THM_B: u32 = 0xf7ff_bffe;

#[test]
fn calls_change_state() {
    let at = PLACE + 0x100;
    for instruction in [BL, BLX_A32] {
        assert_eq!(after(R_ARM_CALL, instruction, PLACE, Target::arm(at)), Ok(0xeb00_003e));
        assert_eq!(after(R_ARM_CALL, instruction, PLACE, Target::thumb(at)), Ok(0xfa00_003e));
        assert_eq!(after(R_ARM_CALL, instruction, PLACE, Target::thumb(at + 2)), Ok(0xfb00_003e));
    }
    // T of an address of the caller's is its bit 0
    assert_eq!(after(R_ARM_CALL, BL, PLACE, Target::label(at | 1)), Ok(0xfa00_003e));
    // nobody knows the state of a label
    assert_eq!(after(R_ARM_CALL, BL, PLACE, Target::label(at)), Ok(0xeb00_003e));
    assert_eq!(after(R_ARM_CALL, BLX_A32, PLACE, Target::label(at + 2)), Ok(0xfb00_003e));
    for instruction in [THM_BL, THM_BLX] {
        let result = |place, target| after(R_ARM_THM_CALL, instruction, place, target);
        assert_eq!(result(PLACE, Target::thumb(at)), Ok(0xf000_f87e));
        assert_eq!(result(PLACE, Target::arm(at)), Ok(0xf000_e87e));
        // BLX counts from the multiple of 4
        assert_eq!(result(PLACE + 2, Target::arm(at)), Ok(0xf000_e87e));
    }
    assert_eq!(after(R_ARM_THM_CALL, THM_BL, PLACE, Target::label(at)), Ok(0xf000_f87e));
    assert_eq!(after(R_ARM_THM_CALL, THM_BLX, PLACE, Target::label(at)), Ok(0xf000_e87e));
    // 0x8002 to 0x8014, as both linkers have it
    assert_eq!(after(R_ARM_THM_CALL, THM_BL, 0x8002, Target::arm(0x8014)), Ok(0xf000_e808));
}

#[test]
fn jumps_do_not_change_state() {
    let at = PLACE + 0x100;
    let refused = Err(ApplyErrorKind::Sequence);
    assert_eq!(after(R_ARM_JUMP24, B, PLACE, Target::arm(at)), Ok(0xea00_003e));
    assert_eq!(after(R_ARM_JUMP24, B, PLACE, Target::thumb(at)), refused);
    assert_eq!(after(R_ARM_CALL, 0x0bff_fffe, PLACE, Target::thumb(at)), refused, "bleq");
    assert_eq!(after(R_ARM_PC24, BL, PLACE, Target::thumb(at)), Ok(0xfa00_003e));
    assert_eq!(after(R_ARM_PC24, B, PLACE, Target::thumb(at)), refused);
    assert_eq!(after(R_ARM_THM_JUMP24, THM_B, PLACE, Target::thumb(at)), Ok(0xf000_b87e));
    for (r#type, word) in [
        (R_ARM_THM_JUMP24, THM_B),
        (R_ARM_THM_JUMP19, 0xf43f_affe),
        (R_ARM_THM_JUMP11, 0xe7fe),
        (R_ARM_THM_JUMP8, 0xd0fe),
        (R_ARM_THM_JUMP6, 0xb100),
    ] {
        let near = PLACE + 0x40;
        assert_eq!(after(r#type, word, PLACE, Target::arm(near)), refused, "{type}");
        let expected = after(r#type, word, PLACE, Target::label(near));
        assert!(expected.is_ok());
        assert_eq!(after(r#type, word, PLACE, Target::thumb(near)), expected, "{type}");
    }
}

#[test]
fn branches_end_where_the_abi_says() {
    // instruction, the base that it counts from, the limits, and what reaches them
    for (r#type, word, base, least, most, first, last) in [
        (R_ARM_CALL, BL, 8, -0x200_0000, 0x1ff_fffc, 0xeb80_0000, 0xeb7f_ffff),
        (R_ARM_JUMP24, B, 8, -0x200_0000, 0x1ff_fffc, 0xea80_0000, 0xea7f_ffff),
        (R_ARM_THM_CALL, THM_BL, 4, -0x100_0000, 0xff_fffe, 0xf400_d000, 0xf3ff_d7ff),
        (R_ARM_THM_JUMP24, THM_B, 4, -0x100_0000, 0xff_fffe, 0xf400_9000, 0xf3ff_97ff),
        (R_ARM_THM_JUMP19, 0xf43f_affe, 4, -0x10_0000, 0xf_fffe, 0xf400_8000, 0xf03f_afff),
        (R_ARM_THM_JUMP11, 0xe7fe, 4, -2048, 2046, 0xe400, 0xe3ff),
        (R_ARM_THM_JUMP8, 0xd0fe, 4, -256, 254, 0xd080, 0xd07f),
        (R_ARM_THM_JUMP6, 0xb3f0, 4, 0, 126, 0xb100, 0xb3f8),
    ] {
        let step = if base == 8 { 4 } else { 2 };
        let result = |distance: i64| {
            let at = PLACE.wrapping_add_signed(base + distance);
            after(r#type, word, PLACE, Target::label(at))
        };
        assert_eq!(result(least), Ok(first), "{type}");
        assert_eq!(result(most), Ok(last), "{type}");
        for beyond in [least - step, most + step] {
            assert!(matches!(result(beyond), Err(ApplyErrorKind::Overflow { .. })), "{type}");
        }
    }
    let between = after(R_ARM_JUMP24, B, PLACE, Target::arm(PLACE + 2));
    assert!(matches!(between, Err(ApplyErrorKind::Unencodable { .. })));
    // BLX is rounded up, out of reach
    let last = PLACE + 2 + 4 + 0xff_fffc;
    assert!(after(R_ARM_THM_CALL, THM_BL, PLACE + 2, Target::arm(last + 2)).is_err());
}

/// Code of the linker's that asks a TLS descriptor.
struct Asks(u64);

impl Resolve for Asks {
    fn resolve(&self, query: &Query) -> Option<u64> {
        (query.role == Role::TlsDescCall).then_some(self.0)
    }

    fn attributes(&self, _: &Query) -> SymbolAttributes {
        SymbolAttributes::new(true, 0).function(true)
    }
}

/// What the instruction holds does not count: assemblers write other addends than into other calls.
#[test]
fn calls_ask_descriptors() {
    let arm = |word, at| after(R_ARM_TLS_CALL, word, PLACE, Asks(at));
    let thumb = |word, at| after(R_ARM_THM_TLS_CALL, word, PLACE, Asks(at));
    for word in [0xeb00_0000, BL, BLX_A32] {
        assert_eq!(arm(word, PLACE + 0x100), Ok(0xfa00_003e));
    }
    for word in [0xf000_f800, THM_BL, THM_BLX] {
        assert_eq!(thumb(word, PLACE + 0x100), Ok(0xf000_f87e));
    }
    assert_eq!(arm(BL, PLACE + 8 + 0x1ff_fffc), Ok(0xfa7f_ffff));
    assert_eq!(arm(BL, PLACE + 8 + 0x200_0000).ok(), None);
    assert_eq!(thumb(THM_BL, PLACE + 4 + 0xff_fffc), Ok(0xf3ff_d7fe));
    assert_eq!(thumb(THM_BL, PLACE + 4 + 0x100_0000).ok(), None);
}

/// What the place of a `REL` relocation holds.
#[test]
fn addends_of_instructions() {
    for (r#type, word, addend) in [
        (R_ARM_CALL, BL, -8),
        (R_ARM_CALL, 0xfbff_fffe, -6),
        (R_ARM_JUMP24, 0xea7f_ffff, 0x1ff_fffc),
        (R_ARM_THM_CALL, THM_BL, -4),
        (R_ARM_THM_CALL, 0xf400_d000, -0x100_0000),
        (R_ARM_THM_CALL, 0xf3ff_d7ff, 0xff_fffe),
        (R_ARM_THM_JUMP24, THM_B, -4),
        (R_ARM_THM_JUMP19, 0xf43f_affe, -4),
        (R_ARM_THM_JUMP19, 0xf400_8000, -0x10_0000),
        (R_ARM_THM_JUMP11, 0xe7fe, -4),
        (R_ARM_THM_JUMP8, 0xd0fe, -4),
        (R_ARM_THM_JUMP6, 0xb3f0, -4),
        (R_ARM_THM_JUMP6, 0xb100, 0),
        (R_ARM_MOVW_ABS_NC, 0xe30f_0ffe, -2),
        (R_ARM_MOVT_ABS, 0xe347_0fff, 0x7fff),
        (R_ARM_THM_MOVW_ABS_NC, 0xf64f_70fe, -2),
        (R_ARM_THM_MOVT_ABS, 0xf6c7_70ff, 0x7fff),
        (R_ARM_LDR_PC_G0, 0xe51f_0008, -8),
        (R_ARM_LDR_PC_G0, 0xe59f_0fff, 0xfff),
        (R_ARM_LDRS_PC_G0, 0xe14f_00b8, -8),
        (R_ARM_LDC_PC_G0, 0xed1f_0b02, -8),
        (R_ARM_ALU_PC_G0, 0xe24f_0008, -8),
        (R_ARM_ALU_PC_G0, 0xe28f_0102, -0x8000_0000),
        (R_ARM_THM_PC8, 0x48ff, -4),
        (R_ARM_THM_PC8, 0x4801, 4),
        (R_ARM_THM_PC12, 0xf85f_0004, -4),
        (R_ARM_THM_ALU_PREL_11_0, 0xf6af_70ff, -0xfff),
        // each part alone: imm8, imm3, i
        (R_ARM_THM_ALU_PREL_11_0, 0xf20f_00ff, 0xff),
        (R_ARM_THM_ALU_PREL_11_0, 0xf20f_7000, 0x700),
        (R_ARM_THM_ALU_PREL_11_0, 0xf6af_0000, -0x800),
        (R_ARM_THM_MOVT_ABS, 0xf2c0_00ff, 0xff),
        (R_ARM_THM_MOVT_ABS, 0xf2c0_7000, 0x700),
        (R_ARM_THM_MOVT_ABS, 0xf6c0_0000, 0x800),
        (R_ARM_THM_MOVT_ABS, 0xf2c7_0000, 0x7000),
        (R_ARM_THM_MOVT_ABS, 0xf2c8_0000, -0x8000),
        // immB, immC, immA and its sign, with T as GNU ld has it
        (R_ARM_THM_BF16, 0xf0c0_e001, 1),
        (R_ARM_THM_BF16, 0xf0c0_e7ff, 0xffd),
        (R_ARM_THM_BF16, 0xf0c0_e801, 3),
        (R_ARM_THM_BF16, 0xf0cf_e001, 0xf001),
        (R_ARM_THM_BF16, 0xf0d0_e001, -0xffff),
        (R_ARM_THM_BF12, 0xf0c0_efff, 0xfff),
        (R_ARM_THM_BF12, 0xf0c1_e001, -0xfff),
        (R_ARM_THM_BF18, 0xf0bf_e001, 0x3_f001),
        (R_ARM_THM_BF18, 0xf0c0_e001, -0x3_ffff),
        (R_ARM_THM_ABS5, 0x6fc0, 0x7c),
        (R_ARM_THM_ALU_ABS_G3, 0x20ff, 0xff),
        (R_ARM_PREL31, 0x7fff_fffc, -4),
        (R_ARM_PREL31, 0x8000_0004, 4),
        (R_ARM_ABS16, 0xffff, -1),
        (R_ARM_TLS_LE12, 0xe590_0fff, 0xfff),
    ] {
        let field = find(KINDS, r#type).unwrap().field;
        let held = field.addend_at(&bytes(&field, word), false);
        assert_eq!(held, Some(addend), "{type} {word:#x}");
    }
    let alu = find(KINDS, R_ARM_ALU_PC_G0).unwrap().field;
    assert_eq!(alu.addend(0xe59f_0000), None, "a load adds nothing");
}

#[test]
fn halves_carry() {
    // S = 0x1ffff and A = 0x7fff in both: 0x27ffe
    let target = Target::label(0x1_ffff);
    assert_eq!(after(R_ARM_MOVW_ABS_NC, 0xe307_0fff, 0, target), Ok(0xe307_0ffe));
    assert_eq!(after(R_ARM_MOVT_ABS, 0xe347_0fff, 0, target), Ok(0xe340_0002));
    assert_eq!(after(R_ARM_THM_MOVW_ABS_NC, 0xf647_70ff, 0, target), Ok(0xf647_70fe));
    assert_eq!(after(R_ARM_THM_MOVT_ABS, 0xf6c7_70ff, 0, target), Ok(0xf2c0_0002));
    // T is part of the lower half alone
    let thumb = Target::thumb(0x1234_5678);
    assert_eq!(after(R_ARM_THM_MOVW_ABS_NC, 0xf240_0000, 0, thumb), Ok(0xf245_6079));
    assert_eq!(after(R_ARM_THM_MOVT_ABS, 0xf2c0_0000, 0, thumb), Ok(0xf2c1_2034));
    let bytes = [
        (R_ARM_THM_ALU_ABS_G0_NC, 0x2079),
        (R_ARM_THM_ALU_ABS_G1_NC, 0x2056),
        (R_ARM_THM_ALU_ABS_G2_NC, 0x2034),
        (R_ARM_THM_ALU_ABS_G3, 0x2012),
    ];
    for (r#type, expected) in bytes {
        assert_eq!(after(r#type, 0x2000, 0, thumb), Ok(expected));
    }
}

#[test]
fn states_are_part_of_addresses() {
    let (thumb, arm) = (Target::thumb(0x8000), Target::arm(0x8000));
    for (r#type, expected) in [
        (R_ARM_ABS32, 0x8001),
        (R_ARM_TARGET1, 0x8001),
        (R_ARM_REL32, 0x7001),
        (R_ARM_PREL31, 0x7001),
        (R_ARM_ABS32_NOI, 0x8000),
        (R_ARM_REL32_NOI, 0x7000),
    ] {
        assert_eq!(after(r#type, 0, 0x1000, thumb), Ok(expected), "{type}");
        assert_eq!(after(r#type, 0, 0x1000, arm), Ok(expected & !1), "{type}");
    }
    // bit 31 of PREL31 belongs to others
    assert_eq!(after(R_ARM_PREL31, 0x8000_0000, 0x9000, arm), Ok(0xffff_f000));
    for (at, fits) in [(0x4000_0000 - 4, true), (0x4000_0000, false)] {
        assert_eq!(after(R_ARM_PREL31, 0, 0, Target::arm(at)).is_ok(), fits);
    }
}

#[test]
fn branches_to_nothing_go_on() {
    struct Weak;
    impl Resolve for Weak {
        fn resolve(&self, query: &Query) -> Option<u64> {
            Arm::undefined_weak(query)
        }
    }
    for (r#type, word, next) in [
        (R_ARM_CALL, BL, 0xebff_ffff),
        (R_ARM_JUMP24, B, 0xeaff_ffff),
        (R_ARM_THM_CALL, THM_BL, 0xf000_f800),
        (R_ARM_THM_JUMP24, THM_B, 0xf000_b800),
        (R_ARM_THM_JUMP19, 0xf43f_affe, 0xf000_8000),
        (R_ARM_THM_JUMP11, 0xe7fe, 0xe7ff),
        (R_ARM_THM_JUMP8, 0xd0fe, 0xd0ff),
    ] {
        assert_eq!(after(r#type, word, PLACE, Weak), Ok(next), "{type}");
    }
    // what counts from its place is its addend
    assert_eq!(after(R_ARM_REL32, 12, PLACE, Weak), Ok(12));
}

#[test]
fn groups_make_the_distance() {
    const ADD: u32 = 0xe28f_0000;
    // 0x1234567 behind, and before
    for (r#type, word, up, down) in [
        (R_ARM_ALU_PC_G0_NC, ADD, 0xe28f_0748, 0xe24f_0748),
        (R_ARM_ALU_PC_G1_NC, ADD, 0xe28f_0bd1, 0xe24f_0bd1),
        (R_ARM_LDR_PC_G2, 0xe59f_0000, 0xe59f_0167, 0xe51f_0167),
    ] {
        let at = |distance: i64| Target::label(PLACE.wrapping_add_signed(distance));
        assert_eq!(after(r#type, word, PLACE, at(0x0123_4567)), Ok(up), "{type}");
        assert_eq!(after(r#type, word, PLACE, at(-0x0123_4567)), Ok(down), "{type}");
    }
    let result = |r#type, word, distance: u64| {
        after(r#type, word, PLACE, Target::label(PLACE + distance)).is_ok()
    };
    for (r#type, word, most) in [
        (R_ARM_LDR_PC_G0, 0xe59f_0000, 0xfff),
        (R_ARM_LDRS_PC_G0, 0xe1cf_00b0, 0xff),
        (R_ARM_ALU_PC_G0, ADD, 0xff),
        (R_ARM_THM_PC12, 0xf8df_0000, 0xfff),
        (R_ARM_THM_ALU_PREL_11_0, 0xf20f_0000, 0xfff),
    ] {
        assert!(result(r#type, word, most), "{type}");
        assert!(!result(r#type, word, most + 2), "{type}");
    }
    // adr.w of its own place adds 0
    let here = after(R_ARM_THM_ALU_PREL_11_0, 0xf2af_0000, PLACE, Target::label(PLACE));
    assert_eq!(here, Ok(0xf20f_0000));
    assert!(result(R_ARM_LDC_PC_G0, 0xed9f_0b00, 0x3fc));
    assert!(!result(R_ARM_LDC_PC_G0, 0xed9f_0b00, 0x3fe), "no multiple of 4");
    assert!(!result(R_ARM_LDC_PC_G0, 0xed9f_0b00, 0x400));
    assert!(result(R_ARM_LDR_PC_G1, 0xe59f_0000, 0xff_0fff));
    assert!(!result(R_ARM_LDR_PC_G1, 0xe59f_0000, 0xff_1fff));
}

/// The offsets of loads have a sign, whatever they count from.
#[test]
fn loads_count_either_way() {
    // ldr r1, [r0, #8] and ldr r1, [r0, #-8]
    let (up, down) = (0xe590_1008, 0xe510_1008);
    for number in [
        R_ARM_ABS12,
        R_ARM_GOT_BREL12,
        R_ARM_GOTOFF12,
        R_ARM_TLS_LDO12,
        R_ARM_TLS_LE12,
        R_ARM_TLS_IE12GP,
    ] {
        let kind = find(KINDS, number).unwrap();
        let base = if kind.value.minus == Role::GotBase { 0x1000 } else { 0 };
        let result = |word, value: u64| {
            after(number, word, PLACE, move |query: &Query| match query.role {
                Role::GotBase => Some(base),
                _ => Some(value.wrapping_add(base)),
            })
        };
        assert_eq!(result(up, 4), Ok(0xe590_100c), "{}", kind.name);
        assert_eq!(result(down, 4), Ok(0xe510_1004), "{}", kind.name);
        assert_eq!(result(down, 8), Ok(0xe590_1000), "{}", kind.name);
        assert_eq!(result(up, 0xff7), Ok(0xe590_1fff), "{}", kind.name);
        assert!(result(up, 0xff8).is_err(), "{}", kind.name);
        assert_eq!(result(down, 0u64.wrapping_sub(0xff7)), Ok(0xe510_1fff), "{}", kind.name);
        assert!(result(down, 0u64.wrapping_sub(0xff8)).is_err(), "{}", kind.name);
    }
}

/// What counts from Pa is A, or 0 where an offset has no sign, of a weak symbol that nobody defines.
#[test]
fn literals_that_nobody_defines() {
    for place in [PLACE, PLACE + 2] {
        let weak = |query: &Query| Arm::undefined_weak(query);
        // ldr r0, [pc, #-4 modulo 1024]; adr.w r0, #-4; ldr.w r0, [pc, #-4]
        assert_eq!(after(R_ARM_THM_PC8, 0x48ff, place, weak), Ok(0x4800));
        assert_eq!(after(R_ARM_THM_ALU_PREL_11_0, 0xf2af_0004, place, weak), Ok(0xf2af_0004));
        assert_eq!(after(R_ARM_THM_PC12, 0xf85f_0004, place, weak), Ok(0xf85f_0004));
    }
}

#[test]
fn hints_that_do_not_reach_are_nothing() {
    // bf .+8 to a target in reach, and to one that is not
    let result = |at| after(R_ARM_THM_BF16, 0xf0c0_e001, PLACE, Target::label(PLACE + at));
    assert_eq!(result(0x10), Ok(0xf0c0_e009));
    assert_eq!(result(0x1_0000), Ok(0xf3af_8000));
}

/// Functions without T are Thumb code all the same where there is no other.
#[test]
fn microcontrollers_have_one_state() {
    let target = Target::arm(PLACE + 0x104);
    let there = Target { attributes: target.attributes.on(J1J2 | MICROCONTROLLER), ..target };
    for (r#type, word, stays) in [
        (R_ARM_THM_CALL, 0xf7ff_fffe, 0xf000_f880),
        (R_ARM_THM_JUMP24, 0xf7ff_bffe, 0xf000_b880),
        (R_ARM_THM_JUMP19, 0xf43f_affe, 0xf000_8080),
    ] {
        assert_eq!(after(r#type, word, PLACE, there), Ok(stays));
        assert_ne!(after(r#type, word, PLACE, target), Ok(stays));
    }
}

/// Bits that BL has had since Armv6T2 would be other instructions to processors before that.
#[test]
fn early_processors_branch_less_far() {
    let result = |at: i64, processor| {
        let target = PLACE.wrapping_add_signed(at);
        let results = [Target::label(target), Target::thumb(target), Target::arm(target & !3)].map(
            |Target { address, attributes }| {
                let target = Target { address, attributes: attributes.on(processor) };
                after(R_ARM_THM_CALL, 0xf7ff_fffe, PLACE, target).is_ok()
            },
        );
        assert!(results.iter().all(|it| *it == results[0]), "{at:#x}");
        results[0]
    };
    assert!(result(0x40_0002, SHORT_BRANCHES));
    assert!(!result(0x40_0004, SHORT_BRANCHES));
    assert!(result(-0x3f_fffc, SHORT_BRANCHES));
    assert!(!result(-0x40_0004, SHORT_BRANCHES));
    // another object is for later ones, or nothing is known of any
    assert!(result(0x40_0004, SHORT_BRANCHES | J1J2));
    assert!(result(0x40_0004, 0));
}

fn code(stub: &Stub) -> Vec<u32> {
    let mut bytes = stub.code.to_vec();
    let entry = |query: &Query| (query.role == Role::Got(Slot::Address)).then_some(PLACE + 0x1000);
    for it in stub.relocations {
        let record =
            Record { offset: it.offset, symbol: 1, r#type: it.r#type, addend: Some(it.addend) };
        let mut section = SectionMut { bytes: &mut bytes, address: PLACE, big_endian: false };
        apply::<Arm>(&record, &mut section, &entry).unwrap();
    }
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn stubs_jump_through_the_got_entry() {
    let [thumb, arm, wide] = Arm::STUBS else { panic!("three stubs") };
    // the last word leads from the program counter where it is added to the entry
    assert_eq!(code(thumb), [0x4803_b401, 0x6800_4478, 0xbc01_4684, 0x46c0_4760, 0x1000 - 8]);
    assert_eq!(code(arm), [0xe59f_c004, 0xe79f_c00c, 0xe12f_ff1c, 0x1000 - 12]);
    assert_eq!(code(wide), [0xc008_f8df, 0xf8dc_44fc, 0xbf00_f000, 0x1000 - 8]);
    assert_eq!([thumb, arm, wide].map(|stub| stub.is_thumb), [true, false, true]);
}

#[test]
fn processors_decide_about_stubs() {
    let (arm, thumb) = (Target::arm(0).attributes, Target::thumb(0).attributes);
    let label = SymbolAttributes::default();
    let choice = |r#type, target: SymbolAttributes, processor| {
        let choice = Arm::stub(find(KINDS, r#type).unwrap(), target.on(processor));
        choice.map(|choice| (choice.stub, choice.always))
    };
    const V7: u32 = BLX | J1J2 | THUMB2;
    // BL changes state where there is BLX
    assert_eq!(choice(R_ARM_CALL, thumb, V7), Some((1, false)));
    assert_eq!(choice(R_ARM_CALL, thumb, 0), Some((1, true)));
    assert_eq!(choice(R_ARM_JUMP24, thumb, V7), Some((1, true)));
    assert_eq!(choice(R_ARM_JUMP24, arm, V7), Some((1, false)));
    assert_eq!(choice(R_ARM_THM_CALL, arm, V7), Some((2, false)));
    assert_eq!(choice(R_ARM_THM_CALL, arm, BLX), Some((0, false)));
    assert_eq!(choice(R_ARM_THM_CALL, arm, 0), Some((0, true)));
    assert_eq!(choice(R_ARM_THM_JUMP24, arm, V7), Some((2, true)));
    assert_eq!(choice(R_ARM_THM_JUMP19, thumb, V7), Some((2, false)));
    // Armv6-M
    assert_eq!(choice(R_ARM_THM_CALL, thumb, J1J2), Some((0, false)));
    assert_eq!(choice(R_ARM_THM_CALL, thumb, J1J2 | MICROCONTROLLER), Some((0, false)));
    // there is no Arm code
    assert_eq!(choice(R_ARM_THM_CALL, arm, J1J2 | MICROCONTROLLER), None);
    assert_eq!(choice(R_ARM_THM_JUMP24, arm, J1J2 | THUMB2 | MICROCONTROLLER), None);
    // the personality routine of an unwinding table, wherever it is
    for target in [arm, thumb, label] {
        assert_eq!(choice(R_ARM_PREL31, target, V7), Some((0, false)));
    }
    // how far BL goes
    let span = |processor| {
        Arm::stub(find(KINDS, R_ARM_THM_CALL).unwrap(), thumb.on(processor)).unwrap().within
    };
    assert_eq!([span(BLX), span(V7)], [Some(Check::Signed(23)), None]);
    // a label of Thumb code would be taken for Arm code
    assert_eq!(choice(R_ARM_THM_CALL, label, V7), None);
    assert_eq!(choice(R_ARM_THM_JUMP11, thumb, V7), None);
}
