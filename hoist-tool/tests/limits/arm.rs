//! Instructions and data of Arm with relocations that come to the values about which anything may change.

use std::collections::BTreeSet;

use elf_core::names::{STT_FUNC, STT_NOTYPE};
use elf_core::{Check, Kind, Order, Page, Role};

use crate::cases::{Case, STEP, Target, Wanted, base};

/// An instruction that a kind is for, whose addend a compiler would have written.
fn instruction(kind: &Kind) -> u32 {
    match kind.name {
        "R_ARM_PC24" | "R_ARM_PLT32" | "R_ARM_JUMP24" => 0xeaff_fffe,
        "R_ARM_CALL" => 0xebff_fffe,
        "R_ARM_THM_CALL" => 0xf7ff_fffe,
        "R_ARM_THM_JUMP24" => 0xf7ff_bffe,
        "R_ARM_THM_JUMP19" => 0xf43f_affe,
        "R_ARM_THM_JUMP11" => 0xe7fe,
        "R_ARM_THM_JUMP8" => 0xd0fe,
        "R_ARM_THM_JUMP6" => 0xb3f0,
        "R_ARM_MOVW_ABS_NC" | "R_ARM_MOVW_PREL_NC" => 0xe300_0004,
        "R_ARM_MOVT_ABS" | "R_ARM_MOVT_PREL" => 0xe340_0004,
        "R_ARM_THM_MOVW_ABS_NC" | "R_ARM_THM_MOVW_PREL_NC" => 0xf240_0004,
        "R_ARM_THM_MOVT_ABS" | "R_ARM_THM_MOVT_PREL" => 0xf2c0_0004,
        name if name.starts_with("R_ARM_ALU_PC_G") => 0xe24f_0008,
        name if name.starts_with("R_ARM_LDRS_PC_G") => 0xe14f_00b8,
        name if name.starts_with("R_ARM_LDC_PC_G") => 0xed1f_0b02,
        "R_ARM_LDR_PC_G0" | "R_ARM_LDR_PC_G1" | "R_ARM_LDR_PC_G2" => 0xe51f_0008,
        "R_ARM_ABS12" | "R_ARM_TLS_LE12" | "R_ARM_TLS_LDO12" => 0xe590_0000,
        "R_ARM_THM_ABS5" => 0x6800,
        "R_ARM_THM_PC8" => 0x48ff,
        "R_ARM_THM_PC12" => 0xf85f_0004,
        "R_ARM_THM_ALU_PREL_11_0" => 0xf2af_0004,
        name if name.starts_with("R_ARM_THM_ALU_ABS_G") => 0x3004,
        "R_ARM_THM_BF16" | "R_ARM_THM_BF12" => 0xf0c0_e001,
        "R_ARM_THM_BF18" => 0xf080_c001,
        "R_ARM_PREL31" => 0x8000_0000,
        _ => 0,
    }
}

/// Where anything may change: about the limits, about the ends of fields, and about every power of two.
pub(crate) fn values(kind: &Kind) -> BTreeSet<i64> {
    let mut values: BTreeSet<i64> = (0..32)
        .flat_map(|bit| {
            let power = 1i64 << bit;
            [power - 2, power - 1, power, power + 1, power + 2]
        })
        .collect();
    values.extend([
        0x3fc,
        0x3fe,
        0x7c,
        0x7e,
        0x00ff_0fff,
        0x00ff_1000,
        0x0ff0_0fff,
        0x1234_5678,
        0x0012_3456,
    ]);
    values.extend(values.clone().iter().map(|value| -value));
    if kind.check != Check::Any {
        let (least, most) = kind.check.limits();
        values.extend((-4..=4).flat_map(|by| [least as i64 + by, most as i64 + by]));
    }
    values.retain(|value| i32::try_from(*value).is_ok());
    values
}

fn is_thumb(kind: &Kind) -> bool {
    kind.field.order == Order::Halfwords || (kind.field.bytes() == 2 && kind.name != "R_ARM_ABS16")
}

/// Whether a linker may go by way of a veneer.
fn has_veneers(kind: &Kind) -> bool {
    kind.value.of == Role::Plt
}

/// The cases of a kind.
pub(crate) fn cases(kind: &Kind) -> Vec<Case> {
    let base = base(4) as u32;
    let word = instruction(kind);
    let bytes = match (kind.field.order, kind.field.bytes()) {
        (Order::Halfwords, _) => word.rotate_left(16).to_le_bytes().to_vec(),
        (_, size) => word.to_le_bytes()[..size].to_vec(),
    };
    let addend = kind.field.addend_at(&bytes, false).expect("an instruction of the kind") as u32;
    let is_variable = matches!(kind.value.of, Role::TpOffset | Role::DtpOffset);
    let mut cases = Vec::new();
    for value in values(kind) {
        // a symbol that is no function has the state of the instruction
        let types: &[u8] = if is_variable { &[STT_NOTYPE] } else { &[STT_NOTYPE, STT_FUNC] };
        for &symbol_type in types {
            let offset = cases.len() * STEP + if is_thumb(kind) { cases.len() % 2 * 2 } else { 0 };
            let place = base + offset as u32;
            let minus = match (kind.value.minus, kind.value.page) {
                (Role::Zero, _) => 0,
                (_, Page::MinusWord) => place & !3,
                _ => place,
            };
            let block = if kind.value.of == Role::TpOffset { 8 } else { 0 };
            // linkers count beyond 2^32
            let exact = value + i64::from(minus) - i64::from(addend as i32);
            if minus != 0 && u32::try_from(exact).is_err() {
                continue;
            }
            let mut symbol =
                (value as u32).wrapping_add(minus).wrapping_sub(addend).wrapping_sub(block);
            if has_veneers(kind) || kind.branch.is_some() {
                // out of reach there may be veneers, and no linker refuses
                let (least, most) = kind.check.limits();
                let inside = (least + 8..=most - 8).contains(&i128::from(value));
                let is_far = !(least..=most).contains(&i128::from(value));
                let is_call = matches!(kind.name, "R_ARM_CALL" | "R_ARM_THM_CALL");
                if has_veneers(kind) && is_far
                    || value % 2 != 0
                    || (is_call && !inside && symbol_type == STT_FUNC)
                {
                    continue;
                }
                // functions of Thumb code: of the same state, or for BLX
                if symbol_type == STT_FUNC && (is_thumb(kind) || is_call) && (value / 2) % 3 != 0 {
                    symbol |= 1;
                }
                let stays = is_thumb(kind) != (symbol & 1 == 0);
                if symbol_type == STT_FUNC && !stays && !is_call {
                    continue;
                }
                if symbol_type == STT_FUNC && is_call && symbol & 3 == 2 {
                    continue;
                }
            } else if symbol_type == STT_FUNC {
                if symbol & 1 != 0 {
                    continue;
                }
                symbol |= 1;
            }
            if is_variable && symbol > 0x7fff_ffff {
                continue;
            }
            let target = match is_variable {
                true => Target::Variable(symbol.into()),
                false => Target::Absolute(symbol.into(), symbol_type),
            };
            // the addend is in the instruction
            let record = Wanted { at: 0, r#type: kind.number, target, addend: 0 };
            cases.push(Case { offset, bytes: bytes.clone(), records: vec![record], value });
        }
    }
    cases
}
