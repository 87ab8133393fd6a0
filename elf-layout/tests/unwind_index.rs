//! The index of Arm's unwinding tables, searched as an unwinder does (EHABI32, "Index table entries"): what it finds for every
//! instruction is the object's own entry, or that code without any cannot be unwound.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "default"))]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

use elf_core::names::SHT_ARM_EXIDX;
use elf_core::{File, Name, SectionFlags};
use elf_layout::{ExternalSymbol, HeapStorage, ImageMode, Options};
use reloc_arm::Arm;

const BASE: u64 = 0x10_0000;
const CANTUNWIND: u32 = 1;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../fixtures/arm/", $name, ".o")).as_slice()
    };
}

/// Checks what a search finds for all code of these objects. Gives how many entries were added by the layout.
fn check(objects: &[&[u8]], options: Options) -> usize {
    let files: Vec<_> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut room = HeapStorage::new();
    let mut externals = |name: Name<'_>| {
        let is_edge = name == "__exidx_start" || name == "__exidx_end";
        (!is_edge).then_some(ExternalSymbol::function(0x7000_0000))
    };
    let mut layout = room.plan::<Arm>(&files, options, &mut externals).unwrap();
    layout.set_static_tls_block(layout.executable_tls_block());
    let mut image = vec![0; layout.size() as usize];
    layout.write(&mut image, BASE).unwrap();
    let edge = |wanted: &str| {
        let table = files[0].symbol_table().unwrap().unwrap();
        let mut symbols = (0u32..).zip(table.symbols());
        let named = |name: Name<'_>| name == wanted;
        let (index, _) = symbols.find(|(_, it)| named(table.name_of(it).unwrap())).unwrap();
        layout.symbol(0, index).unwrap().at(0)
    };
    let (start, end) = (edge("__exidx_start"), edge("__exidx_end"));
    let word = |at: u64| u32::from_le_bytes(image[at as usize..][..4].try_into().unwrap());
    let entries: Vec<(u64, u64, u32)> = (start..end)
        .step_by(8)
        .map(|at| {
            let distance = i64::from((word(at) << 1).cast_signed() >> 1);
            (at.wrapping_add_signed(distance), at, word(at + 4))
        })
        .collect();
    assert!(entries.is_sorted_by(|one, two| one.0 < two.0), "{entries:x?}");
    let (mut own, mut all_code) = (0, Vec::new());
    for (object, file) in files.iter().enumerate() {
        let sections: Vec<_> = (0u32..).zip(file.sections()).collect();
        for (code, header) in &sections {
            let is_code = header.flags.contains(SectionFlags::EXECINSTR) && header.size > 0;
            let Some(at) = layout.section(object, *code).filter(|_| is_code) else { continue };
            let is_index = |it: &&(u32, elf_core::SectionHeader)| {
                it.1.r#type == SHT_ARM_EXIDX && it.1.link == *code && it.1.size > 0
            };
            let index = sections.iter().find(is_index);
            own += index.map_or(0, |(_, header)| header.size as usize / 8);
            // whether what follows would be taken for a part of it
            let last = index
                .map(|(index, header)| layout.section(object, *index).unwrap() + header.size - 4);
            all_code.push((at, last.map(|at| word(at) != CANTUNWIND)));
            for place in (at..at + header.size).step_by(2) {
                let found = entries.iter().rev().find(|entry| entry.0 <= place);
                match index {
                    Some((index, header)) => {
                        let (_, entry, _) = found.unwrap();
                        let first = layout.section(object, *index).unwrap();
                        assert!((first..first + header.size).contains(entry), "{object} {code}");
                    }
                    None => assert!(found.is_none_or(|it| it.2 == CANTUNWIND), "{object} {code}"),
                }
            }
        }
    }
    // as few entries as will do are added: one before code without any, and one at the end
    all_code.sort_unstable();
    let next = all_code.iter().skip(1).map(|(_, has)| has.is_some()).chain([false]);
    let pairs = all_code.iter().zip(next);
    let needed = pairs.filter(|((_, goes_on), next)| *goes_on == Some(true) && !next).count();
    assert_eq!(entries.len() - own, needed);
    needed
}

#[test]
fn a_search_finds_what_is_right() {
    let packed = Options { mode: ImageMode::Packed { section_alignment: 4 }, ..Options::default() };
    for options in [Options::default(), packed] {
        let alone = check(&[fixture!("unwinding")], options);
        assert!(alone > 0);
        for others in [
            [fixture!("pair-a"), fixture!("pair-b")],
            [fixture!("pair-a-gcc12"), fixture!("pair-b-gcc12")],
            [fixture!("pair-b"), fixture!("pair-a-gcc12-thumb")],
            [fixture!("library"), fixture!("elftest")],
            [fixture!("models-gcc12-O0-arm-nopic"), fixture!("elftest")],
        ] {
            check(&[fixture!("unwinding"), others[0], others[1]], options);
        }
    }
}
