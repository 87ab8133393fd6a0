//! The kinds of Arm that count from where a segment or the GOT is, or lead to an entry there. Sections and the GOT of all linkers are at the
//! same addresses, and the GOT has one entry: all that varies is the addend.

use archs::Architecture;
use elf_core::names::{STT_FUNC, STT_NOTYPE};
use elf_core::{Arch, Kind, Order, Role};

use crate::arm::values;
use crate::cases::{Case, STEP, Target, Wanted, base};
use crate::linked::GOT;

/// Whether the kind is one of those.
pub(crate) fn concerns(kind: &Kind) -> bool {
    matches!(kind.value.of, Role::Got(_) | Role::GotBase | Role::TypeInfo)
        || matches!(kind.value.minus, Role::GotBase | Role::SegmentBase)
}

/// The cases of a kind; none of one that no linker knows.
pub(crate) fn cases(kind: &'static Kind) -> Vec<Case> {
    match kind.value.minus {
        Role::SegmentBase => in_segment(kind),
        _ => in_table(kind),
    }
}

/// A place that holds the word.
fn case(kind: &Kind, offset: usize, word: u32, target: Target, value: i64) -> Case {
    let bytes = match kind.field.order {
        Order::Halfwords => word.rotate_left(16).to_le_bytes().to_vec(),
        _ => word.to_le_bytes().to_vec(),
    };
    let record = Wanted { at: 0, r#type: kind.number, target, addend: 0 };
    Case { offset, bytes, records: vec![record], value }
}

/// So far behind the start of a segment, or before it.
fn in_segment(kind: &Kind) -> Vec<Case> {
    let mut cases = Vec::new();
    for value in values(kind) {
        // what is before the start of the section is so by its addend
        let Some((word, addend)) = instruction(kind.name, value.min(0)) else { continue };
        let Some(distance) = u32::try_from(value - addend).ok().filter(|it| *it >> 31 == 0) else {
            continue;
        };
        for symbol_type in [STT_NOTYPE, STT_FUNC] {
            let thumb = u32::from(symbol_type == STT_FUNC);
            // lld adds T to an odd addend
            if (distance | addend as u32) & thumb != 0 {
                continue;
            }
            let target = Target::Data((distance | thumb).into(), symbol_type);
            cases.push(case(kind, cases.len() * STEP, word, target, value));
        }
    }
    cases
}

/// An instruction whose addend is at most `most`, next to it, and the addend.
fn instruction(name: &str, most: i64) -> Option<(u32, i64)> {
    let size = u32::try_from(-most).ok()?;
    let signed = || (size <= 0x8000).then(|| 0u32.wrapping_sub(size) & 0xffff);
    let (word, size) = match name {
        // GNU ld turns addends in 64 bits, and loses what goes beyond 32
        _ if name.starts_with("R_ARM_ALU_SB_G") => {
            (size <= 0xff).then_some((0xe249_0000 | size, size))?
        }
        _ if name.starts_with("R_ARM_LDR_SB_G") => {
            (size <= 0xfff).then_some((0xe519_0000 | size, size))?
        }
        _ if name.starts_with("R_ARM_LDRS_SB_G") => {
            let parts = (size & 0xf0) << 4 | size & 0xf;
            (size <= 0xff).then_some((0xe159_00b0 | parts, size))?
        }
        _ if name.starts_with("R_ARM_LDC_SB_G") => {
            let held = size.next_multiple_of(4);
            (held <= 0x3fc).then_some((0xed19_0b00 | held >> 2, held))?
        }
        "R_ARM_MOVW_BREL_NC" | "R_ARM_MOVW_BREL" | "R_ARM_MOVT_BREL" => {
            let held = signed()?;
            let opcode = if name == "R_ARM_MOVT_BREL" { 0xe340_0000 } else { 0xe300_0000 };
            (opcode | (held & 0xf000) << 4 | held & 0xfff, size)
        }
        "R_ARM_THM_MOVW_BREL_NC" | "R_ARM_THM_MOVW_BREL" | "R_ARM_THM_MOVT_BREL" => {
            let held = signed()?;
            let opcode = if name == "R_ARM_THM_MOVT_BREL" { 0xf2c0_0000 } else { 0xf240_0000 };
            let parts = (held & 0xf000) << 4 | (held & 0x800) << 15 | (held & 0x700) << 4;
            (opcode | parts | held & 0xff, size)
        }
        "R_ARM_SBREL32" => (0u32.wrapping_sub(size), size),
        _ => return None,
    };
    Some((word, -i64::from(size)))
}

/// An entry, or something so far from the table.
fn in_table(kind: &Kind) -> Vec<Case> {
    const ADDRESS: u64 = 0x1234_5678;
    let got = (base(4) + GOT) as u32;
    let is_from_place = kind.value.minus == Role::Place;
    let (target, is_table) = match kind.name {
        "R_ARM_GOT_BREL" => (Target::Shared(ADDRESS), false),
        "R_ARM_GOT_PREL" | "R_ARM_TARGET2" => (Target::Shared(ADDRESS), true),
        "R_ARM_TLS_GD32" | "R_ARM_TLS_LDM32" | "R_ARM_TLS_IE32" => (Target::SharedVariable, true),
        "R_ARM_BASE_PREL" => (Target::Got, true),
        "R_ARM_GOTOFF32" => (Target::Got, false),
        _ => return Vec::new(),
    };
    let mut cases: Vec<Case> = Vec::new();
    for value in values(kind) {
        let offset = cases.len() * STEP;
        let place = if is_from_place { base(4) as u32 + offset as u32 } else { 0 };
        let start = if is_table { got } else { 0 };
        let word = (value as u32).wrapping_sub(start).wrapping_add(place);
        if kind.name != "R_ARM_GOTOFF32" {
            cases.push(case(kind, offset, word, target, value));
            continue;
        }
        for symbol_type in [STT_NOTYPE, STT_FUNC] {
            let thumb = u32::from(symbol_type == STT_FUNC);
            let symbol = (value as u32).wrapping_add(got).wrapping_sub(8);
            if symbol & thumb == 0 {
                let target = Target::Absolute((symbol | thumb).into(), symbol_type);
                cases.push(case(kind, cases.len() * STEP, 8, target, value));
            }
        }
    }
    // the GOT is behind the code, and has an entry
    let last = GOT as usize - STEP;
    let mut end = cases.first().expect("a case").clone();
    end.offset = last;
    if kind.value.of == Role::GotBase || kind.name == "R_ARM_GOTOFF32" {
        let kinds = archs::with_arch!(Architecture::Arm, A => <A as Arch>::KINDS);
        let entry = kinds.iter().find(|kind| kind.name == "R_ARM_GOT_BREL").expect("a row");
        end = case(entry, last, 0, Target::Shared(ADDRESS), 0);
    } else if is_from_place {
        let word = got.wrapping_neg().wrapping_add(base(4) as u32 + last as u32);
        end = case(kind, last, word, target, 0);
    }
    cases.push(end);
    cases
}
