//! Images of real files, and what is refused.
#![cfg(test)]

use elf_core::names::{
    DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, EM_386, EM_AARCH64, EM_RISCV, EM_X86_64,
    PT_DYNAMIC, PT_LOAD,
};
use elf_core::{Arch, File, Query, Resolve as _, Role, SegmentFlags};
use elf_image::{AddressKind, Error, ErrorKind, Image, SymbolReference};
use reloc_aarch64::Aarch64;
use reloc_riscv::{Rv32, Rv64};
use reloc_x86::{I386, X86_64};

const FILES: [(&str, &[u8]); 6] = [
    ("libshared", include_bytes!("../../fixtures/x86_64/libshared.so")),
    ("libshared-relr", include_bytes!("../../fixtures/x86_64/libshared-relr.so")),
    ("libandroid", include_bytes!("../../fixtures/forms/libandroid.so")),
    ("libvariable", include_bytes!("../../fixtures/x86_64/libvariable.so")),
    ("aarch64", include_bytes!("../../fixtures/aarch64/libshared.so")),
    ("aarch64-variable", include_bytes!("../../fixtures/aarch64/libvariable.so")),
];
const BASE: u64 = 0x7000_0000;
const IMPORTED: u64 = 0x1234_5678;

fn parse(bytes: &[u8]) -> Result<Image<'_>, Error> {
    Image::parse(File::parse(bytes)?, AddressKind::Virtual)
}

/// Relocates an image with what it defines itself, and one address for all else.
fn relocate<A: Arch>(image: &Image<'_>, memory: &mut [u8], base: u64) -> Result<(), Error> {
    let own = image.own_symbols::<A>(base)?;
    let symbols = |query: &Query| own.resolve(query).or(Some(IMPORTED));
    image.relocate::<A>(memory, base, &symbols)
}

fn load(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let image = parse(bytes)?;
    let mut memory = vec![0xcc; usize::try_from(image.size()).unwrap().min(1 << 24)];
    image.write(&mut memory)?;
    let base = BASE + image.start();
    match (image.file().header().machine, image.file().encoding().is_64()) {
        (EM_X86_64, _) => relocate::<X86_64>(&image, &mut memory, base),
        (EM_386, _) => relocate::<I386>(&image, &mut memory, base),
        (EM_AARCH64, _) => relocate::<Aarch64>(&image, &mut memory, base),
        (EM_RISCV, true) => relocate::<Rv64>(&image, &mut memory, base),
        (EM_RISCV, false) => relocate::<Rv32>(&image, &mut memory, base),
        _ => Ok(()),
    }?;
    Ok(memory)
}

fn word(memory: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(memory[at..at + 8].try_into().unwrap())
}

