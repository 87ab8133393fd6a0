//! Type information in the unwinding tables of Arm: by its GOT entry, and by its address on M-profile.
#![cfg(all(test, feature = "alloc"))]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

use elf_core::{File, Name};
use elf_layout::{ExternalSymbol, HeapStorage, Options, Target2};
use reloc_arm::Arm;

const BASE: u64 = 0x2000_0000;
const A_PROFILE: &[u8] = include_bytes!("../../fixtures/arm/type-info.o");
const M_PROFILE: &[u8] = include_bytes!("../../fixtures/arm/type-info-m0.o");

/// Where the table's words lead, from the place of each, and where the type information is.
fn targets(object: &[u8], target2: Target2) -> (Vec<u64>, u64, Vec<u8>) {
    let files = [File::parse(object).unwrap()];
    let options = Options { target2, ..Options::default() };
    let mut room = HeapStorage::new();
    let mut externals = |_: Name<'_>| None::<ExternalSymbol>;
    let layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    let is_m_profile = object == M_PROFILE;
    let has_entry = match target2 {
        Target2::ByProcessor => !is_m_profile,
        _ => target2 == Target2::GotRelative,
    };
    assert_eq!(layout.got_entries().count(), usize::from(has_entry));
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
    for (object, target2) in [(A_PROFILE, Target2::ByProcessor), (M_PROFILE, Target2::GotRelative)]
    {
        let (targets, info, image) = targets(object, target2);
        let entry = (targets[0] - BASE) as usize;
        assert_eq!(image[entry..entry + 4], (info as u32).to_le_bytes());
        assert_eq!(targets[1], targets[0] + 4);
    }
}

#[test]
fn by_distance_on_microcontrollers() {
    for (object, target2) in [(M_PROFILE, Target2::ByProcessor), (A_PROFILE, Target2::Relative)] {
        let (targets, info, _) = targets(object, target2);
        assert_eq!(targets, [info, info + 4]);
    }
}

#[test]
fn by_address() {
    for object in [A_PROFILE, M_PROFILE] {
        let (_, info, image) = targets(object, Target2::Absolute);
        let words = [info, info + 4].map(|address| (address as u32).to_le_bytes()).concat();
        assert_eq!(image.windows(8).filter(|held| *held == words).count(), 1);
    }
}
