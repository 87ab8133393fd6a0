//! Device linking beside nvlink 13.5: the same sections, attributes, relocations and symbols.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use elf_core::{File, names};
use linked::differences;
use objects::{bytes_of, halves, put32, read, symbol_row};
use reloc_cuda::Load;
use reloc_cuda::cuda::{
    R_CUDA_ABS32_HI_32, R_CUDA_ABS32_LO_32, R_CUDA_UNIFIED32_HI_32, R_CUDA_UNIFIED32_LO_32,
};
use reloc_cuda::link::{LinkErrorKind, LinkOptions, LinkedMercury, link, link_for, link_with};
use std::path::{Path, PathBuf};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

fn calls(arch: &str) -> [Vec<u8>; 2] {
    halves("calls", &format!("13.5-{arch}"))
}

const SHAPES: [&str; 2] = ["12.9-sm_80", "13.5-sm_90"];

#[test]
fn fixtures_are_linked_as_nvlink_does() {
    for arch in ARCHITECTURES {
        let [a, b] = calls(arch);
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("linked-13.5-{arch}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{arch}");
        assert_eq!(linked.unbounded, ["recurses"], "{arch}");
        let mercury = if arch == "sm_100" { LinkedMercury::Merged } else { LinkedMercury::None };
        assert_eq!(linked.mercury, mercury, "{arch}");
    }
}

/// Line numbers, a named texture, arrays in common, weak and common names; objects of toolkit 12 too.
#[test]
fn shapes_are_linked_as_nvlink_does() {
    for version in SHAPES {
        let [a, b] = halves("shapes", version);
        let linked = link(&[&a, &b]).unwrap();
        let (_, arch) = version.split_once('-').unwrap();
        let expected = read(&format!("shapes-13.5-{arch}"));
        let mut found = differences(&expected, &linked.bytes);
        // nvlink says its own version there, of objects that do not say any
        found.retain(|line| version.starts_with("13") || !line.starts_with(".note.nv.cuinfo"));
        assert_eq!(found, [""; 0], "{version}");
    }
}

/// Tables of branches, weak variables that give way, common ones, places in a bank.
#[test]
fn data_are_linked_as_nvlink_does() {
    for arch in ["sm_80", "sm_90"] {
        let [a, b] = halves("data", &format!("13.5-{arch}"));
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("data-13.5-{arch}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{arch}");
    }
}

/// Shared variables of one size, named textures, lines of dropped functions; tensor memory, attributes that kernels take over.
#[test]
fn places_are_those_of_nvlink() {
    for (name, arch) in [("places", "sm_80"), ("places", "sm_100"), ("tensor", "sm_100a")] {
        let [a, b] = halves(name, &format!("13.5-{arch}"));
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("{name}-13.5-{arch}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{name} {arch}");
        let suffix = |bytes| nvinfo::Cubin::parse(bytes).unwrap().target().suffix;
        assert_eq!(suffix(&linked.bytes), suffix(&expected), "{name} {arch}");
    }
}

/// Arrays of the launch that no kernel is known to reach, and that stand behind another kernel's variables.
#[test]
fn arrays_are_those_of_nvlink() {
    for arch in ["sm_80", "sm_90"] {
        let [a, b] = halves("arrays", &format!("13.5-{arch}"));
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("arrays-13.5-{arch}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{arch}");
    }
}

/// An array of the launch has the largest of the alignments that objects give it, whichever comes first; nvlink takes the first one.
#[test]
fn arrays_have_the_largest_of_their_alignments() {
    for arch in ["sm_80", "sm_90"] {
        for larger in [0, 1] {
            let mut objects = halves("arrays", &format!("13.5-{arch}"));
            let at = symbol_row(&objects[larger], ".symtab", "array") + 8;
            put32(&mut objects[larger], at, 1024);
            let linked = link(&[&objects[0], &objects[1]]).unwrap();
            let file = File::parse(&linked.bytes).unwrap();
            let name = |one: &elf_core::SectionHeader| file.section_name(one).unwrap().to_string();
            let found = file.sections().iter().filter(|one| name(one).starts_with(".nv.shared."));
            let found: Vec<_> = found.map(|one| (one.alignment, one.size & 0x3ff)).collect();
            // 300 bytes, and the array behind them
            assert_eq!(found, [(1024, 0), (1024, 0)], "{arch} {larger}");
        }
    }
}

