//! Code that becomes shorter in a layout: where that leaves everything else, and what is refused.
#![cfg(test)]
#![cfg(all(feature = "edits", feature = "relax", feature = "thread-local"))]

use elf_core::{ApplyErrorKind, File, Name, SectionFlags};
use elf_layout::{
    Edit, Error, ErrorKind, ExternalSymbol, ImageMode, Layout, ObjectSlot, Options, Requirements,
    SectionSlot, StaticTlsBlock, Storage, SymbolSlot,
};
use reloc_riscv::Rv64;

const RELAX: &[u8] = include_bytes!("../../fixtures/riscv64/relax.o");
const BASE: u64 = 0x40_0000;

/// Where `outside` is.
fn outside(name: Name<'_>) -> Option<ExternalSymbol> {
    (name == "outside").then_some(ExternalSymbol::new(BASE + 0x8000))
}

fn options() -> Options {
    Options { base: Some(BASE), executable: true, ..Options::default() }
}

/// Lays out an object with room for so many edits.
fn laid_out<R>(
    bytes: &[u8],
    options: Options,
    room: usize,
    f: impl FnOnce(Result<Layout<'_, '_, Rv64>, Error>) -> R,
) -> R {
    let files = [File::parse(bytes).unwrap()];
    let needed = Requirements::of(&files).unwrap();
    let mut sections = vec![SectionSlot::default(); needed.sections];
    let mut symbols = vec![SymbolSlot::default(); needed.symbols];
    let storage = Storage {
        objects: &mut [ObjectSlot::default(); 1],
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut [],
        edits: &mut vec![Edit::default(); room],
    };
    f(Layout::plan(&files, options, storage, &mut |name| outside(name)))
}

/// The same with the fixture.
fn with_room<R>(
    options: Options,
    room: usize,
    f: impl FnOnce(Result<Layout<'_, '_, Rv64>, Error>) -> R,
) -> R {
    laid_out(RELAX, options, room, f)
}

fn needed() -> usize {
    let files = [File::parse(RELAX).unwrap()];
    Requirements::of(&files).unwrap().with_edits::<Rv64>(&files).unwrap().edits
}

#[test]
fn room_is_counted() {
    assert_eq!(Requirements::of(&[File::parse(RELAX).unwrap()]).unwrap().edits, 0);
    with_room(options(), needed(), |layout| assert!(layout.is_ok()));
    let few = with_room(options(), 3, |layout| layout.err().unwrap());
    assert_eq!(few.kind, ErrorKind::Storage { what: "edits", needed: 4 });
}

#[test]
fn without_room_padding_that_is_too_long_is_refused() {
    let error = with_room(options(), 0, |layout| {
        let mut layout = layout.unwrap();
        layout.set_thread_area(layout.executable_area());
        layout.write(&mut vec![0; layout.size() as usize], BASE).unwrap_err()
    });
    let ErrorKind::Apply(error) = error.kind else { panic!("{error}") };
    assert!(matches!(error.kind, ApplyErrorKind::Misaligned { .. }), "{error}");
}

#[test]
fn everything_follows() {
    let file = File::parse(RELAX).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let index = |wanted: &str| {
        (0u32..)
            .zip(table.symbols())
            .find(|(_, it)| table.name_of(it).unwrap() == wanted)
            .unwrap()
            .0
    };
    let text =
        (0u32..).zip(file.sections()).find(|(_, it)| it.flags.contains(SectionFlags::EXECINSTR));
    let (text, header) = text.unwrap();
    let sizes = |layout: &Layout<'_, '_, Rv64>| {
        let [first, last] =
            ["first", "last"].map(|name| layout.symbol_size(0, index(name)).unwrap());
        (layout.section_size(0, text).unwrap(), first, last)
    };
    let [first, last] = ["first", "last"].map(|name| table.get(index(name)).unwrap());
    let as_long = with_room(options(), 0, |layout| sizes(&layout.unwrap()));
    assert_eq!(as_long, (header.size, first.size, last.size));
    for options in [
        options(),
        Options { relax: false, ..options() },
        Options { base: None, ..options() },
        Options { mode: ImageMode::Packed { section_alignment: 1 }, ..options() },
    ] {
        with_room(options, needed(), |layout| {
            let layout = layout.unwrap();
            let (size, first_size, last_size) = sizes(&layout);
            assert!(size < header.size && first_size < first.size && last_size <= last.size);
            let at =
                |offset| layout.place(0, text, offset).unwrap() - layout.place(0, text, 0).unwrap();
            assert_eq!(at(header.size), size, "the end");
            assert_eq!(at(last.value + last.size) - at(last.value), last_size);
            let address = |it| layout.symbol(0, it).unwrap().at(BASE);
            assert_eq!(address(index("last")), BASE + layout.place(0, text, last.value).unwrap());
            // what .p2align asked for
            assert_eq!(address(index("threads")) % 64, 0);
        });
    }
}

#[test]
fn no_other_thread_area_than_that_of_executables() {
    with_room(options(), needed(), |layout| {
        let mut layout = layout.unwrap();
        let mut image = vec![0; layout.size() as usize];
        layout.set_thread_area(StaticTlsBlock {
            distance: Some(0x10_0000),
            ..layout.executable_area()
        });
        let error = layout.write(&mut image, BASE).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::Apply(it) if it.kind == ApplyErrorKind::Sequence),
            "{error}"
        );
        layout.set_thread_area(layout.executable_area());
        layout.write(&mut image, BASE).unwrap();
    });
}

#[test]
fn damaged_records_are_refused_or_right() {
    // every place, type and addend of the relocations of the code, by one bit
    let file = File::parse(RELAX).unwrap();
    let table = file.sections().iter().find(|it| it.info != 0 && it.size > 0).unwrap();
    let range = table.offset as usize..(table.offset + table.size) as usize;
    let mut written = 0;
    for (at, bit) in range.step_by(3).zip((0..8).cycle()) {
        let mut damaged = RELAX.to_vec();
        damaged[at] ^= 1 << bit;
        if File::parse(&damaged).is_err() {
            continue;
        }
        laid_out(&damaged, options(), needed() + 8, |layout| {
            let Ok(mut layout) = layout else { return };
            layout.set_thread_area(layout.executable_area());
            let mut image = vec![0; layout.size() as usize];
            written += u32::from(layout.write(&mut image, BASE).is_ok());
        });
    }
    assert!(written > 50, "{written}");
}
