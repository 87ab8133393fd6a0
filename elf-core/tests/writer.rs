//! What the crate `object` writes is read as what went in.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use elf_core::names::{STB_GLOBAL, STB_LOCAL};
use elf_core::{Definition, File};
use object::write::{Object, Relocation, SectionId, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind,
    SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use proptest::prelude::*;

/// A section: its data, alignment as a power of two, relocations by offset, symbol and addend.
type Section = (Vec<u8>, u32, Vec<(u8, prop::sample::Index, i16)>);

fn section() -> impl Strategy<Value = Section> {
    let relocation = (any::<u8>(), any::<prop::sample::Index>(), any::<i16>());
    (
        prop::collection::vec(any::<u8>(), 300..500),
        0..8_u32,
        prop::collection::vec(relocation, 0..6),
    )
}

const TARGETS: [(Architecture, Endianness); 8] = [
    (Architecture::X86_64, Endianness::Little),
    (Architecture::X86_64_X32, Endianness::Little),
    (Architecture::I386, Endianness::Little),
    (Architecture::Aarch64, Endianness::Little),
    (Architecture::S390x, Endianness::Big),
    (Architecture::PowerPc, Endianness::Big),
    (Architecture::PowerPc64, Endianness::Big),
    (Architecture::Arm, Endianness::Big),
];

proptest! {
    #[test]
    fn what_is_written_is_read(
        target in prop::sample::select(&TARGETS[..]),
        sections in prop::collection::vec(section(), 1..6),
        symbols in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0..300_u64, 0..99_u64), 1..12),
    ) {
        let (architecture, endian) = target;
        let mut object = Object::new(BinaryFormat::Elf, architecture, endian);
        let mut ids: Vec<SectionId> = Vec::new();
        for (index, (data, alignment, _)) in sections.iter().enumerate() {
            let id = object.add_section(Vec::new(), format!(".text.{index}").into(), SectionKind::Text);
            object.append_section_data(id, data, 1 << alignment);
            ids.push(id);
        }
        let symbol_ids: Vec<_> = symbols.iter().enumerate().map(|(index, (global, section, value, size))| {
            object.add_symbol(Symbol {
                name: format!("symbol_{index}").into(),
                value: *value,
                size: *size,
                kind: SymbolKind::Text,
                scope: if *global { SymbolScope::Dynamic } else { SymbolScope::Compilation },
                weak: false,
                section: SymbolSection::Section(*section.get(&ids)),
                flags: SymbolFlags::None,
            })
        }).collect();
        let mut expected = Vec::new();
        for (id, (_, _, relocations)) in ids.iter().zip(&sections) {
            let mut of_section = Vec::new();
            for (offset, symbol, addend) in relocations {
                let flags = RelocationFlags::Generic {
                    kind: RelocationKind::Absolute,
                    encoding: RelocationEncoding::Generic,
                    size: 32,
                };
                let record = Relocation {
                    offset: (*offset).into(),
                    symbol: *symbol.get(&symbol_ids),
                    addend: (*addend).into(),
                    flags,
                };
                if object.add_relocation(*id, record).is_ok() {
                    of_section.push((u64::from(*offset), symbol.index(symbols.len()), i64::from(*addend)));
                }
            }
            expected.push(of_section);
        }
        let bytes = object.write().expect("an object");
        let file = File::parse(&bytes).expect("a file");
        prop_assert_eq!(file.encoding().is_big_endian(), endian == Endianness::Big);
        let table = file.symbol_table().expect("symbols").expect("symbols");
        for (index, (global, section, value, size)) in symbols.iter().enumerate() {
            let name = format!("symbol_{index}");
            let (at, found) = table.find(name.as_str().into()).expect("a symbol");
            prop_assert_eq!((found.value, found.size), (*value, *size));
            prop_assert_eq!(found.binding(), if *global { STB_GLOBAL } else { STB_LOCAL });
            prop_assert_eq!((at as usize) < table.first_global(), !*global);
            let Ok(Definition::Section(defined)) = table.section_of(at, &found) else { panic!("no section") };
            let name = file.section_name(&file.section(defined).expect("a section")).expect("a name");
            prop_assert_eq!(name.to_string(), format!(".text.{}", section.index(ids.len())));
        }
        for ((index, (data, alignment, _)), expected) in sections.iter().enumerate().zip(&expected) {
            let name = format!(".text.{index}");
            let is = |section: &elf_core::SectionHeader| file.section_name(section).is_ok_and(|found| found == name.as_str());
            let (at, section) = (0u32..).zip(file.sections()).find(|(_, section)| is(section)).expect("a section");
            prop_assert_eq!(file.section_data(&section).expect("data").len(), data.len());
            prop_assert_eq!(section.alignment, 1 << alignment);
            let records = file.sections().iter().filter(|section| section.info == at);
            let records = records.filter_map(|section| file.relocations(&section).expect("records"));
            let found: Vec<_> = records.flatten().map(|record| {
                let symbol = table.get(record.symbol).expect("a symbol");
                let name = table.name_of(&symbol).expect("a name").to_string();
                (record.offset, name, record.addend)
            }).collect();
            prop_assert_eq!(found.len(), expected.len());
            for ((offset, name, addend), (expected_offset, symbol, expected_addend)) in found.into_iter().zip(expected) {
                prop_assert_eq!((offset, name), (*expected_offset, format!("symbol_{symbol}")));
                prop_assert!(addend.is_none_or(|addend| addend == *expected_addend));
            }
        }
    }
}
