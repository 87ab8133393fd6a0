//! Every kind of Arm whose value does not depend on where a linker has its tables, at its limits and about them, in objects made
//! here: what fits is byte for byte what GNU ld and lld make, what does not is refused by all, place by place.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "arm_limits/object.rs"]
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use elf_core::names::{STT_FUNC, STT_NOTYPE, STT_TLS};
use elf_core::{Arch, Check, File, Kind, Order, Role, Stage};
use elf_layout::{HeapStorage, Options};
use object::{Case, object};

const BASE: u32 = 0x4000_0000;
/// Bytes from one place to the next.
const STEP: usize = 16;

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
fn values(kind: &Kind) -> BTreeSet<i64> {
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
    kind.field.order == Order::Halfwords || (kind.field.bytes == 2 && kind.name != "R_ARM_ABS16")
}

/// Whether a linker may go by way of a veneer.
fn has_veneers(kind: &Kind) -> bool {
    kind.value.of == Role::Plt
}

/// The cases of a kind.
fn cases(kind: &Kind) -> Vec<Case> {
    let word = instruction(kind);
    let bytes = match (kind.field.order, kind.field.bytes) {
        (Order::Halfwords, _) => word.rotate_left(16).to_le_bytes().to_vec(),
        (_, size) => word.to_le_bytes()[..size].to_vec(),
    };
    let addend = kind.field.addend_at(&bytes, false).expect("an instruction of the kind") as u32;
    let is_variable = matches!(kind.value.of, Role::TpOffset | Role::DtpOffset);
    let mut cases = Vec::new();
    for value in values(kind) {
        let types: &[u8] = match (is_variable, has_veneers(kind)) {
            (true, _) => &[STT_TLS],
            // a symbol that is no function has the state of the instruction
            _ => &[STT_NOTYPE, STT_FUNC],
        };
        for &symbol_type in types {
            let offset = cases.len() * STEP + if is_thumb(kind) { cases.len() % 2 * 2 } else { 0 };
            let place = BASE + offset as u32;
            let minus = match (kind.value.minus, kind.value.page) {
                (Role::Zero, _) => 0,
                (_, elf_core::Page::MinusWord) => place & !3,
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
            cases.push(Case {
                offset,
                bytes: bytes.clone(),
                r#type: kind.number,
                symbol,
                symbol_type,
                value,
                is_variable,
            });
        }
    }
    cases
}

/// `.text` as hoist has it.
fn ours(object: &[u8]) -> Option<Vec<u8>> {
    with_arch!(Architecture::Arm, A => linked::<A>(object))
}

fn linked<A: Arch>(object: &[u8]) -> Option<Vec<u8>> {
    let files = [File::parse(object).unwrap()];
    let mut room = HeapStorage::new();
    let options = Options { base: Some(BASE.into()), ..Options::default() };
    let mut layout = room.plan::<A>(&files, options, &mut |_| None).expect("a layout");
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE.into()).ok()?;
    let at = layout.section(0, 1).unwrap() as usize;
    assert_eq!(at, 0);
    let size = files[0].section(1).unwrap().size as usize;
    Some(image[..size].to_vec())
}

/// `.text` as a linker has it, or the places that it complains about.
enum Linked {
    Text(Vec<u8>),
    Refused(BTreeSet<usize>),
    Unknown,
}

fn theirs(linker: &str, object: &[u8], folder: &Path) -> Linked {
    let script = format!(
        "SECTIONS {{ .text {BASE:#x} : {{ *(.text) }} .tdata {:#x} : {{ *(.tdata) }} /DISCARD/ : {{ *(.ARM.exidx*) }} }}",
        BASE + 0x10_0000,
    );
    fs::write(folder.join("script"), script).unwrap();
    fs::write(folder.join("object.o"), object).unwrap();
    let _ = fs::remove_file(folder.join("linked"));
    let mut command = Command::new(linker);
    command.args([
        "-m",
        "armelf_linux_eabi",
        "-static",
        "-e",
        "0",
        "-T",
        "script",
        "-o",
        "linked",
        "object.o",
    ]);
    if linker.contains("lld") {
        command.arg("--error-limit=0");
    } else {
        // without it ten errors are told, and no more
        command.arg("--verbose");
    }
    let output = command.env("LC_ALL", "C").current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("unknown relocation") || text.contains("unsupported relocation") {
        return Linked::Unknown;
    }
    if output.status.success() {
        let bytes = fs::read(folder.join("linked")).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut sections = file.sections().iter();
        let named = |it: &elf_core::SectionHeader| file.section_name(it).unwrap() == ".text";
        let section = sections.find(named).unwrap();
        return Linked::Text(file.section_data(&section).unwrap().to_vec());
    }
    let places = text.split(".text+0x").skip(1).filter_map(|rest| {
        let end = rest.find(|one: char| !one.is_ascii_hexdigit())?;
        usize::from_str_radix(&rest[..end], 16).ok()
    });
    let places: BTreeSet<usize> = places.collect();
    assert!(!places.is_empty(), "{linker}: {text}");
    Linked::Refused(places)
}