/// Of a file whose first segment and dynamic section alone are at hand all is known that a loader asks for; what is to be copied is refused.
#[test]
fn beginnings() {
    for (name, bytes) in FILES {
        let whole = parse(bytes).unwrap();
        let segments = whole.file().segments();
        let data = |r#type| segments.iter().find(|it| it.r#type == r#type).unwrap();
        let (first, dynamic) = (data(PT_LOAD), data(PT_DYNAMIC));
        let read = dynamic.offset as usize..(dynamic.offset + dynamic.file_size) as usize;
        let beginning = &bytes[..first.file_size as usize];
        let file = File::parse_beginning(beginning, bytes.len() as u64).unwrap();
        assert_eq!(file.size(), bytes.len() as u64);
        let image = Image::parse(file, AddressKind::Virtual).unwrap();
        assert!(image.dynamic().is_err(), "{name}");
        let image = image.with_dynamic_in(&bytes[read.clone()]).unwrap();
        assert_eq!((image.start(), image.size()), (whole.start(), whole.size()));
        assert_eq!(image.facts(), whole.facts());
        let tables = |image: &Image<'_>| -> Vec<_> {
            image.relocations().map(|table| table.unwrap().into_iter().count()).collect()
        };
        assert_eq!(tables(&image), tables(&whole), "{name}");
        let names = |image: &Image<'_>| -> Vec<_> {
            let exports = image.exports().unwrap().unwrap();
            let symbols = 0..exports.symbols().len() as u32;
            symbols.map(|index| exports.reference(index).unwrap().name.to_string()).collect()
        };
        assert_eq!(names(&image), names(&whole), "{name}");
        for (one, other) in image.segments().zip(whole.segments()) {
            assert_eq!(
                (one.number, one.offset, one.size, one.file_offset, one.file_size, one.flags),
                (
                    other.number,
                    other.offset,
                    other.size,
                    other.file_offset,
                    other.file_size,
                    other.flags
                )
            );
            assert_eq!(other.data.len() as u64, other.file_size);
        }
        let tls = |image: &Image<'_>| {
            image.tls().unwrap().map(|it| (it.offset, it.size, it.file_size, it.alignment))
        };
        assert_eq!(tls(&image), tls(&whole), "{name}");
        let mut memory = vec![0xcc; image.size() as usize];
        let refused = image.write(&mut memory).unwrap_err();
        assert!(
            matches!(refused.kind, ErrorKind::Elf(_)) && refused.segment.is_some(),
            "{refused}"
        );
        assert!(memory.iter().all(|byte| *byte == 0xcc));
        // less of either
        let short = image.with_dynamic_in(&bytes[read.start..read.end - 1]).map(drop);
        assert!(matches!(short.unwrap_err().kind, ErrorKind::Outside { .. }));
        assert!(File::parse_beginning(&bytes[..40], bytes.len() as u64).is_err());
        // a file that says more than it has
        let file = File::parse_beginning(beginning, first.file_size).unwrap();
        assert!(Image::parse(file, AddressKind::Virtual).is_err(), "{name}");
        // found once
        let image = whole.with_dynamic().unwrap();
        assert_eq!(tables(&image), tables(&whole), "{name}");
    }
}

/// The places as `readelf -r` has them, and what the ABI says is there.
#[test]
fn relocated_words() {
    let memory = load(FILES[0].1).unwrap();
    assert_eq!(word(&memory, 0x3608), BASE + 0x35f4); // RELATIVE
    assert_eq!(word(&memory, 0x3600), BASE + 0x35f0); // 64, a symbol of its own
    assert_eq!(word(&memory, 0x25e0), 0); // GLOB_DAT, weak, nobody has it
    assert_eq!(word(&memory, 0x3628), IMPORTED); // JUMP_SLOT
    assert_eq!(memory.len(), 0x3638);
    // behind what the file has of a segment, and between segments
    assert!(memory[0x25e8..0x3000].iter().all(|byte| *byte == 0));
    assert!(memory[0x428..0x1430].iter().all(|byte| *byte == 0));

    let memory = load(FILES[1].1).unwrap();
    assert_eq!(word(&memory, 0x2520), BASE + 0x3540);
    assert_eq!(word(&memory, 0x3540), BASE + 0x3530);

    let memory = load(FILES[4].1).unwrap();
    assert_eq!(word(&memory, 0x35c0), BASE + 0x35b4);
    assert_eq!(word(&memory, 0x25a0), BASE + 0x35b8);
    assert_eq!(word(&memory, 0x35e0), IMPORTED);
}

/// The same library with its relocations packed is the same image.
#[test]
fn forms_agree() {
    let plain = load(FILES[0].1).unwrap();
    let relative = |memory: &[u8], end: usize| {
        let words: Vec<u64> = memory[..end].chunks_exact(8).map(|it| word(it, 0)).collect();
        words.into_iter().filter(|word| (BASE..BASE + 0x4000).contains(word)).count()
    };
    let packed = load(FILES[2].1).unwrap();
    assert_eq!(relative(&plain, plain.len() & !7), 2);
    assert_eq!(relative(&packed, packed.len() & !7), 3);
}

#[test]
fn permissions_of_pages() {
    let image = parse(FILES[0].1).unwrap();
    let found: Vec<_> = image
        .pages(0x1000)
        .unwrap()
        .map(|range| (range.offset, range.size, range.flags.bits(), range.final_flags().bits()))
        .collect();
    assert_eq!(
        found,
        [(0, 0x1000, 4, 4), (0x1000, 0x1000, 5, 5), (0x2000, 0x1000, 6, 4), (0x3000, 0x1000, 6, 6)]
    );
    // larger pages than the linker was told: code and data share one
    let error = image.pages(0x1_0000).unwrap_err();
    assert_eq!(error.to_string(), "the page at 0x0 would be writable and executable");
    assert_eq!(image.pages(3).unwrap_err().kind, ErrorKind::PageSize(3));
    let bytes: u64 = image.pages(8).unwrap().map(|range| range.size).sum();
    assert_eq!(bytes, image.size());
    let nothing = image.pages(16).unwrap().find(|range| range.flags == SegmentFlags::empty());
    assert_eq!(nothing.map(|range| range.offset), Some(0x430));
    assert_eq!(image.stack(), Some(SegmentFlags::READ | SegmentFlags::WRITE));
}

