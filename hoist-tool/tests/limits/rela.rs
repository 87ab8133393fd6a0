//! Instructions and data of RISC-V and LoongArch with relocations that come to the values about which anything may change.

use std::collections::BTreeSet;

use archs::Architecture;
use elf_core::names::STT_NOTYPE;
use elf_core::{Check, Kind, Page, Role};

use crate::cases::{Case, STEP, Target, Wanted, base};

/// What is put at the place: instructions, or data that the relocation counts from.
fn words(name: &str, size: usize) -> Vec<u8> {
    const DATA: [u8; 8] = [0x5a, 0xc3, 0x96, 0x3c, 0x69, 0xf0, 0x0f, 0xa5];
    let words: &[u32] = match name.split_once('_').map_or(name, |(_, name)| name) {
        "RISCV_BRANCH" => &[0x00b5_0063],
        "RISCV_JAL" => &[0x6f],
        "RISCV_CALL" | "RISCV_CALL_PLT" => &[0x97, 0x80e7],
        "RISCV_HI20" | "RISCV_TPREL_HI20" => &[0x537],
        "RISCV_PCREL_HI20" => &[0x517],
        "RISCV_LO12_I" | "RISCV_TPREL_LO12_I" => &[0x5_0513],
        "RISCV_LO12_S" | "RISCV_TPREL_LO12_S" => &[0x00b5_2023],
        "RISCV_PCREL_LO12_I" => &[0x517, 0x5_0513],
        "RISCV_PCREL_LO12_S" => &[0x517, 0x00b5_2023],
        "RISCV_RVC_BRANCH" => &[0xc101],
        "RISCV_RVC_JUMP" => &[0xa001],
        "RISCV_RVC_LUI" => &[0x6501],
        "LARCH_B16" => &[0x5800_0000],
        "LARCH_B21" => &[0x4000_0000],
        "LARCH_B26" => &[0x5000_0000],
        "LARCH_PCREL20_S2" => &[0x1800_0004],
        "LARCH_CALL36" => &[0x1e00_0001, 0x4c00_0021],
        "LARCH_CALL30" => &[0x1c00_0001, 0x4c00_0021],
        "LARCH_PCALA_HI20" => &[0x1a00_0004],
        "LARCH_ABS_HI20" | "LARCH_TLS_LE_HI20" | "LARCH_TLS_LE_HI20_R" => &[0x1400_0004],
        "LARCH_PCALA_LO12" | "LARCH_TLS_LE_LO12_R" => &[0x02c0_0084],
        "LARCH_ABS_LO12" | "LARCH_TLS_LE_LO12" => &[0x0380_0084],
        "LARCH_PCADD_HI20" => &[0x1c00_0004],
        "LARCH_PCADD_LO12" => &[0x1c00_0004, 0x02c0_0084],
        "LARCH_PCALA64_LO20" | "LARCH_PCALA64_HI12" => {
            &[0x1a00_0004, 0x02c0_0005, 0x1600_0005, 0x0300_00a5]
        }
        "LARCH_ABS64_LO20" | "LARCH_ABS64_HI12" | "LARCH_TLS_LE64_LO20" | "LARCH_TLS_LE64_HI12" => {
            &[0x1400_0004, 0x0380_0084, 0x1600_0004, 0x0300_0084]
        }
        name if name.ends_with("ULEB128") => return vec![0x80, 0x80, 0x80, 0x80, 0],
        _ => return DATA[..size].to_vec(),
    };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if size == 2 { bytes[..2].to_vec() } else { bytes }
}

/// The other relocations of the sequence that a kind is part of, by name, and how far from its start each is; the one of this kind
/// included.
fn sequence(name: &str) -> Option<Vec<(u64, String)>> {
    let (family, _) = name.split_once("64_")?;
    let family = family.strip_suffix("_TLS_LE").map_or(family, |_| "R_LARCH_TLS_LE");
    let is_four = ["LO20", "HI12"].iter().any(|end| name.ends_with(end));
    let parts = [(0, "_HI20"), (4, "_LO12"), (8, "64_LO20"), (12, "64_HI12")];
    is_four.then(|| parts.map(|(at, part)| (at, format!("{family}{part}"))).to_vec())
}

