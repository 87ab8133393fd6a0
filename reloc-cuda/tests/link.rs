//! Device linking beside nvlink 13.5: the same sections, attributes, relocations and symbols.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;

use linked::differences;
use reloc_cuda::Load;
use reloc_cuda::link::{LinkErrorKind, link};
use std::path::{Path, PathBuf};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

fn read(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let path = folder.join(format!("{name}.cubin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn halves(arch: &str) -> [Vec<u8>; 2] {
    ["calls_a", "calls_b"].map(|half| read(&format!("{half}-13.5-{arch}")))
}

#[test]
fn fixtures_are_linked_as_nvlink_does() {
    for arch in ARCHITECTURES {
        let [a, b] = halves(arch);
        let linked = link(&[&a, &b]).unwrap();
        let expected = read(&format!("linked-13.5-{arch}"));
        assert_eq!(differences(&expected, &linked.bytes), [""; 0], "{arch}");
        assert_eq!(linked.unbounded, ["recurses"], "{arch}");
    }
}

/// Folders `PROGRAM/f0.cubin f1.cubin ... linked.cubin` under the one that `NVLINK_SAMPLES` names, at any depth.
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
    match link(&objects) {
        Ok(linked) => Some(differences(&expected, &linked.bytes)),
        Err(error) => Some(vec![error.to_string()]),
    }
}

/// What is linked here can be loaded.
#[test]
fn linked_files_load() {
    for arch in ARCHITECTURES {
        let [a, b] = halves(arch);
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
    let [a, b] = halves("sm_90");
    let message = |objects: &[&[u8]]| link(objects).unwrap_err().to_string();
    assert_eq!(message(&[]), "object 0: no objects");
    let undefined = ["functions", "recursive", "constants", "shared_by_both", "other"];
    let lines = undefined.map(|name| format!("object 0: symbol {name} is undefined"));
    assert_eq!(message(&[&a]), lines.join("\n"));
    let twice = message(&[&a, &b, &b]);
    assert_eq!(twice.lines().next(), Some("object 2: symbol other is defined in object 1 already"));
    assert_eq!(twice.lines().count(), 8);
    assert_eq!(message(&[&a, &read("linked-13.5-sm_90")]), "object 1: is linked already");
    let [older, _] = halves("sm_80");
    assert_eq!(message(&[&a, &older]), "object 1: is for sm_80, not for sm_90 as the first object");
    let old = read("calls_a-11.8-sm_61");
    assert_eq!(link(&[&old]).unwrap_err().0[0].kind, LinkErrorKind::Form);
}

/// Truncations, and changed bytes of each architecture, 10,000 where that is quick: an error or a file, no panic.
#[test]
fn damaged_objects_do_no_harm() {
    let changes = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    for arch in ARCHITECTURES {
        let [a, b] = halves(arch);
        for end in (0..a.len()).step_by(7) {
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