/// By name and version, as ld.so takes them.
#[test]
fn symbols_by_version() {
    let image = parse(FILES[0].1).unwrap();
    let exports = image.exports().unwrap().unwrap();
    let find = |name: &'static str, version: Option<&'static str>| {
        let reference = SymbolReference { name: name.into(), version: version.map(Into::into) };
        exports.find(reference).unwrap().map(|(_, symbol)| symbol.value)
    };
    assert_eq!(find("exported_data", Some("FIXTURE_1.0")), Some(0x35f0));
    assert_eq!(find("exported_data", Some("FIXTURE_9")), None);
    assert_eq!(find("exported_data", None), Some(0x35f0));
    assert_eq!(find("imported", None), None);
    let (index, _) = exports.find_default("exported_data".into()).unwrap().unwrap();
    let reference = exports.reference(index).unwrap();
    assert_eq!(
        (reference.name, reference.version),
        ("exported_data".into(), Some("FIXTURE_1.0".into()))
    );
    let numbers = (0..8).map(|symbol| exports.version_number(symbol));
    let versioned = numbers.zip(0..8).filter(|(number, _)| number.is_some_and(|it| it > 1));
    for (number, symbol) in versioned {
        let same = exports.reference(symbol).unwrap().version == reference.version;
        assert_eq!(same, number == exports.version_number(index), "{symbol}");
    }
    let none = parse(FILES[1].1).unwrap();
    assert_eq!(none.exports().unwrap().unwrap().version_number(1), None);
}

#[test]
fn thread_local_variables() {
    let image = parse(FILES[3].1).unwrap();
    let block = image.tls().unwrap().unwrap();
    assert_eq!((block.size, block.alignment, block.data.len()), (4, 4, 4));
    let own = image.own_symbols::<X86_64>(0).unwrap();
    let kind = elf_core::find(X86_64::KINDS, 18).unwrap();
    let query = Query { role: Role::TpOffset, symbol: 1, place: 0, addend: 0, kind };
    assert_eq!(own.resolve(&query), Some((-4i64).cast_unsigned()));
}