/// Where anything may change: about the limits, and about every power of two.
fn values(kind: &Kind, address_size: u64) -> BTreeSet<i64> {
    let bits = if address_size == 4 { 31 } else { 63 };
    let mut values: BTreeSet<i64> = (0..bits)
        .flat_map(|bit| [-2, -1, 0, 1, 2].map(|by| (1i64 << bit) + by))
        .chain([0x1234_5678, 0x1800, 0xffff_f7ff, 0xffff_f800])
        .collect();
    values.extend(values.clone().iter().map(|value| -value));
    if kind.check != Check::Any {
        let (least, most) = kind.check.limits();
        values.extend((-4..=4).flat_map(|by| [(least + by) as i64, (most + by) as i64]));
        if kind.value.page == Page::Nearest {
            let about = [-0x1001, -0x1000, -0x801, -0x800, -1, 0, 0x7ff, 0x800, 0xfff, 0x1000];
            let ends = [least, most + 1];
            values.extend(ends.iter().flat_map(|end| about.map(|by| (end + by) as i64)));
        }
    }
    if address_size == 4 {
        values.retain(|value| i32::try_from(*value).is_ok());
    }
    values
}

/// The cases of a kind.
pub(crate) fn cases(machine: Architecture, address_size: u64, kind: &'static Kind) -> Vec<Case> {
    let kinds = archs::with_arch!(machine, A => <A as elf_core::Arch>::KINDS);
    let number = |name: &str| kinds.iter().find(|kind| kind.name == name).expect(name).number;
    // its other half is in the cases of the first; of 32 bits nobody has these
    let is_left = ["R_RISCV_64", "R_RISCV_TLS_DTPREL64"].contains(&kind.name) && address_size == 4;
    if kind.name == "R_RISCV_SUB_ULEB128" || is_left {
        return Vec::new();
    }
    let bytes = words(kind.name, kind.field.bytes());
    let mut cases = Vec::new();
    for value in values(kind, address_size) {
        let offset = cases.len() * STEP;
        let place = base(address_size) + offset as u64;
        let bias = if machine == Architecture::LoongArch64 { 0 } else { 0x800 };
        let is_variable = kind.name.contains("_TPREL_")
            || kind.name.contains("_TLS_LE")
            || kind.name.contains("_DTPREL");
        let (target, addend) = if is_variable {
            let bias = if kind.value.of == Role::DtpOffset { bias } else { 0 };
            (Target::Variable(0), value.wrapping_add(bias))
        } else {
            let is_distance = kind.value.minus == Role::Place || kind.name.contains("PC");
            let minus = match kind.value.page {
                _ if !is_distance => 0,
                Page::Neither => place,
                _ => place & !0xfff,
            };
            // linkers count distances beyond the ends of what there is
            let Some(address) =
                minus.checked_add_signed(value).or((minus == 0).then_some(value as u64))
            else {
                continue;
            };
            if minus != 0 && address >> (8 * address_size - 1) != 0 {
                continue;
            }
            let addend = if cases.len() % 2 == 0 || address < 0x24 { 0 } else { 0x24 };
            let address = address.wrapping_sub_signed(addend);
            let address = if address_size == 4 { address & 0xffff_ffff } else { address };
            (Target::Absolute(address, STT_NOTYPE), addend)
        };
        let wanted = |at, r#type| Wanted { at, r#type, target, addend };
        let label = |at, r#type| Wanted { at, r#type, target: Target::Label, addend: 0 };
        let records = match kind.name {
            "R_RISCV_PCREL_LO12_I" | "R_RISCV_PCREL_LO12_S" => {
                vec![wanted(0, number("R_RISCV_PCREL_HI20")), label(4, kind.number)]
            }
            "R_LARCH_PCADD_LO12" => {
                vec![wanted(0, number("R_LARCH_PCADD_HI20")), label(4, kind.number)]
            }
            "R_RISCV_SET_ULEB128" => {
                let nothing = Wanted {
                    target: Target::Absolute(0, STT_NOTYPE),
                    addend: 0,
                    ..wanted(0, number("R_RISCV_SUB_ULEB128"))
                };
                vec![wanted(0, kind.number), nothing]
            }
            name => match sequence(name) {
                Some(parts) => parts.iter().map(|(at, name)| wanted(*at, number(name))).collect(),
                None if kind.value.of == Role::Partner => return Vec::new(),
                None => vec![wanted(0, kind.number)],
            },
        };
        cases.push(Case { offset, bytes: bytes.clone(), records, value });
    }
    cases
}