/// Where a linker is known to differ: the linker, the kind, for which values, and why.
type Known = (&'static str, &'static str, fn(i64) -> bool, &'static str);
const KNOWN: &[Known] = {
    const fn between(value: i64) -> bool {
        value & 3 == 2
    }
    const fn negative(value: i64) -> bool {
        value < 0
    }
    const fn any(_: i64) -> bool {
        true
    }
    const fn no_literal(value: i64) -> bool {
        value & 3 != 0 || value < 0 || value > 0x3fc
    }
    const CUT: &str = "what does not fit is cut off";
    const EARLY: &str = "a veneer, one instruction before one is needed";
    const UNSIGNED: &str = "no negative values";
    const GNU: &str = "gnueabihf";
    const LLD: &str = "lld";
    &[
        (GNU, "R_ARM_PC24", between, CUT),
        (LLD, "R_ARM_PC24", between, CUT),
        (GNU, "R_ARM_PLT32", between, CUT),
        (LLD, "R_ARM_PLT32", between, CUT),
        (GNU, "R_ARM_CALL", between, CUT),
        (LLD, "R_ARM_CALL", between, CUT),
        (GNU, "R_ARM_JUMP24", between, CUT),
        (LLD, "R_ARM_JUMP24", between, CUT),
        (GNU, "R_ARM_THM_CALL", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_CALL", |value| value == 0xff_fffe, EARLY),
        (GNU, "R_ARM_THM_JUMP24", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_JUMP24", |value| value == 0xff_fffe, EARLY),
        (LLD, "R_ARM_THM_JUMP19", |value| value == 0xf_fffe, EARLY),
        (GNU, "R_ARM_ABS16", negative, UNSIGNED),
        (GNU, "R_ARM_ABS12", negative, UNSIGNED),
        (GNU, "R_ARM_ABS8", negative, UNSIGNED),
        (GNU, "R_ARM_THM_PC12", negative, UNSIGNED),
        (GNU, "R_ARM_THM_ABS5", any, "the value is not divided by 4"),
        (GNU, "R_ARM_THM_PC8", no_literal, CUT),
        (GNU, "R_ARM_THM_JUMP6", any, "the addend in the instruction is not subtracted"),
        (GNU, "R_ARM_THM_ALU_PREL_11_0", negative, "T is or-ed into the size of a negative value"),
        (GNU, "R_ARM_THM_BF16", |value| value != value << 47 >> 47, CUT),
        (GNU, "R_ARM_THM_BF12", |value| value != value << 51 >> 51, CUT),
        (GNU, "R_ARM_THM_BF18", |value| value != value << 45 >> 45, CUT),
    ]
};

/// Whether a difference of this kind and value is known.
fn is_known(linker: &str, kind: &Kind, value: i64) -> bool {
    let mut known = KNOWN.iter().filter(|known| linker.contains(known.0) && known.1 == kind.name);
    known.any(|(_, _, holds, _)| holds(value))
}

#[test]
fn arm_at_its_limits() {
    let linkers: Vec<&str> = ["arm-linux-gnueabihf-ld", "ld.lld-19"]
        .into_iter()
        .filter(|linker| Command::new(linker).arg("--version").output().is_ok())
        .collect();
    if linkers.len() < 2 {
        println!("skipped: arm_at_its_limits: needs arm-linux-gnueabihf-ld and ld.lld-19");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let (mut different, mut unknown) = (Vec::new(), Vec::new());
    let is_comparable = |kind: &&Kind| {
        let Kind { stage, value, .. } = kind;
        *stage == Stage::Link
            && kind.field.bytes > 0
            && matches!(value.of, Role::Address | Role::Plt | Role::TpOffset | Role::DtpOffset)
            && matches!(value.minus, Role::Zero | Role::Place)
    };
    let kinds = with_arch!(Architecture::Arm, A => A::KINDS);
    for kind in kinds.iter().filter(is_comparable) {
        let all = cases(kind);
        let size = all.last().map_or(0, |case| case.offset + STEP);
        let fits =
            |case: &&Case| ours(&object(&all, size, &|it| it.offset == case.offset)).is_some();
        let refused: BTreeSet<usize> =
            all.iter().filter(|case| !fits(case)).map(|case| case.offset).collect();
        assert!(refused.len() < all.len(), "{}", kind.name);
        for linker in &linkers {
            let mut add = |what, count| *counts.entry((linker, what)).or_default() += count;
            let Some(found) = compare(linker, &all, size, &refused, folder.path()) else {
                add("kinds that it does not know", 1);
                unknown.push(format!("{linker} {}", kind.name));
                continue;
            };
            add("kinds", 1);
            add("equal", found.equal);
            add("refused by both", found.refused);
            for (offset, what) in found.different {
                let case = all.iter().find(|case| case.offset == offset).expect("a case");
                if is_known(linker, kind, case.value) {
                    add("different for known reasons", 1);
                    continue;
                }
                let Case { value, symbol, symbol_type, .. } = case;
                let name = kind.name;
                different.push(format!(
                    "{linker} {name} at {offset:#x}: {value:#x} by {symbol:#x} type {symbol_type}: {what}"
                ));
            }
        }
    }
    println!("arm_at_its_limits: {counts:?}");
    println!("not known: {}", unknown.join(", "));
    let equal = counts.iter().filter(|((_, what), _)| matches!(*what, "equal" | "refused by both"));
    let equal: usize = equal.map(|(_, count)| count).sum();
    assert!(equal >= 37_000, "only {equal} places were compared");
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}

/// What came of one kind.
#[derive(Default)]
struct Found {
    equal: usize,
    refused: usize,
    different: Vec<(usize, String)>,
}

/// Compares all cases with a linker; `refused` are the places that hoist refuses. `None` if the linker does not know the kind.
fn compare(
    linker: &str,
    all: &[Case],
    size: usize,
    refused: &BTreeSet<usize>,
    folder: &Path,
) -> Option<Found> {
    let mut found = Found::default();
    let mut left = refused.clone();
    // what fits, as long as the linker agrees
    let (our_text, their_text) = loop {
        let object = object(all, size, &|case| !left.contains(&case.offset));
        match theirs(linker, &object, folder) {
            Linked::Refused(places) => {
                let new: Vec<usize> = places.difference(&left).copied().collect();
                assert!(!new.is_empty(), "{linker}: {places:x?}");
                let said = |place: &usize| (*place, String::from("refused there"));
                found.different.extend(new.iter().map(said));
                left.extend(new);
            }
            Linked::Text(text) => break (ours(&object).expect("what fits"), text),
            Linked::Unknown => return None,
        }
    };
    for case in all.iter().filter(|case| !left.contains(&case.offset)) {
        let place = case.offset..case.offset + case.bytes.len();
        let [our, their] = [&our_text, &their_text].map(|text| &text[place.clone()]);
        if our == their {
            found.equal += 1;
        } else {
            let what = format!("here {our:02x?}, there {their:02x?}");
            found.different.push((case.offset, what));
        }
    }
    if !refused.is_empty() {
        let object = object(all, size, &|case| refused.contains(&case.offset));
        let places = match theirs(linker, &object, folder) {
            Linked::Refused(places) => places,
            Linked::Text(_) | Linked::Unknown => BTreeSet::new(),
        };
        found.refused = places.intersection(refused).count();
        let said = |place: &usize| (*place, String::from("accepted there"));
        found.different.extend(refused.difference(&places).map(said));
    }
    Some(found)
}
