//! Lays out any file in fixed storage, writes the image, and looks whether the layout is one.

use super::placement;
use super::sink::Sink;
use archs::{Architecture, with_arch};
use elf_core::names::SHT_NOBITS;
use elf_core::{Arch, File, Name};
use elf_layout::archives::UndefinedSymbols;
use elf_layout::{
    Edit, Error, ErrorKind, ExternalSymbol, HeapStorage, ImageMode, Layout, ObjectSlot, Options,
    Requirements, ScanPart, SectionSlot, Storage, SymbolSlot,
};

/// Most objects.
pub const OBJECTS: usize = 4;
const SECTIONS: usize = 512;
const SYMBOLS: usize = 1024;
const NAMES: usize = 2048;
const EDITS: usize = 512;
/// Largest image that is written, in bytes.
const IMAGE: u64 = 1 << 16;

/// Lays out the file as segments and as one blob.
pub fn run(bytes: &[u8]) {
    if let Some(file) = Sink::default().result(File::parse(bytes)) {
        files(&[file]);
    }
}

/// Lays out files together, for the machine of the first.
pub(super) fn files(files: &[File<'_>]) {
    let Some(first) = files.first() else { return };
    let found = Architecture::of(first.header().machine, first.encoding().is_64());
    let architecture = found.unwrap_or(Architecture::X86_64);
    let base = Some(0x4000_0000);
    let segments = ImageMode::Segments { page_size: 4096 };
    for options in [
        Options::default(),
        Options { mode: segments, base, indirect_functions: true, ..Options::default() },
        Options { mode: ImageMode::Packed { section_alignment: 128 }, ..Options::default() },
        Options { base, global_pointer: true, executable: true, ..Options::default() },
    ] {
        with_arch!(architecture, A => plan::<A>(files, options));
    }
}

/// What a process might answer: near or far; a function, constant or other data, or nothing, by the name's first byte.
fn external(name: Name<'_>) -> Option<ExternalSymbol> {
    let byte = name.as_bytes().first().copied().unwrap_or(0);
    let address = if byte & 2 != 0 { 0x7fff_f7a0_1230 } else { 0x4100_0000 };
    match byte & 15 {
        1 | 3 | 5 | 9 | 11 => Some(ExternalSymbol::function(address)),
        7 | 13 | 15 => None,
        4 | 6 => Some(ExternalSymbol::constant(address, u64::from(byte) * 3)),
        _ => Some(ExternalSymbol::new(address)),
    }
}

fn plan<A: Arch>(files: &[File<'_>], options: Options) {
    let mut sink = Sink::default();
    let mut objects = [ObjectSlot::default(); OBJECTS];
    let mut sections = [SectionSlot::default(); SECTIONS];
    let mut edits = [Edit::default(); EDITS];
    let (mut symbols, mut names) = ([SymbolSlot::default(); SYMBOLS], [u32::MAX; NAMES]);
    let storage = Storage {
        objects: &mut objects,
        sections: &mut sections,
        symbols: &mut symbols,
        names: &mut names,
        edits: &mut edits,
    };
    other_ways::<A>(files, options);
    match Layout::<A>::plan(files, options, storage, &mut |name| external(name)) {
        Ok(mut layout) => {
            layout.set_static_tls_block(layout.executable_tls_block());
            sink.debug((layout.tls_block(), layout.indirect_functions().count()));
            laid_out(&layout, &options, &mut sink);
        }
        Err(error) => {
            sink.display(error);
            assert!(error.object < files.len(), "it is one of the objects");
            if let ErrorKind::Storage { needed, .. } = error.kind {
                let all = Requirements::of(files).expect("the error came later");
                assert!(
                    [all.objects, all.sections, all.symbols, all.names].contains(&needed),
                    "what is needed is known beforehand"
                );
            }
        }
    }
}

/// Files whose names have numbers, and those that are scanned in parts, are laid out as others.
fn other_ways<A: Arch>(files: &[File<'_>], options: Options) {
    let mut rooms = [(); 3].map(|()| HeapStorage::new());
    let [first, second, third] = &mut rooms;
    let read = first.plan::<A>(files, options, &mut |name| external(name));
    // the first one is left out
    let scan = &mut |parts: &mut [ScanPart<'_, '_, A>]| {
        parts.iter_mut().skip(1).rev().for_each(ScanPart::scan);
    };
    let apart =
        second.plan_in_parts(files, None, options, &mut |name| external(name), OBJECTS, scan);
    same(&read, &apart);
    let mut undefined = UndefinedSymbols::new();
    if files.iter().any(|file| undefined.add(file).is_err()) {
        return;
    }
    let numbers = undefined.into_numbers();
    let numbered = third.plan_numbered(files, &numbers, options, &mut |name| external(name));
    same(&read, &numbered);
}

fn same<A: Arch>(one: &Result<Layout<'_, '_, A>, Error>, other: &Result<Layout<'_, '_, A>, Error>) {
    match (one, other) {
        (Err(one), Err(other)) => assert_eq!(one, other),
        (one, other) => {
            let (one, other) = (one.as_ref().expect("both are"), other.as_ref().expect("both are"));
            let sizes = [one, other].map(|layout| (layout.size(), layout.limit()));
            assert_eq!(sizes[0], sizes[1]);
            for object in 0..one.files().len() {
                let [one, other] = [one, other].map(|layout| layout.addresses(object, 0, 0));
                assert!(one.eq(other), "symbols of one name mean the same");
            }
        }
    }
}

fn laid_out<A: Arch>(layout: &Layout<'_, '_, A>, options: &Options, sink: &mut Sink) {
    placement::check(layout, options);
    sink.debug((layout.limit(), layout.size(), layout.alignment()));
    for (object, file) in layout.files().iter().enumerate() {
        let table = file.symbol_table().expect("it was read before").into_iter();
        let symbols = table.flat_map(|table| (0u32..).zip(table.symbols()));
        for (index, symbol) in symbols {
            let (owner, own) = layout.definition(object, index).expect("somebody stands for it");
            assert_eq!(layout.definition(owner, own), Some((owner, own)), "and is itself");
            assert_eq!(layout.symbol(object, index), layout.symbol(owner, own));
            if index < 16 {
                let table = file.symbol_table().expect("as above").expect("as above");
                sink.debug(table.name_of(&symbol).ok().and_then(|name| layout.find(name)));
            }
        }
    }
    write(layout, options, sink);
}

fn write<A: Arch>(layout: &Layout<'_, '_, A>, options: &Options, sink: &mut Sink) {
    if layout.size() > IMAGE {
        return;
    }
    let size = layout.size() as usize;
    let base = options.base.unwrap_or(layout.alignment().max(0x1_0000));
    let mut image = vec![0xaa; size + 16];
    if let Some(less) = size.checked_sub(1) {
        assert!(layout.write(&mut image[..less], base).is_err(), "there is no room");
        assert!(image.iter().all(|byte| *byte == 0xaa), "nothing was written");
    }
    let written = layout.write(&mut image, base);
    let mut apart = vec![0; size];
    let is_written = in_parts(layout, &mut apart, base);
    assert_eq!(is_written, written.is_ok(), "parts have what the whole has");
    match written {
        Err(error) => sink.display(error),
        Ok(()) => {
            assert!(image[..size] == apart, "the same bytes in parts");
            assert_eq!(image[size..], [0xaa; 16], "what is behind the image is left alone");
            let mut again = vec![0; size];
            assert_eq!(layout.write_zeroed(&mut again, base), Ok(()));
            assert!(image[..size] == again, "the same bytes again");
            copied(layout, &image);
        }
    }
}

/// Writes an image in up to three parts, the last first. Gives whether all are written.
fn in_parts<A: Arch>(layout: &Layout<'_, '_, A>, image: &mut [u8], base: u64) -> bool {
    let Ok(parts) = layout.parts(image, base, 3) else { return false };
    let parts: Vec<_> = parts.collect();
    let mut end = 0;
    for part in &parts {
        assert_eq!(part.offset(), end, "one behind the other");
        end += part.bytes().len() as u64;
    }
    assert_eq!(end, layout.size(), "and nothing behind the last");
    let results = parts.into_iter().rev().map(|part| layout.write_part(part).is_ok());
    results.fold(true, |all, one| all & one)
}

/// Sections without relocations are copies of the file's bytes.
fn copied<A: Arch>(layout: &Layout<'_, '_, A>, image: &[u8]) {
    for (object, file) in layout.files().iter().enumerate() {
        for (index, header) in (0u32..).zip(file.sections()) {
            let Some(offset) = layout.section(object, index) else { continue };
            let relocated = file.sections().iter().any(|other| {
                other.info == index && file.relocations(&other).is_ok_and(|rows| rows.is_some())
            });
            // what has no bytes may stand with thread-local zeros, which are not in the image
            if relocated || header.r#type == SHT_NOBITS || header.size == 0 {
                continue;
            }
            let data = file.section_data(&header).expect("it was copied");
            let place = image.get(offset as usize..).and_then(|rest| rest.get(..data.len()));
            assert!(place == Some(data), "section {index} of object {object} is copied");
        }
    }
}
