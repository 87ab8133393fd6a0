//! The fixtures of `fixtures/forms/`, checked by hand or against one another.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    non_upper_case_globals,
    reason = "a test"
)]

mod common;

use common::{fixture, fixtures};
use elf_core::names::{
    DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_JMPREL, DT_NEEDED, DT_RELA, DT_RELR,
    DT_SONAME, SHT_CREL, SHT_GNU_HASH, SHT_GNU_verdef, SHT_GNU_verneed, SHT_HASH, SHT_NOTE,
    SHT_RELA,
};
use elf_core::{Error, ErrorKind, File, Name, Record, RelocationIter, Relocations};

/// The relocations of every section of this type.
fn relocations<'a>(file: &File<'a>, r#type: u32) -> Vec<Relocations<'a>> {
    let sections = file.sections().iter().filter(|section| section.r#type == r#type);
    sections.map(|section| file.relocations(&section).unwrap().unwrap()).collect()
}

/// What one compiler writes in two forms.
#[test]
fn crel_is_rela() {
    let (crel, rela) = (fixture("forms/models-crel.o"), fixture("forms/models-rela.o"));
    let (crel, rela) = (File::parse(&crel).unwrap(), File::parse(&rela).unwrap());
    let (crel, rela) = (relocations(&crel, SHT_CREL), relocations(&rela, SHT_RELA));
    let records = |all: &[Relocations<'_>]| -> Vec<Vec<Record>> {
        all.iter().map(|it| it.iter().collect()).collect()
    };
    // `.eh_frame` keeps SHT_RELA in both.
    assert!(
        crel.len() >= 3 && records(&crel).iter().all(|section| records(&rela).contains(section))
    );
    for packed in &crel {
        assert!(matches!(packed, Relocations::Crel(it) if it.has_addends() && !it.is_empty()));
        for stops in 0..packed.len() + 3 {
            let mut stops = vec![RelocationIter::EMPTY; stops];
            let indexed = packed.indexed(&mut stops);
            for (index, record) in packed.iter().enumerate() {
                assert_eq!((packed.get(index), indexed.get(index)), (Some(record), Some(record)));
            }
            assert_eq!((indexed.get(packed.len()), indexed.len()), (None, packed.len()));
        }
    }
}

