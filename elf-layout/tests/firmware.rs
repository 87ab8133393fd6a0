//! The lines that the README gives to authors of firmware: they are these, and they work.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test")]

use elf_core::File;
use elf_layout::{ImageMode, Layout, ObjectSlot, Options, SectionSlot, Storage, SymbolSlot};
use reloc_aarch64::Aarch64;

/// Links `object` into `memory`, to run at address `base`, and gives the address of its function.
fn link(object: &[u8], memory: &mut [u8], base: u64, function: &str) -> Option<u64> {
    let files = [File::parse(object).ok()?];
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 1],
        sections: &mut [SectionSlot::default(); 32], // `Requirements::of(&files)` counts
        symbols: &mut [SymbolSlot::default(); 64],
        names: &mut [], // of several objects: a power of two, twice their global symbols
        edits: &mut [], // of code that may become shorter: RISC-V's
    };
    let mode = ImageMode::Segments { page_size: 64 };
    let options = Options { mode, base: Some(base), ..Options::default() };
    let layout = Layout::<Aarch64>::plan(&files, options, storage, &mut |_| None).ok()?;
    layout.write(memory, base).ok()?;
    let (object, symbol) = layout.find(function.into())?;
    Some(layout.symbol(object, symbol)?.at(base))
}

const OBJECT: &[u8] = include_bytes!("../../fixtures/aarch64/elftest.o");

#[test]
fn the_function_is_where_it_is_said_to_be() {
    let mut memory = [0xff; 0x1000];
    let base = 0x4010_0000;
    let address = link(OBJECT, &mut memory, base, "foo").unwrap();
    let file = File::parse(OBJECT).unwrap();
    let text = file.sections().iter().find(|it| file.section_name(it).unwrap() == ".text").unwrap();
    let code = file.section_data(&text).unwrap();
    let at = usize::try_from(address - base).unwrap();
    // the first instruction is not relocated
    assert_eq!(memory[at..at + 4], code[..4]);
    assert_eq!(link(OBJECT, &mut memory, base, "bar"), None);
    assert_eq!(link(OBJECT, &mut [], base, "foo"), None);
}

#[test]
fn the_readme_has_the_same_lines() {
    let (readme, own) = (include_str!("../../README.md"), include_str!("firmware.rs"));
    let (_, lines) = own.split_once("\n\n").unwrap();
    let (lines, _) = lines.split_once("\nconst OBJECT").unwrap();
    assert!(readme.contains(&format!("```rust\n{lines}```")), "{lines}");
}