/// A copy with fields of program headers changed: number, offset in the header, value.
fn patched(bytes: &[u8], fields: &[(usize, usize, u64)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let file = File::parse(&bytes).unwrap();
    let start = usize::try_from(file.header().program_headers).unwrap();
    let loads: Vec<usize> = (0..)
        .zip(file.segments())
        .filter(|(_, header)| header.r#type == PT_LOAD)
        .map(|(number, _)| number)
        .collect();
    for (number, field, value) in fields {
        let at = start + loads[*number] * 56 + field;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

const OFFSET: usize = 8;
const ADDRESS: usize = 16;
const PHYSICAL: usize = 24;
const FILE_SIZE: usize = 32;
const MEMORY_SIZE: usize = 40;
const ALIGNMENT: usize = 48;

#[test]
fn segments_are_refused_by_number() {
    let bytes = FILES[0].1;
    for (fields, message) in [
        (&[(1, ADDRESS, 0x430)][..], None),
        (&[(1, ALIGNMENT, 0x1001)], Some("segment 2: alignment 0x1001 is no power of two")),
        (
            &[(1, OFFSET, 0x431)],
            Some(
                "segment 2: address 0x1430 and file offset 0x431 differ modulo the alignment 0x1000",
            ),
        ),
        (
            &[(2, ADDRESS, 0x14b0)],
            None, // behind the one before it
        ),
        (&[(2, ADDRESS, 0x4b0)], Some("segment 3: its address 0x4b0 is below that of segment 2")),
        (
            &[(2, ADDRESS, 0x14a0), (2, OFFSET, 0x4a0)],
            Some("segment 3: its address 0x14a0 is inside of segment 2"),
        ),
        (
            &[(1, ADDRESS, 0x5430), (2, ADDRESS, 0x34b0)],
            Some("segment 3: its address 0x34b0 is below that of segment 2"),
        ),
        (
            &[(0, ADDRESS, 0x5000), (1, ADDRESS, 0x6430), (2, ADDRESS, 0x4b0)],
            Some("segment 3: its address 0x4b0 is below that of segment 2"),
        ),
        (
            &[(0, FILE_SIZE, 0x429)],
            Some("segment 1: 0x429 bytes in the file are more than the 0x428 in memory"),
        ),
        (
            &[(3, MEMORY_SIZE, u64::MAX - 0x1000)],
            Some("segment 4: 0xffffffffffffefff bytes at 0x35f0 leave the address space"),
        ),
        (
            &[(3, MEMORY_SIZE, 1 << 30), (3, FILE_SIZE, 1 << 30)],
            Some("segment 4: segment data at offset 0x5f0 is outside its 0xd70 bytes"),
        ),
    ] {
        let bytes = patched(bytes, fields);
        let found = parse(&bytes).err().map(|error| error.to_string());
        let found = found.map(|text| match text.split_once(" is outside its ") {
            Some((before, _)) => format!("{before} is outside its 0xd70 bytes"),
            None => text,
        });
        assert_eq!(found.as_deref(), message, "{fields:?}");
    }
}

/// A kernel: linked for high addresses, put where the machine has memory.
#[test]
fn physical_addresses() {
    let high = 0xffff_ffff_8000_0000;
    let fields: Vec<_> = [0, 0x1430, 0x24b0, 0x35f0]
        .into_iter()
        .enumerate()
        .map(|(number, address)| (number, PHYSICAL, 0x10_0000 + address))
        .collect();
    let bytes = patched(FILES[0].1, &fields);
    let image = Image::parse(File::parse(&bytes).unwrap(), AddressKind::Physical).unwrap();
    assert_eq!((image.start(), image.size()), (0x10_0000, 0x3638));
    let mut memory = vec![0; 0x3638];
    image.write(&mut memory).unwrap();
    relocate::<X86_64>(&image, &mut memory, high).unwrap();
    assert_eq!(word(&memory, 0x3608), high + 0x35f4);

    let apart = patched(&bytes, &[(3, PHYSICAL, 0x20_35f0)]);
    let image = Image::parse(File::parse(&apart).unwrap(), AddressKind::Physical).unwrap();
    let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
    image.write(&mut memory).unwrap();
    let error = relocate::<X86_64>(&image, &mut memory, high).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Distances);
}

#[test]
fn memory_and_address_are_checked() {
    let image = parse(FILES[0].1).unwrap();
    assert_eq!(
        image.write(&mut [0; 7]).unwrap_err().to_string(),
        "the image takes 0x3638 bytes of memory, and 0x7 were given"
    );
    let error = image.bias(0x123).unwrap_err().to_string();
    assert_eq!(error, "an image of address 0x0 and alignment 0x1000 cannot stand at 0x123");
    let mut memory = vec![0; 0x3638];
    image.write(&mut memory).unwrap();
    let error = image.relocate::<Aarch64>(&mut memory, 0, &|_: &Query| None).unwrap_err();
    assert_eq!(error.to_string(), "a file for machine 62, not 183");
    let error = image.relocate_relative::<X86_64>(&mut memory, 0).unwrap_err().to_string();
    assert_eq!(
        error,
        "relocation R_X86_64_GLOB_DAT at offset 0x25e0: no address for symbol 2, and it is not a relative one"
    );
    let error = image.relocate::<X86_64>(&mut memory, 0, &|_: &Query| None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "relocation R_X86_64_GLOB_DAT at offset 0x25e0: no address for symbol 2"
    );
}

/// A file of these program headers, by type, flags, offset, virtual and physical address, bytes in file and memory, alignment.
fn file_of(is_64: bool, machine: u16, entry: u64, headers: &[[u64; 8]], size: usize) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 1 + u8::from(is_64), 1, 1];
    bytes.resize(16, 0);
    let word = |bytes: &mut Vec<u8>, value: u64| {
        bytes.extend(&value.to_le_bytes()[..if is_64 { 8 } else { 4 }]);
    };
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    let (head, row) = if is_64 { (64u16, 56u16) } else { (52, 32) };
    [entry, head.into(), 0].into_iter().for_each(|value| word(&mut bytes, value));
    bytes.extend(0u32.to_le_bytes());
    for half in [head, row, headers.len() as u16, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for &[r#type, flags, offset, address, physical, file_size, memory_size, alignment] in headers {
        bytes.extend((r#type as u32).to_le_bytes());
        if is_64 {
            bytes.extend((flags as u32).to_le_bytes());
        }
        for value in [offset, address, physical, file_size, memory_size] {
            word(&mut bytes, value);
        }
        if !is_64 {
            bytes.extend((flags as u32).to_le_bytes());
        }
        word(&mut bytes, alignment);
    }
    bytes.resize(size, 0);
    bytes
}

const LOAD: u64 = PT_LOAD as u64;

/// The flash of a PC ends with the last address.
#[test]
fn the_last_address() {
    let header = [LOAD, 5, 0x1000, 0xffff_f000, 0xffff_f000, 0x1000, 0x1000, 0x1000];
    let bytes = file_of(false, EM_386, 0xffff_fff0, &[header], 0x2000);
    let image = parse(&bytes).unwrap();
    assert_eq!((image.start(), image.size()), (0xffff_f000, 0x1000));
    assert_eq!(image.entry(0xffff_f000), Some(0xffff_fff0));
    assert_eq!(image.entry(0x1000), None, "it cannot be there");
    let bytes = file_of(false, EM_386, 0, &[[LOAD, 5, 0, 0xffff_f000, 0, 0, 0x1001, 0]], 0x2000);
    let error = parse(&bytes).unwrap_err().to_string();
    assert_eq!(error, "segment 0: 0x1001 bytes at 0xfffff000 leave the address space");
    let image = parse(FILES[0].1).unwrap();
    let error = image.bias(u64::MAX << 12).unwrap_err().to_string();
    assert_eq!(error, "0x3638 bytes at 0xfffffffffffff000 leave the address space");
}

/// Kernels say by physical addresses where they begin.
#[test]
fn a_physical_entry() {
    let high = 0xffff_ffff_8000_0000;
    let headers = [
        [LOAD, 5, 0x1000, high, 0x10_0000, 0x100, 0x1000, 0x1000],
        [LOAD, 6, 0x1100, 0x0, 0x10_1100, 0, 0x100, 0],
    ];
    for (entry, expected) in [(0x10_0010, 0x10_0010), (high + 0x20, 0x10_0020)] {
        let bytes = file_of(true, EM_X86_64, entry, &headers[..1], 0x2000);
        let image = Image::parse(File::parse(&bytes).unwrap(), AddressKind::Physical).unwrap();
        assert_eq!(image.entry(0x10_0000), Some(expected));
    }
    // unequally far apart
    let bytes = file_of(true, EM_X86_64, 0x10_0010, &headers, 0x2000);
    let image = Image::parse(File::parse(&bytes).unwrap(), AddressKind::Physical).unwrap();
    assert_eq!(image.entry(0x10_0000), Some(0x10_0010));
}

#[test]
fn initial_values_are_in_the_image() {
    let load = [LOAD, 6, 0, 0, 0, 0x1000, 0x1000, 0x1000];
    let with = |block: [u64; 8]| {
        let bytes = file_of(true, EM_X86_64, 0, &[load, block], 0x1000);
        let found = parse(&bytes).unwrap().tls();
        found
            .map(|block| block.map(|block| (block.offset, block.size)))
            .map_err(|error| error.to_string())
    };
    assert_eq!(with([7, 4, 0x800, 0x800, 0, 0x10, 0x20, 8]), Ok(Some((0x800, 0x20))));
    // zeros only
    assert_eq!(with([7, 4, 0x1000, 0x1000, 0, 0, 0x20, 0]), Ok(Some((0x1000, 0x20))));
    assert_eq!(with([7, 4, 0x1000, 0x9000, 0, 0, 0x20, 0]), Ok(Some((0, 0x20))));
    for (block, why) in [
        (
            [7, 4, 0x800, 0x1800, 0, 0x10, 0x20, 8],
            "segment 1: 0x10 bytes at 0x1800 are not in the image",
        ),
        (
            [7, 4, 0x800, 0xff8, 0, 0x10, 0x20, 8],
            "segment 1: 0x10 bytes at 0xff8 are not in the image",
        ),
        (
            // what the file has there is not what the image has
            [7, 4, 0x700, 0x800, 0, 0x10, 0x20, 8],
            "segment 1: 0x10 bytes at 0x800 are not in the image",
        ),
        (
            [7, 4, 0x800, 0x800, 0, 0x900, 0x900, 8],
            "segment 1: segment data at offset 0x800 is outside its 0x1000 bytes",
        ),
        (
            [7, 4, 0x800, 0x800, 0, 0x10, 8, 8],
            "segment 1: 0x10 bytes in the file are more than the 0x8 in memory",
        ),
        ([7, 4, 0x800, 0x800, 0, 0x10, 0x20, 24], "segment 1: alignment 0x18 is no power of two"),
    ] {
        assert_eq!(with(block), Err(why.into()));
    }
}

/// x32 is of the machine, and not of its class.
#[test]
fn another_class() {
    let image = parse(include_bytes!("../../fixtures/forms/libx32.so")).unwrap();
    let mut memory = vec![0; usize::try_from(image.size()).unwrap()];
    let error = image.relocate::<X86_64>(&mut memory, BASE, &|_: &Query| None).unwrap_err();
    assert_eq!(error.to_string(), "a file with addresses of 32 bits, not 64");
    assert_eq!(image.relocate_relative::<X86_64>(&mut memory, BASE), Err(error));
}

/// A file may have several segments of notes, one for each alignment.
#[test]
fn properties_in_the_second_notes() {
    let notes =
        |offset: u64, size: u64, alignment| [4, 4, offset, offset, 0, size, size, alignment];
    let load = [LOAD, 4, 0, 0, 0, 0x1000, 0x1000, 0x1000];
    let mut bytes =
        file_of(true, EM_X86_64, 0, &[load, notes(0x800, 16, 4), notes(0x900, 32, 8)], 0x1000);
    let put = |bytes: &mut Vec<u8>, at: usize, words: &[u32]| {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[at..at + words.len()].copy_from_slice(&words);
    };
    let name = u32::from_le_bytes(*b"GNU\0");
    put(&mut bytes, 0x800, &[4, 0, 3, name]);
    // NT_GNU_PROPERTY_TYPE_0, GNU_PROPERTY_X86_FEATURE_1_AND
    put(&mut bytes, 0x900, &[4, 16, 5, name, 0xc000_0002, 4, 3, 0]);
    assert_eq!(parse(&bytes).unwrap().feature_bits(), Ok(3));
}

/// The value of a tag, and where the file has it.
fn dynamic_value(bytes: &[u8], tag: u64) -> (u64, usize) {
    let file = File::parse(bytes).unwrap();
    let segment = file.segments().iter().find(|it| it.r#type == PT_DYNAMIC).unwrap();
    let start = usize::try_from(segment.offset).unwrap();
    let at = (start..).step_by(16).find(|at| word(bytes, *at) == tag).unwrap() + 8;
    (word(bytes, at), at)
}

/// Relocations of the PLT are among the others, stand behind them, or both in part: every one is applied.
#[test]
fn relocations_of_the_plt() {
    let plain = load(FILES[0].1).unwrap();
    let [(table, _), (size, size_at), (_, plt_at), (plt_size, plt_size_at)] =
        [DT_RELA, DT_RELASZ, DT_JMPREL, DT_PLTRELSZ].map(|tag| dynamic_value(FILES[0].1, tag));
    for fields in [
        &[(size_at, size + plt_size)][..],
        &[(plt_at, table + size - 24), (plt_size_at, plt_size + 24)],
    ] {
        let mut bytes = FILES[0].1.to_vec();
        for (at, value) in fields {
            bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let memory = load(&bytes).unwrap();
        assert_eq!(word(&memory, 0x3628), IMPORTED, "{fields:x?}");
        assert_eq!(word(&memory, 0x3608), word(&plain, 0x3608));
    }
}