/// As `llvm-readelf-19 -r` shows them.
#[test]
fn android() {
    let bytes = fixture("forms/libandroid.so");
    let file = File::parse(&bytes).unwrap();
    let record = |offset, symbol, r#type, addend| Record { offset, symbol, r#type, addend };
    let expected = [
        record(0x34f8, 0, 8, Some(0x34e4)),
        record(0x24d0, 4, 6, Some(0)),
        record(0x24d8, 2, 6, Some(0)),
        record(0x34f0, 6, 1, Some(0)),
    ];
    let dynamic = file.dynamic_by_segment().unwrap().unwrap();
    for found in
        [relocations(&file, 0x6000_0002)[0], dynamic.relocations(DT_ANDROID_RELA).unwrap().unwrap()]
    {
        assert!(found.iter().eq(expected));
        assert_eq!((found.len(), found.get(2), found.get(4)), (4, Some(expected[2]), None));
    }
    let bytes = fixture("forms/libandroid-arm.so");
    let dynamic = File::parse(&bytes).unwrap().dynamic_by_segment().unwrap().unwrap();
    let packed = dynamic.relocations(DT_ANDROID_REL).unwrap().unwrap();
    let expected = [(0x203e0, 3, 0x15), (0x203e4, 5, 0x15), (0x303f0, 6, 2)];
    assert!(
        packed
            .iter()
            .eq(expected.map(|(offset, symbol, r#type)| record(offset, symbol, r#type, None)))
    );
    let relative = dynamic.relocations(DT_ANDROID_RELR).unwrap().unwrap();
    assert!(relative.iter().eq([record(0x303f4, 0, 23, None)]));
    let jumps = dynamic.relocations(DT_JMPREL).unwrap().unwrap();
    assert!(jumps.iter().eq([record(0x30404, 2, 0x16, None), record(0x30408, 5, 0x16, None)]));
}

/// Records of both byte orders are the same, although `r_info` is not.
#[test]
fn mips64() {
    let [little, big] = ["forms/mips64el.o", "forms/mips64.o"].map(fixture);
    let [little, big] = [&little, &big].map(|bytes| {
        let file = File::parse(bytes).unwrap();
        let all = relocations(&file, SHT_RELA);
        all.into_iter().flatten().collect::<Vec<_>>()
    });
    assert_eq!(little, big);
    // GPREL16, SUB, HI16 against `exported`.
    assert_eq!(little[0], Record { offset: 0xc, symbol: 2, r#type: 0x0005_1807, addend: Some(0) });
}

/// x32: 32-bit tables of x86-64; properties aligned to 4 bytes, relative relocations of 4.
#[test]
fn x32() {
    let bytes = fixture("forms/libx32.so");
    let file = File::parse(&bytes).unwrap();
    let dynamic = file.dynamic().unwrap().unwrap();
    let record = |offset, symbol, r#type, addend| Record { offset, symbol, r#type, addend };
    let relative: Vec<Record> = dynamic.relocations(DT_RELR).unwrap().unwrap().iter().collect();
    assert!(matches!(relative[..], [Record { symbol: 0, r#type: 8, addend: None, .. }]));
    let types: Vec<u32> =
        dynamic.relocations(DT_RELA).unwrap().unwrap().iter().map(|it| it.r#type).collect();
    assert_eq!(types, [6, 6, 10]);
    assert_ne!(relative[0], record(0, 0, 8, None));
    let section = file.sections().iter().find(|section| section.r#type == SHT_NOTE).unwrap();
    let note = file.section_notes(&section).unwrap().unwrap().next().unwrap().unwrap();
    let properties = note.properties().unwrap().map(|property| property.unwrap());
    assert!(
        properties.map(|property| (property.r#type, property.value())).eq([(0xc000_0002, Some(3))])
    );
}

/// Versions by sections and by addresses, in all classes and orders that the fixtures have.
#[test]
fn versions() {
    for name in ["x86_64/libshared.so", "forms/libs390x.so", "forms/libpowerpc.so"] {
        let bytes = fixture(name);
        let file = File::parse(&bytes).unwrap();
        let dynamic = file.dynamic_by_segment().unwrap().unwrap();
        let symbols = dynamic.symbol_table().unwrap().unwrap();
        let by_section = file.dynamic_symbol_table().unwrap().unwrap();
        assert!(symbols.symbols().iter().eq(by_section.symbols()), "{name}");
        for versions in [file.versions().unwrap().unwrap(), dynamic.versions().unwrap().unwrap()] {
            let version = |symbol: &str| {
                let (index, _) = symbols.find(symbol.into()).unwrap();
                versions
                    .of(index)
                    .unwrap()
                    .map(|version| (version.name.to_str().unwrap(), version.is_hidden))
            };
            assert_eq!(version("exported"), Some(("FIXTURE_1.0", false)), "{name}");
            assert_eq!(version("exported_data"), Some(("FIXTURE_1.0", false)));
            assert_eq!(version("exported_too"), Some(("FIXTURE_2.0", false)));
            assert_eq!(versions.of(9999), Ok(None));
            let names = versions.definitions().map(|definition| {
                let names = definition.unwrap().names().map(|name| name.unwrap().to_str().unwrap());
                names.collect::<Vec<_>>()
            });
            let names: Vec<_> = names.collect();
            // lld does not write down what a version inherits from.
            let inherits = if name.starts_with("x86_64") { vec![] } else { vec!["FIXTURE_1.0"] };
            assert_eq!(
                names[1..],
                [vec!["FIXTURE_1.0"], [vec!["FIXTURE_2.0"], inherits].concat()],
                "{name}"
            );
            for definition in versions.definitions() {
                let definition = definition.unwrap();
                assert_eq!(definition.hash, elf_core::sysv_hash(definition.name().unwrap()));
            }
            assert_eq!(versions.needs().count(), 0);
        }
    }
}

/// Records in versions lie beside one another: a list that says otherwise could be read for hours.
#[test]
fn versions_do_not_share_records() {
    let mut found = [0; 2];
    for (path, mut bytes) in fixtures() {
        let file = File::parse(&bytes).unwrap();
        let lists = file.sections().iter().filter_map(|section| match section.r#type {
            SHT_GNU_verdef => Some((0, "vd_cnt", section.offset, 6)),
            SHT_GNU_verneed => Some((1, "vn_cnt", section.offset, 2)),
            _ => None,
        });
        for (which, what, at, field) in lists.collect::<Vec<_>>() {
            let place = usize::try_from(at).unwrap() + field;
            let old = [bytes[place], bytes[place + 1]];
            bytes[place..place + 2].copy_from_slice(&[0xff, 0xff]);
            let file = File::parse(&bytes).unwrap();
            let sections = file.versions().unwrap();
            let dynamic = file.dynamic_by_segment().unwrap();
            let addresses = dynamic.and_then(|dynamic| dynamic.versions().unwrap());
            for versions in [sections, addresses].into_iter().flatten() {
                let error = match which {
                    0 => versions.definitions().find_map(Result::err),
                    _ => versions.needs().find_map(Result::err),
                };
                let kind = ErrorKind::Invalid { what, value: 0xffff };
                assert_eq!(error, Some(Error { at, kind }), "{path:?}");
                found[which] += 1;
            }
            bytes[place..place + 2].copy_from_slice(&old);
        }
    }
    assert!(found.iter().all(|count| *count > 3), "{found:?}");
}

/// Every defined name of every dynamic symbol table is found by each hash table, and no other is.
#[test]
fn hash_tables_find_every_name() {
    let (mut narrow, mut wide, mut gnu) = (0, 0, 0);
    for (path, bytes) in fixtures() {
        let file = File::parse(&bytes).unwrap();
        let Some(symbols) = file.dynamic_symbol_table().unwrap() else { continue };
        let dynamic = file.dynamic_by_segment().unwrap().unwrap();
        let find = |kind| file.sections().iter().find(|section| section.r#type == kind);
        let sysv = find(SHT_HASH).map(|section| file.hash_table(&section).unwrap().unwrap());
        let second =
            find(SHT_GNU_HASH).map(|section| file.gnu_hash_table(&section).unwrap().unwrap());
        assert_eq!(
            dynamic.hash_table().unwrap().map(|it| it.symbol_count()),
            sysv.map(|it| it.symbol_count())
        );
        for (index, symbol) in (0u32..).zip(symbols.symbols()).skip(1) {
            let name = symbols.name_of(&symbol).unwrap();
            if name.is_empty() {
                continue; // of a section: there are several
            }
            let found = Some((index, symbol));
            if let Some(table) = sysv {
                assert_eq!(table.find(name, &symbols), Ok(found), "{}: {name}", path.display());
                assert_eq!(table.symbol_count(), symbols.len());
                *if file.header().machine == 22 { &mut wide } else { &mut narrow } += 1;
            }
            if let Some(table) = second.filter(|table| index >= table.first_symbol()) {
                assert_eq!(table.find(name, &symbols), Ok(found), "{}: {name}", path.display());
                assert_eq!(table.symbol_count(), Ok(symbols.len() as u32));
                let by_address = dynamic.gnu_hash_table().unwrap().unwrap();
                assert_eq!(by_address.find_where(name, &symbols, |at, _| at == index), Ok(found));
                gnu += 1;
            }
        }
        let absent = Name::from("absent");
        assert_eq!(sysv.map_or(Ok(None), |table| table.find(absent, &symbols)), Ok(None));
        assert_eq!(second.map_or(Ok(None), |table| table.find(absent, &symbols)), Ok(None));
        assert_eq!(
            second.map_or(Ok(None), |table| table.find_where(
                "exported".into(),
                &symbols,
                |_, _| false
            )),
            Ok(None)
        );
    }
    assert!(narrow >= 10 && wide >= 5 && gnu >= 10, "{narrow} {wide} {gnu}");
}

/// What the section says, the segment says.
#[test]
fn dynamic_section_and_segment() {
    let mut count = 0;
    for (path, bytes) in fixtures() {
        let file = File::parse(&bytes).unwrap();
        let (section, segment) =
            (file.dynamic_by_section().unwrap(), file.dynamic_by_segment().unwrap());
        assert_eq!(section.is_some(), segment.is_some());
        let Some((section, segment)) = section.zip(segment) else { continue };
        count += 1;
        assert!(section.entries().iter().eq(segment.entries()), "{}", path.display());
        let texts = |dynamic: &elf_core::DynamicSection<'_>| -> Vec<String> {
            let all = [DT_NEEDED, DT_SONAME]
                .map(|tag| dynamic.texts(tag).map(|text| text.unwrap().to_string()));
            all.into_iter().flatten().collect()
        };
        assert_eq!(texts(&section), texts(&segment));
        if path.ends_with("x86_64/libshared.so") {
            assert_eq!(texts(&segment), ["libshared.so.1"]);
        }
    }
    assert!(count >= 8, "{count}");
}

/// C++ makes groups: their signatures are the names of what they hold.
#[test]
fn groups() {
    let (mut count, mut members) = (0, 0);
    for (_, bytes) in fixtures() {
        let file = File::parse(&bytes).unwrap();
        for section in file.sections() {
            let Some(group) = file.section_group(&section).unwrap() else { continue };
            assert!(group.is_comdat() && !group.signature.is_empty());
            for member in group.members() {
                members += 1;
                assert!(
                    file.section(member).unwrap().flags.contains(elf_core::SectionFlags::GROUP)
                );
            }
            count += 1;
        }
    }
    assert!(count > 10 && members > count, "{count} groups of {members} sections");
}
