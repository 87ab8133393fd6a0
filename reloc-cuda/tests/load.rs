//! Linked cubins as images: sections apart and aligned, every relocation applied, the same bytes every time.
#![cfg(test)]

use elf_core::{File, Query, Role};
use reloc_cuda::{Load, LoadErrorKind, SECTION_ALIGNMENT};
use std::path::PathBuf;

const BASE: u64 = 0x7f_1234_5000;

fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the driver alone has: its functions, and headers of textures.
fn driver(query: &Query) -> Option<u64> {
    match query.role {
        Role::Address => Some(0x7f_0000_1000),
        Role::HeaderIndex => Some(5),
        _ => None,
    }
}

fn image(bytes: &[u8], fill: u8) -> (Vec<u8>, Vec<Option<u64>>) {
    let file = File::parse(bytes).unwrap();
    let mut offsets = vec![0; file.sections().len()];
    let load = Load::plan(&file, &mut offsets).unwrap();
    let mut image = vec![fill; load.size() as usize];
    load.write(&mut image, BASE, &driver).unwrap();
    let places = (0..file.sections().len() as u32).map(|index| load.section(index)).collect();
    (image, places)
}

/// The same image whatever memory held before, and from the memory of an earlier load.
#[test]
fn every_linked_fixture_loads_idempotently() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let mut loaded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut offsets = vec![0; file.sections().len()];
        let load = match Load::plan(&file, &mut offsets) {
            Ok(load) => load,
            Err(error) => {
                assert_eq!(
                    error.kind,
                    LoadErrorKind::NotLinked { r#type: 1 },
                    "{}",
                    path.display()
                );
                continue;
            }
        };
        // calls have 32 bits for an address there
        let name = path.display().to_string();
        let base =
            if name.contains("sm_35") || name.contains("sm_61") { 0x1234_5000 } else { BASE };
        let mut first = vec![0; load.size() as usize];
        load.write(&mut first, base, &driver).unwrap();
        let mut again = vec![0xa5; load.size() as usize];
        load.write(&mut again, base, &driver).unwrap();
        assert_eq!(first, again, "{name}");
        load.write(&mut again, base, &driver).unwrap();
        assert_eq!(first, again, "{name}");
        // apart, aligned, inside
        let mut ends = 0;
        for (index, section) in (0..).zip(file.sections()) {
            let Some(offset) = load.section(index) else { continue };
            assert!(offset >= ends && offset % SECTION_ALIGNMENT == 0);
            ends = offset + section.size;
        }
        assert_eq!(ends, load.size());
        loaded += 1;
    }
    assert!(loaded >= 13, "{loaded}");
}

/// Each kernel has its own bank 0, and code calls the functions where they are.
#[test]
fn code_and_banks_are_where_they_are_said_to_be() {
    for (arch, call) in [("sm_80", 58), ("sm_90", 75), ("sm_100", 75)] {
        let bytes = read(&format!("calls-13.5-{arch}.cubin"));
        let file = File::parse(&bytes).unwrap();
        let (image, places) = image(&bytes, 1);
        let mut banks: Vec<_> = (0..)
            .zip(file.sections())
            .filter(|(_, section)| {
                file.section_name(section).unwrap().as_bytes().starts_with(b".nv.constant0.")
            })
            .map(|(index, _): (usize, _)| places[index].unwrap())
            .collect();
        banks.dedup();
        assert_eq!(banks.len(), 4, "{arch}");
        let table = file.symbol_table().unwrap().unwrap();
        let mut calls = 0;
        for section in file.sections() {
            let Some(rows) = file.relocations(&section).unwrap() else { continue };
            for record in rows.iter().filter(|record| record.r#type == call) {
                let symbol = table.get(record.symbol).unwrap();
                let Some(text) = places[section.info as usize] else { continue };
                let target = match symbol.shndx {
                    0 => 0x7f_0000_1000,
                    shndx => BASE + places[usize::from(shndx)].unwrap() + symbol.value,
                };
                let at = (text + record.offset) as usize;
                let code = u128::from_le_bytes(image[at..at + 16].try_into().unwrap());
                let found = match call {
                    58 => (code >> 34 & ((1 << 47) - 1)) << 2,
                    _ => (code >> 16 & 0xff) << 2 | (code >> 34 & ((1 << 47) - 1)) << 10,
                };
                assert_eq!(found as u64, target, "{arch} {record:?}");
                calls += 1;
            }
        }
        assert!(calls >= 5, "{arch}: {calls}");
    }
}

