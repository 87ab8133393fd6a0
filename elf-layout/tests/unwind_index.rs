//! The index of Arm's unwinding tables, searched as an unwinder does (EHABI32, "Index table entries"): what it finds for every
//! instruction is the object's own entry, or that code without any cannot be unwound.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "default"))]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test")]

use elf_core::names::{SHF_WRITE, SHT_ARM_EXIDX};
use elf_core::{File, Name, SectionFlags};
use elf_layout::{ExternalSymbol, HeapStorage, ImageMode, Options};
use reloc_arm::Arm;

const BASE: u64 = 0x10_0000;
const CANTUNWIND: u32 = 1;
// words of a section header
const FLAGS: usize = 2;
const SIZE: usize = 5;
const ALIGNMENT: usize = 8;

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
    let mut image = vec![0x5a; layout.size() as usize];
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
    // behind it nothing is written but what others have there
    let placed = files.iter().enumerate().flat_map(|(object, file)| {
        let sections = 0..file.sections().len() as u32;
        sections.filter_map(|section| layout.section(object, section)).collect::<Vec<_>>()
    });
    let stubs = layout.stubs().map(|stub| stub.offset);
    let others = placed.chain([layout.got().0, layout.size()]).chain(stubs);
    let next = others.filter(|at| *at >= end).min().unwrap();
    assert!(image[end as usize..next as usize].iter().all(|byte| *byte == 0));
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

/// The fixture with other section headers: a name and the words of each.
fn changed(change: impl Fn(&str, &mut [u32; 10])) -> Vec<u8> {
    let mut bytes = fixture!("unwinding").to_vec();
    let file = File::parse(fixture!("unwinding")).unwrap();
    let headers = u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
    for (number, header) in file.sections().iter().enumerate() {
        let row = headers + 40 * number;
        let word = |at: usize| u32::from_le_bytes(bytes[row + 4 * at..][..4].try_into().unwrap());
        let mut words = std::array::from_fn(word);
        change(file.section_name(&header).unwrap().to_str().unwrap(), &mut words);
        for (place, word) in bytes[row..row + 40].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
    }
    bytes
}

/// Whichever code is writable, and stands elsewhere, and whichever has no entries: each finds its own.
#[test]
fn wherever_code_stands_and_whatever_has_entries() {
    const CODE: [&str; 7] = ["first", "last", "ask", "third", "no_more", "plain", "fourth"];
    let packed = Options { mode: ImageMode::Packed { section_alignment: 1 }, ..Options::default() };
    for writable in 0..1 << CODE.len() {
        for without in [&[][..], &["third"], &["fourth", "no_more"], &["first"]] {
            let bytes = changed(|name, words| {
                let is_of = |it: &str, kind: &str| name.strip_prefix(kind) == Some(it);
                let at = CODE.iter().position(|it| is_of(it, ".text."));
                if at.is_some_and(|at| writable >> at & 1 != 0) {
                    words[FLAGS] |= SHF_WRITE as u32;
                }
                let kinds = [".ARM.exidx.text.", ".rel.ARM.exidx.text."];
                if without.iter().any(|it| kinds.iter().any(|kind| is_of(it, kind))) {
                    words[SIZE] = 0;
                }
            });
            for options in [Options::default(), packed] {
                check(&[&bytes], options);
            }
        }
    }
}

/// Where no code is, but room up to the next alignment, no entry is needed.
#[test]
fn sections_without_code_need_no_entry() {
    let bytes = changed(|name, words| match name {
        ".text.first" => words[SIZE] = 6,
        ".text.last" | ".text.ask" | ".rel.text.ask" => words[SIZE] = 0,
        ".text.third" => words[ALIGNMENT] = 16,
        _ => {}
    });
    check(&[&bytes], Options::default());
}