/// An only kernel has the barriers and undefined functions of all functions that stay, and keeps some attributes of its own: the
/// mask only where all functions stay and none is undefined.
#[test]
fn only_kernels_are_those_of_nvlink() {
    let kernel = read("alone_a-13.5-sm_90");
    for name in ["alone", "whole"] {
        let others = read(&format!("{name}_b-13.5-sm_90"));
        let linked = link(&[&kernel, &others]).unwrap();
        let expected = read(&format!("{name}-13.5-sm_90"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{name}");
    }
}

/// A kernel has as many registers as what it calls, unless code takes and gives them back itself (`EIATTR_REG_RECONFIG`): such
/// code counts on how many it starts with. nvlink does so with these very objects.
#[test]
fn code_that_takes_registers_starts_with_its_own() {
    let [mut a, mut b] = halves("alone", "13.5-sm_90");
    let place = |object: &[u8], record: [u8; 4]| {
        object.windows(4).position(|bytes| bytes == record).unwrap()
    };
    // REGCOUNT, with a symbol and the count: the record of `tile` is the last one
    let count = b.windows(4).rposition(|bytes| bytes == [4, 0x2f, 8, 0]).unwrap() + 8;
    assert_eq!(b[count], 24);
    b[count] = 40;
    let registers = |a: &[u8], b: &[u8]| {
        let linked = link(&[a, b]).unwrap().bytes;
        let cubin = nvinfo::Cubin::parse(&linked).unwrap();
        let (index, _) = cubin.symbols().unwrap().find("only".into()).unwrap();
        let rows = cubin.attributes().unwrap().map(Result::unwrap);
        let mut counts = rows.filter(|row| row.number == nvinfo::eiattr::REGCOUNT);
        counts.find_map(|row| match row.payload() {
            nvinfo::Payload::OfSymbol { symbol, value } if symbol == index => Some(value),
            _ => None,
        })
    };
    assert_eq!(registers(&a, &b), Some(40));
    // SPARSE_MMA_MASK becomes REG_RECONFIG
    let mask = place(&a, [3, 0x50, 16, 0]);
    a[mask..mask + 4].copy_from_slice(&[1, 0x54, 0, 0]);
    assert_eq!(registers(&a, &b), Some(24));
}

/// Unified addresses are plain ones where there is no table of them, as with nvlink of these very objects.
#[test]
fn unified_addresses_become_plain_ones() {
    let [mut a, b] = calls("sm_90");
    let plain = link(&[&a, &b]).unwrap().bytes;
    let mut changed = 0;
    for row in bytes_of(&a, ".rela.text.calls").step_by(24) {
        let unified = match a[row + 8].into() {
            R_CUDA_ABS32_LO_32 => R_CUDA_UNIFIED32_LO_32,
            R_CUDA_ABS32_HI_32 => R_CUDA_UNIFIED32_HI_32,
            _ => continue,
        };
        put32(&mut a, row + 8, unified);
        changed += 1;
    }
    assert_eq!(changed, 4);
    assert!(link(&[&a, &b]).unwrap().bytes == plain);
}

#[test]
fn code_of_a_lower_minor_version_is_linked() {
    let [a, b] = halves("shapes", "12.9-sm_80");
    let linked = link_for(&[&a, &b], Some(86)).unwrap().bytes;
    assert_eq!(nvinfo::Cubin::parse(&linked).unwrap().target().sm, Some(86));
    let errors = link_for(&[&a, &b], Some(90)).unwrap_err();
    let kind = LinkErrorKind::Architecture { found: 80, expected: 90 };
    assert_eq!(errors.0[0].kind, kind);
}

/// Objects that do not fit, made of fixtures by changes of a byte.
#[test]
fn disagreements_are_refused() {
    let [a, b] = halves("shapes", "13.5-sm_90");
    let named = |object: &[u8], name: &str| symbol_row(object, ".symtab", name) + 5;
    let replaced = |object: &[u8], from: &[u8], to: &[u8]| {
        let at = object.windows(from.len()).position(|bytes| bytes == from).unwrap();
        let mut object = object.to_vec();
        object[at..at + to.len()].copy_from_slice(to);
        object
    };
    let message = |a: &[u8], b: &[u8]| link(&[a, b]).unwrap_err().to_string();

    let mut managed = b.clone();
    managed[named(&b, "common")] |= names::STO_CUDA_MANAGED;
    assert_eq!(
        message(&a, &managed),
        "object 1: symbol common is managed in one of this and object 0 only"
    );
    let mut kernel = a.clone();
    kernel[named(&a, "helper")] |= names::STO_CUDA_ENTRY;
    assert_eq!(
        message(&kernel, &b),
        "object 1: symbol helper is a kernel in one of this and object 0 only"
    );
    let prototype = replaced(&b, b"\0#ii\0", b"\0#il\0");
    assert!(
        message(&a, &prototype).contains("symbol helper has another prototype in object 0"),
        "{}",
        message(&a, &prototype)
    );
    // EIATTR_MAXREG_COUNT of all kernels, 255
    let few = replaced(&b, &[3, 0x1b, 0xff, 0], &[3, 0x1b, 1, 0]);
    assert!(message(&a, &few).starts_with("object 1: kernel other of at most 1 registers calls"));
}

/// Uses of tensor memory that do not go together, made of fixtures in the same way.
#[test]
fn tensor_memory_is_of_one_kind() {
    let [a, b] = halves("tensor", "13.5-sm_100a");
    let replaced = |from: [u8; 4], to: [u8; 4]| {
        let bytes: Vec<_> = a.windows(4).collect();
        let at = bytes.iter().position(|bytes| **bytes == from).unwrap();
        let mut changed = a.clone();
        changed[at..at + 4].copy_from_slice(&to);
        changed
    };
    // SPARSE_MMA_MASK 0 becomes TCGEN05_2CTA_USED; LANGUAGE becomes AT_ENTRY_FRAGMENTS, and its value that of toolkit 12
    let pairs = replaced([3, 0x50, 0, 0], [1, 0x52, 0, 0]);
    let errors = link(&[&pairs, &b]).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::TensorGroups("calls".into()));
    let mut older = replaced([4, 0x66, 4, 0], [4, 0x4f, 4, 0]);
    let value = older.windows(4).position(|bytes| bytes == [4, 0x4f, 4, 0]).unwrap() + 4;
    older[value] = 5;
    let errors = link(&[&older, &b]).unwrap_err();
    assert_eq!(errors.0[0].kind, LinkErrorKind::TensorMemory("allocate".into()));
}

#[test]
fn kernels_that_are_not_used_go() {
    let [a, b] = calls("sm_90");
    let with = |kernels: &[&str]| {
        link_with(&[&a, &b], LinkOptions { kernels, ..LinkOptions::default() }).unwrap()
    };
    let names = |linked: &reloc_cuda::link::LinkedCubin| -> Vec<String> {
        let kernels = linked.functions.iter().filter(|one| one.is_kernel);
        kernels.map(|one| one.name.clone()).collect()
    };
    let all = with(&[]);
    assert_eq!(all.bytes, link(&[&a, &b]).unwrap().bytes);
    assert!(names(&all).len() > 3 && names(&all).contains(&"recurses".to_owned()));
    let taken = all.functions.iter().filter(|one| one.is_address_taken);
    assert_eq!(taken.map(|one| one.name.as_str()).collect::<Vec<_>>(), ["deep", "triple"]);
    let one = with(&["recur"]);
    assert_eq!(names(&one), ["recurses"]);
    assert!(one.bytes.len() < all.bytes.len() && one.unbounded == ["recurses"]);
    let place = one.functions.iter().position(|one| one.name == "recursive").unwrap();
    let kernel = one.functions.iter().find(|one| one.is_kernel).unwrap();
    assert!(kernel.callees.contains(&place) && one.functions[place].callees.contains(&place));
    assert_eq!(names(&with(&["no such"])), [""; 0]);
}

/// The Mercury form goes as a whole where an object's is not understood, and the note says so.
#[test]
fn unknown_mercury_is_left_out() {
    let [a, b] = calls("sm_100");
    let form = |bytes: &[u8]| {
        let file = elf_core::File::parse(bytes).unwrap();
        let of_mercury = |one: &elf_core::SectionHeader| {
            one.flags.bits() & names::SHF_CUDA_MERCURY != 0 && one.r#type != names::SHT_NOTE
        };
        file.sections().iter().filter(of_mercury).count()
    };
    let linked = link(&[&a, &b]).unwrap();
    assert_eq!((linked.mercury, form(&linked.bytes)), (LinkedMercury::Merged, 32));
    let code = |object: &[u8]| {
        let file = elf_core::File::parse(object).unwrap();
        let code = file.sections().iter().find(|one| one.r#type == names::SHT_CUDA_CAPMERC);
        code.unwrap().offset as usize
    };
    let mut other = b.clone();
    other[code(&b) + 4] ^= 2; // the version
    let without = link(&[&a, &other]).unwrap();
    let why = "its Mercury form is one that is not known";
    assert_eq!(without.mercury, LinkedMercury::LeftOut { object: 1, why });
    assert_eq!(form(&without.bytes), 0);
    let remark = format!("\0without Mercury: of object 1, {why}\0");
    assert!(without.bytes.windows(remark.len()).any(|bytes| bytes == remark.as_bytes()));
    let expected = read("linked-13.5-sm_100");
    assert_eq!(differences(&expected, &without.bytes), [""; 0]);
}

/// Folders `PROGRAM/f0.cubin f1.cubin ... linked.cubin`, with a file `kernels` if some alone are used, under the one that `NVLINK_SAMPLES` names, at any depth.
#[test]
fn samples_are_linked_as_nvlink_does() {
    let Some(root) = std::env::var_os("NVLINK_SAMPLES") else {
        println!("skipped: samples_are_linked_as_nvlink_does: NVLINK_SAMPLES names no folder");
        return;
    };
    let (mut programs, mut different) = (0, 0);
    let mut folders = vec![PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
        if let Some(found) = sample(&folder) {
            programs += 1;
            if !found.is_empty() {
                different += 1;
                println!("{}: {found:#?}", folder.display());
            }
        }
    }
    println!("{programs} programs, {different} different");
    assert!(programs > 0 && different == 0);
}

/// The differences of one program, if it is one that nvlink linked.
fn sample(folder: &Path) -> Option<Vec<String>> {
    let expected = std::fs::read(folder.join("linked.cubin")).ok()?;
    let object = |number| std::fs::read(folder.join(format!("f{number}.cubin"))).ok();
    let objects: Vec<_> = (0..).map_while(object).collect();
    let objects: Vec<_> = objects.iter().map(Vec::as_slice).collect();
    let kernels = std::fs::read_to_string(folder.join("kernels")).unwrap_or_default();
    let kernels: Vec<_> = kernels.split_whitespace().collect();
    match link_with(&objects, LinkOptions { kernels: &kernels, ..LinkOptions::default() }) {
        Ok(linked) => Some(differences(&expected, &linked.bytes)),
        Err(error) => Some(vec![error.to_string()]),
    }
}

/// What is linked here can be loaded.
#[test]
fn linked_files_load() {
    for arch in ARCHITECTURES {
        let [a, b] = calls(arch);
        let linked = link(&[&a, &b]).unwrap().bytes;
        let file = elf_core::File::parse(&linked).unwrap();
        let mut offsets = vec![0; file.sections().len()];
        let load = Load::plan(&file, &mut offsets).unwrap();
        let mut image = vec![0; load.size() as usize];
        load.write(&mut image, 0x7f00_0000_0000, &|_: &elf_core::Query| Some(0x1000)).unwrap();
    }
}

#[test]
fn refusals_name_the_reason() {
    let [a, b] = calls("sm_90");
    let message = |objects: &[&[u8]]| link(objects).unwrap_err().to_string();
    assert_eq!(message(&[]), "object 0: no objects");
    let undefined = ["functions", "recursive", "constants", "shared_by_both", "other"];
    let lines = undefined.map(|name| format!("object 0: symbol {name} is undefined"));
    assert_eq!(message(&[&a]), lines.join("\n"));
    let twice = message(&[&a, &b, &b]);
    assert_eq!(twice.lines().next(), Some("object 2: symbol other is defined in object 1 already"));
    assert_eq!(twice.lines().count(), 8);
    assert_eq!(message(&[&a, &read("linked-13.5-sm_90")]), "object 1: is linked already");
    let [older, _] = calls("sm_80");
    assert_eq!(message(&[&a, &older]), "object 1: is for sm_80, which does not run on sm_90");
    let old = read("calls_a-11.8-sm_61");
    let kind = LinkErrorKind::Toolkit { sm: 61, toolkit: 118 };
    assert_eq!(link(&[&old]).unwrap_err().0[0].kind, kind);
}

/// Truncations, and changed bytes of each pair, 10,000 where that is quick: an error or a file, no panic.
#[test]
fn damaged_objects_do_no_harm() {
    let changes = if cfg!(debug_assertions) { 300 } else { 10_000 };
    let pairs = ARCHITECTURES.map(|arch| (arch, calls(arch)));
    let data = halves("data", "13.5-sm_80");
    let pairs = pairs.into_iter().chain(SHAPES.map(|version| (version, halves("shapes", version))));
    let newer = [("places", "sm_100"), ("tensor", "sm_100a")];
    let newer = newer.map(|(name, arch)| (name, halves(name, &format!("13.5-{arch}"))));
    let pairs = pairs.chain([("data", data)]).chain(newer);
    for (arch, [a, b]) in pairs {
        let step = if cfg!(debug_assertions) { 7 } else { 1 };
        for end in (0..a.len()).step_by(step) {
            assert!(link(&[&a[..end], &b]).is_err(), "{arch} {end}");
        }
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let (mut linked, mut refused) = (0, 0);
        for _ in 0..changes {
            let (mut a, mut b) = (a.clone(), b.clone());
            let target = if random(2) == 0 { &mut a } else { &mut b };
            let at = random(target.len());
            target[at] = random(256) as u8;
            match link(&[&a, &b]) {
                Ok(_) => linked += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(
            linked > changes / 10 && refused > changes / 100,
            "{arch}: {linked} linked, {refused} refused"
        );
    }
}