/// Pointers in variables: generic addresses and addresses of functions.
#[test]
fn variables_hold_addresses() {
    let bytes = read("calls-13.5-sm_90.cubin");
    let file = File::parse(&bytes).unwrap();
    let mut offsets = vec![0; file.sections().len()];
    let load = Load::plan(&file, &mut offsets).unwrap();
    let mut image = vec![0; load.size() as usize];
    load.write(&mut image, BASE, &driver).unwrap();
    let word = |name: &str, at: u64| {
        let (offset, size) = load.symbol(name.into()).unwrap();
        assert!(at + 8 <= size);
        let at = (offset + at) as usize;
        u64::from_le_bytes(image[at..at + 8].try_into().unwrap())
    };
    let address = |name: &str| BASE + load.symbol(name.into()).unwrap().0;
    assert_eq!(word("inside", 0), address("array") + 20);
    assert_eq!([word("functions", 0), word("functions", 8)], [address("triple"), address("deep")]);
    let text = |name: &str| {
        let (_, symbol) = file.symbol_table().unwrap().unwrap().find(name.into()).unwrap();
        u32::from(symbol.shndx)
    };
    assert_eq!(load.shared_size(text("indirect")), 160 + 0x400);
    assert_eq!(load.shared_size(text("undefined")), 0x400); // the part of the system
}

/// Code, variables and constants of the machine code are in the image; what a launch gives room to and what linkers read are not.
#[test]
fn the_image_is_of_code_and_data() {
    const LOADED: [&str; 4] = [".text.", ".nv.constant", ".nv.global", ".nv.global.init"];
    for arch in ["sm_80", "sm_100"] {
        let bytes = read(&format!("calls-13.5-{arch}.cubin"));
        let file = File::parse(&bytes).unwrap();
        let (_, places) = image(&bytes, 0);
        for (place, section) in places.iter().zip(file.sections()) {
            let name = file.section_name(&section).unwrap().to_str().unwrap();
            let is_loaded = LOADED.iter().any(|start| name.starts_with(start));
            assert_eq!(place.is_some(), is_loaded, "{arch} {name}");
        }
    }
}

/// `.nv.local.K` says what a thread of kernel K has of local memory, and has no bytes in the image.
#[test]
fn local_memory_is_the_kernels() {
    let mut bytes = read("calls-13.5-sm_90.cubin");
    let (before, after) = (b".nv.shared.indirect\0", b".nv.local.indirect\0\0");
    let at = bytes.windows(before.len()).position(|name| name == before).unwrap();
    bytes[at..at + after.len()].copy_from_slice(after);
    let file = File::parse(&bytes).unwrap();
    let mut offsets = vec![0; file.sections().len()];
    let load = Load::plan(&file, &mut offsets).unwrap();
    let section = |wanted: &str| {
        let named = |one: elf_core::SectionHeader| file.section_name(&one).unwrap() == wanted;
        file.sections().iter().position(named).unwrap() as u32
    };
    let text = section(".text.indirect");
    assert_eq!((load.local_size(text), load.shared_size(text)), (160 + 0x400, 0));
    assert_eq!(load.local_size(section(".text.undefined")), 0);
    assert_eq!(load.section(section(".nv.local.indirect")), None);
}

#[test]
fn refusals_name_the_reason() {
    let mut bytes = read("calls-13.5-sm_90.cubin");
    bytes[18] = 62; // e_machine
    let file = File::parse(&bytes).unwrap();
    let kind = LoadErrorKind::NotCuda { machine: 62 };
    assert_eq!(Load::plan(&file, &mut [0; 100]).err().unwrap().kind, kind);
    let bytes = read("calls-13.5-sm_90.cubin");
    let file = File::parse(&bytes).unwrap();
    let mut few = [0; 3];
    let needed = file.sections().len();
    assert_eq!(Load::plan(&file, &mut few).err().unwrap().kind, LoadErrorKind::Storage { needed });
    let mut offsets = vec![0; needed];
    let load = Load::plan(&file, &mut offsets).unwrap();
    let mut image = vec![0; load.size() as usize];
    let error = load.write(&mut image, BASE + 8, &driver).unwrap_err();
    assert_eq!(error.to_string(), "image cannot be at 0x7f12345008, with an alignment of 0x80");
    let error = load.write(&mut image[1..], BASE, &driver).unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::Image { .. }));
    let error = load.write(&mut image, BASE, &|_: &Query| None).unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::Apply(_)), "{error}");
}

/// Truncations and changed bytes of every linked fixture, 10,000 of each where that is quick: an error or an image, no panic.
#[test]
fn damaged_files_do_no_harm() {
    // what a caller gives a kernel image
    const LARGEST: u64 = 1 << 22;
    let load = |bytes: &[u8]| {
        let Ok(file) = File::parse(bytes) else { return false };
        let mut offsets = vec![0; file.sections().len()];
        let Ok(load) = Load::plan(&file, &mut offsets) else { return false };
        let mut image = vec![0; load.size().min(LARGEST) as usize];
        load.write(&mut image, BASE, &driver).is_ok()
    };
    let changes = if cfg!(debug_assertions) { 300 } else { 10_000 };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if path.extension().is_none_or(|extension| extension != "cubin") || !load(&bytes) {
            continue;
        }
        let step = if cfg!(debug_assertions) { 31 } else { 1 };
        (0..bytes.len()).step_by(step).for_each(|end| {
            load(&bytes[..end]);
        });
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut loaded = 0;
        for _ in 0..changes {
            let mut bytes = bytes.clone();
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
            loaded += usize::from(load(&bytes));
        }
        assert!(loaded > changes / 10, "{}: {loaded} loaded", path.display());
    }
}
