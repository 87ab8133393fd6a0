//! Rows against real files: what nvlink wrote, what `.nv.rel.action` says, which kinds occur where.
#![cfg(test)]

use elf_core::{
    Definition, File, Query, Record, Role, SectionHeader, SectionMut, SymbolTable, apply,
};
use reloc_cuda::{Cuda, Proof, Resolver, row};
use std::path::PathBuf;

fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/cuda")
        .join(format!("{name}.cubin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name<'a>(file: &File<'a>, section: &SectionHeader) -> &'a str {
    file.section_name(section).unwrap().to_str().unwrap()
}

fn section(file: &File<'_>, wanted: &str) -> Option<SectionHeader> {
    file.sections().iter().find(|section| name(file, section) == wanted)
}

fn symbol(table: &SymbolTable<'_>, wanted: &str) -> Option<(u32, elf_core::Symbol)> {
    (0..).zip(table.symbols()).find(|(_, symbol)| table.name_of(symbol).unwrap() == wanted)
}

/// Records of all sections of relocations against machine code, with the section they apply to.
fn records(file: &File<'_>) -> Vec<(SectionHeader, Record)> {
    let mut all = Vec::new();
    for section in file.sections() {
        if let Some(rows) = file.relocations(&section).unwrap() {
            let target = file.section(section.info).unwrap();
            all.extend(rows.iter().map(|record| (target, record)));
        }
    }
    all
}

/// What the linked file says of a symbol of an object: its place in shared memory or in a constant bank.
fn answer(linked: &File<'_>, kernel: &str, name: &str, role: Role) -> Option<u64> {
    let is_new = linked.header().flags >> 8 & 0xff >= 90;
    let reserved = if is_new { 0x400 } else { 0 };
    if name == "dynamic" {
        // an extern array is behind the static ones
        let shared = section(linked, &format!(".nv.shared{}", kernel.strip_prefix(".text")?))?;
        return (role == Role::Address).then_some(shared.size - reserved);
    }
    let table = linked.symbol_table().unwrap().unwrap();
    let (index, found) = symbol(&table, name)?;
    let Ok(Definition::Section(place)) = table.section_of(index, &found) else { return None };
    let place = linked.section(place).unwrap();
    match (role, self::name(linked, &place)) {
        // preserved symbols count the bytes that the system reserves, code does not
        (Role::Address, ".nv_debug.shared") => Some(found.value - reserved),
        (Role::Address, _) => Some(found.value),
        (Role::Bank, bank) => bank.strip_prefix(".nv.constant").and_then(|bank| bank.parse().ok()),
        _ => None,
    }
}

/// Objects, with what a linker resolves applied by us, are nvlink's output: all bytes of all functions.
#[test]
fn nvlink_writes_the_same_code() {
    let mut applied = std::collections::BTreeMap::new();
    for arch in ["sm_80", "sm_90", "sm_100"] {
        let output = read(&format!("calls-13.5-{arch}"));
        let linked = File::parse(&output).unwrap();
        for half in ["calls_a", "calls_b"] {
            let input = read(&format!("{half}-13.5-{arch}"));
            let object = File::parse(&input).unwrap();
            let table = object.symbol_table().unwrap().unwrap();
            for text in object
                .sections()
                .iter()
                .filter(|section| name(&object, section).starts_with(".text."))
            {
                let text_name = name(&object, &text);
                let Some(expected) = section(&linked, text_name) else { continue };
                let mut code = object.section_data(&text).unwrap().to_vec();
                for (target, record) in
                    records(&object).into_iter().filter(|(target, _)| *target == text)
                {
                    let symbol = table.get(record.symbol).unwrap();
                    let symbol_name = table.name_of(&symbol).unwrap().to_str().unwrap();
                    let resolver = row(record.r#type).unwrap().resolver;
                    let shared = symbol.other >> 5 == 2;
                    if resolver == Resolver::Driver || resolver == Resolver::Either && !shared {
                        continue;
                    }
                    let mut section =
                        SectionMut { bytes: &mut code, address: 0, big_endian: false };
                    let resolve =
                        |query: &Query| answer(&linked, text_name, symbol_name, query.role);
                    apply::<Cuda>(&record, &mut section, &resolve).unwrap_or_else(|error| {
                        panic!("{arch} {text_name} {symbol_name}: {error} {target:?}")
                    });
                    *applied.entry((record.r#type, arch)).or_insert(0) += 1;
                }
                assert_eq!(code, linked.section_data(&expected).unwrap(), "{arch} {text_name}");
            }
        }
    }
    let expected = [
        ((55, "sm_100"), 3),
        ((55, "sm_90"), 3),
        ((64, "sm_80"), 1),
        ((66, "sm_90"), 1),
        ((74, "sm_80"), 4),
        ((115, "sm_100"), 1),
    ];
    assert_eq!(applied.into_iter().collect::<Vec<_>>(), expected);
}

/// What nvlink applied inside `.debug_frame` is there when we apply it again.
#[test]
fn applied_relocations_are_idempotent() {
    for (arch, count) in [("sm_80", 8), ("sm_90", 8)] {
        let bytes = read(&format!("calls-13.5-{arch}"));
        let file = File::parse(&bytes).unwrap();
        let applied = section(&file, ".nv.resolvedrela.debug_frame").unwrap();
        let target = file.section(applied.info).unwrap();
        let before = file.section_data(&target).unwrap();
        let mut data = before.to_vec();
        let records = file.rows::<elf_core::Rela>(&applied).unwrap();
        for record in records {
            assert_eq!(record.r#type, 2);
            let mut section = SectionMut { bytes: &mut data, address: 0, big_endian: false };
            apply::<Cuda>(&record, &mut section, &|_: &Query| Some(0)).unwrap();
        }
        assert_eq!((records.len(), &data[..]), (count, before));
    }
}

/// `.nv.rel.action` begins with the number of the first kind; each row of eight bytes is that of the next: kind of value, mode,
/// shift, width and place of one field, then of a second.
#[test]
fn files_describe_the_same_fields() {
    for (file, kinds) in [
        ("textures-11.8-sm_61", 75..102),
        ("kernels-11.8-sm_35", 75..102),
        ("kernels-13.5-sm_80", 115..116),
    ] {
        let bytes = read(file);
        let file = File::parse(&bytes).unwrap();
        let section = section(&file, ".nv.rel.action").unwrap();
        let mut rows = file.section_data(&section).unwrap().chunks(8);
        assert_eq!(rows.next().unwrap(), u64::to_le_bytes(kinds.start));
        for number in kinds {
            let [value, _, shift, width, at, shift2, width2, at2] = *rows.next().unwrap() else {
                panic!("a row of eight bytes")
            };
            let kind = &row(number as u32).unwrap().kind;
            let role = [Role::Address, Role::Generic, Role::Descriptor, Role::HeaderIndex]
                [usize::from(value)];
            assert_eq!(kind.value.of, role, "{}", kind.name);
            let described = [[shift, width, at], [shift2, width2, at2]];
            let ours: Vec<_> =
                kind.field.parts.iter().map(|bits| [bits.shift, bits.width, bits.at]).collect();
            assert_eq!(ours, described[..ours.len()], "{}", kind.name);
            assert!(ours.len() == 2 || described[1] == [0; 3], "{}", kind.name);
        }
        assert!(rows.next().is_none());
    }
}

/// The place of `R_CUDA_UNUSED_CLEAR64` holds the size of the function before any linker has seen it.
#[test]
fn unused_clear_is_the_size_of_what_is_kept() {
    let mut found = 0;
    for half in ["calls_a", "calls_b"] {
        for arch in ["sm_80", "sm_90", "sm_100"] {
            let bytes = read(&format!("{half}-13.5-{arch}"));
            let file = File::parse(&bytes).unwrap();
            let table = file.symbol_table().unwrap().unwrap();
            for (target, record) in
                records(&file).into_iter().filter(|(_, record)| record.r#type == 73)
            {
                let mut data = file.section_data(&target).unwrap().to_vec();
                let before = data.clone();
                let size = table.get(record.symbol).unwrap().size;
                let apply = |data: &mut Vec<u8>, size| {
                    let mut section = SectionMut { bytes: data, address: 0, big_endian: false };
                    apply::<Cuda>(&record, &mut section, &|query: &Query| {
                        (query.role == Role::Size).then_some(size)
                    })
                    .unwrap();
                };
                apply(&mut data, size);
                assert_eq!(data, before);
                apply(&mut data, 0);
                assert_eq!(data[record.offset as usize..][..8], [0; 8]);
                found += 1;
            }
        }
    }
    assert_eq!(found, 24);
}

/// Every fixture that a row names has such a relocation, or describes one.
#[test]
fn named_fixtures_have_what_they_prove() {
    for number in 1..116 {
        let row = row(number).unwrap();
        let Some(fixture) = row.proof.fixture() else { continue };
        let bytes = read(fixture);
        let file = File::parse(&bytes).unwrap();
        let occurs = |fixture: &str| {
            let bytes = read(fixture);
            records(&File::parse(&bytes).unwrap()).iter().any(|(_, record)| record.r#type == number)
        };
        let holds = match row.proof {
            Proof::Described(_) => section(&file, ".nv.rel.action").is_some(),
            Proof::Linked(file) => {
                occurs(&file.replace("calls", "calls_a"))
                    || occurs(&file.replace("calls", "calls_b"))
            }
            _ => occurs(fixture),
        };
        assert!(holds, "{} in {fixture}", row.kind.name);
    }
}

/// Every kind that occurs in a fixture is known and, Mercury aside, none is refused.
#[test]
fn all_fixtures_are_covered() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let (mut files, mut seen) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cubin") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        for (target, record) in records(&file) {
            assert!(row(record.r#type).is_some(), "{} {}", path.display(), record.r#type);
            let mut data = file.section_data(&target).unwrap().to_vec();
            let mut section = SectionMut { bytes: &mut data, address: 0, big_endian: false };
            let result = apply::<Cuda>(&record, &mut section, &|_: &Query| Some(0));
            assert_eq!(result, Ok(()), "{}", path.display());
            seen += 1;
        }
        files += 1;
    }
    assert!(files >= 24 && seen > 300, "{files} files, {seen} relocations");
}
