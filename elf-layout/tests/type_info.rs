//! Type information in the unwinding tables of Arm: by its GOT entry, and by its address on M-profile.
#![cfg(all(test, feature = "alloc"))]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

use elf_core::{File, Name};
use elf_layout::{ExternalSymbol, HeapStorage, Options};
use reloc_arm::Arm;

const BASE: u64 = 0x2000_0000;

/// Where the table's words lead, from the place of each, and where the type information is.
fn targets(object: &[u8]) -> (Vec<u64>, u64, Vec<u8>) {
    let files = [File::parse(object).unwrap()];
    let mut room = HeapStorage::new();
    let mut externals = |_: Name<'_>| None::<ExternalSymbol>;
    let layout = room.plan::<Arm>(&files, Options::default(), &mut externals).unwrap();
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let sections = files[0].sections();
    let table =
        sections.iter().position(|it| files[0].section_name(&it).unwrap() == ".handlers").unwrap();
    let table = BASE + layout.section(0, table as u32).unwrap();
    let word = |at: u64| {
        let at = (at - BASE) as usize;
        i32::from_le_bytes(image[at..at + 4].try_into().unwrap())
    };
    let places = [table, table + 4];
    let targets = places.map(|place| place.wrapping_add_signed(word(place).into()));
    let (object, symbol) = layout.find("info".into()).unwrap();
    (targets.to_vec(), layout.symbol(object, symbol).unwrap().at(BASE), image)
}

#[test]
fn by_got_entry_where_there_is_a_dynamic_linker() {
    let (targets, info, image) = targets(include_bytes!("../../fixtures/arm/type-info.o"));
    let entry = (targets[0] - BASE) as usize;
    assert_eq!(image[entry..entry + 4], (info as u32).to_le_bytes());
    assert_eq!(targets[1], targets[0] + 4);
}

#[test]
fn by_address_on_microcontrollers() {
    let (targets, info, _) = targets(include_bytes!("../../fixtures/arm/type-info-m0.o"));
    assert_eq!(targets, [info, info + 4]);
}
