//! Every kind of Arm, RISC-V and LoongArch whose value does not depend on where a linker has its tables, and those of Arm that do, at its
//! limits and about them, in objects made here: what fits is byte for byte what GNU ld and lld make, what does not is refused by all, place by place.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "limits/arm.rs"]
mod arm;
#[path = "limits/cases.rs"]
mod cases;
#[path = "limits/known.rs"]
mod known;
#[path = "limits/linked.rs"]
mod linked;
#[path = "limits/rela.rs"]
mod rela;
#[path = "limits/relaxed.rs"]
mod relaxed;
#[path = "limits/tables.rs"]
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use archs::{Architecture, with_arch};
use cases::{Case, STEP, object};
use elf_core::{Arch, Kind, Role, Stage};
use linked::{Linked, ours, theirs};

/// Compares all kinds of a machine with linkers: at least so many places.
fn compare_all(test: &str, machine: Architecture, linkers: &[&str], least: usize) {
    let is_there = |linker: &&&str| Command::new(linker).arg("--version").output().is_ok();
    if linkers.iter().filter(is_there).count() < linkers.len() {
        println!("skipped: {test}: needs {}", linkers.join(" and "));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let (mut different, mut unknown) = (Vec::new(), Vec::new());
    let is_comparable = |kind: &&Kind| {
        let roles = [Role::Address, Role::Plt, Role::TpOffset, Role::DtpOffset, Role::Partner];
        let of_sections = roles.contains(&kind.value.of)
            && matches!(kind.value.minus, Role::Zero | Role::Place | Role::Partner);
        kind.stage == Stage::Link
            && kind.field.bytes() > 0
            && (of_sections || machine == Architecture::Arm && tables::concerns(kind))
    };
    let (kinds, address_size) = with_arch!(machine, A => (A::KINDS, A::ADDRESS_SIZE));
    for kind in kinds.iter().filter(is_comparable) {
        let all = match machine {
            Architecture::Arm if tables::concerns(kind) => tables::cases(kind),
            Architecture::Arm => arm::cases(kind),
            _ => rela::cases(machine, address_size, kind),
        };
        if all.is_empty() {
            println!("{test}: {}: no case", kind.name);
            continue;
        }
        let size = all.last().map_or(0, |case| case.offset + STEP);
        let fits = |case: &&Case| {
            ours(machine, &object(machine, std::slice::from_ref(case), size)).is_some()
        };
        let refused: BTreeSet<usize> =
            all.iter().filter(|case| !fits(case)).map(|case| case.offset).collect();
        assert!(refused.len() < all.len(), "{}", kind.name);
        for linker in linkers {
            let mut add = |what, count| *counts.entry((linker, what)).or_default() += count;
            let Some(found) = compare(machine, linker, (&all, size), &refused, folder.path())
            else {
                add("kinds that it does not know", 1);
                unknown.push(format!("{linker} {}", kind.name));
                continue;
            };
            add("kinds", 1);
            add("equal", found.equal);
            add("refused by both", found.refused);
            for (offset, what) in found.different {
                let case = all.iter().find(|case| case.offset == offset).expect("a case");
                if known::is_known(machine, linker, kind, case.value) {
                    add("different for known reasons", 1);
                    continue;
                }
                let Case { value, records, .. } = case;
                let name = kind.name;
                different.push(format!(
                    "{linker} {name} at {offset:#x}: {value:#x} by {records:x?}: {what}"
                ));
            }
        }
    }
    println!("{test}: {counts:?}");
    println!("not known: {}", unknown.join(", "));
    let equal = counts.iter().filter(|((_, what), _)| matches!(*what, "equal" | "refused by both"));
    let equal: usize = equal.map(|(_, count)| count).sum();
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
    assert!(equal >= least, "only {equal} places were compared");
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
    machine: Architecture,
    linker: &str,
    (all, size): (&[Case], usize),
    refused: &BTreeSet<usize>,
    folder: &Path,
) -> Option<Found> {
    let mut found = Found::default();
    let starts = |places: &BTreeSet<usize>| -> BTreeSet<usize> {
        let behind = |place: &usize| all.partition_point(|case| case.offset <= *place);
        places
            .iter()
            .filter_map(|place| Some(all.get(behind(place).checked_sub(1)?)?.offset))
            .collect()
    };
    let mut left = refused.clone();
    let chosen = |wanted: &dyn Fn(&Case) -> bool| -> Vec<Case> {
        all.iter().filter(|case| wanted(case)).cloned().collect()
    };
    // what fits, as long as the linker agrees
    let (our_text, their_text) = loop {
        let object = object(machine, &chosen(&|case| !left.contains(&case.offset)), size);
        match theirs(machine, linker, &object, folder) {
            Linked::Refused(places) => {
                let places = starts(&places);
                let new: Vec<usize> = places.difference(&left).copied().collect();
                assert!(!new.is_empty(), "{linker}: {places:x?}");
                let said = |place: &usize| (*place, String::from("refused there"));
                found.different.extend(new.iter().map(said));
                left.extend(new);
            }
            Linked::Text(text) => break (ours(machine, &object).expect("what fits"), text),
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
        let asked: Vec<Case> = chosen(&|case| refused.contains(&case.offset));
        // GNU ld for RISC-V tells one error of a section, and is asked about each of those next to what fits
        let (asked, at_once) = match linker.contains("lld") || machine == Architecture::Arm {
            true => (asked, usize::MAX),
            false => (next_to_what_fits(all, refused), 1),
        };
        for some in asked.chunks(at_once.min(asked.len().max(1))) {
            let places = match theirs(machine, linker, &object(machine, some, size), folder) {
                Linked::Refused(places) => starts(&places),
                Linked::Text(_) | Linked::Unknown => BTreeSet::new(),
            };
            let some: BTreeSet<usize> = some.iter().map(|case| case.offset).collect();
            found.refused += places.intersection(&some).count();
            let said = |place: &usize| (*place, String::from("accepted there"));
            found.different.extend(some.difference(&places).map(said));
        }
    }
    Some(found)
}

/// The cases that are refused where one before or behind them fits, by their values.
fn next_to_what_fits(all: &[Case], refused: &BTreeSet<usize>) -> Vec<Case> {
    let is_refused = |case: &Case| refused.contains(&case.offset);
    let ends = all.windows(2).filter(|two| is_refused(&two[0]) != is_refused(&two[1]));
    ends.map(|two| if is_refused(&two[0]) { two[0].clone() } else { two[1].clone() }).collect()
}

#[test]
fn arm_at_its_limits() {
    let linkers = ["arm-linux-gnueabihf-ld", "ld.lld-19"];
    compare_all("arm_at_its_limits", Architecture::Arm, &linkers, 50_000);
}

#[test]
fn riscv64_at_its_limits() {
    let linkers = ["riscv64-linux-gnu-ld", "ld.lld-19"];
    compare_all("riscv64_at_its_limits", Architecture::Rv64, &linkers, 33_000);
}

#[test]
fn riscv32_at_its_limits() {
    let linkers = ["riscv64-linux-gnu-ld", "ld.lld-19"];
    compare_all("riscv32_at_its_limits", Architecture::Rv32, &linkers, 17_000);
}

#[test]
fn loongarch64_at_its_limits() {
    let test = "loongarch64_at_its_limits";
    compare_all(test, Architecture::LoongArch64, &["ld.lld-22"], 21_000);
}
