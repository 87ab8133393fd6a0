//! Host files: where device code is found in them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use elf_core::File;
use fatbin::{
    Container, EntryKind, Error, ErrorKind, FoundContainer, Pointer, Search, Step, module_ids,
    scans, walk, wrappers,
};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../fixtures/fatbin/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn found(bytes: &[u8]) -> Vec<FoundContainer<'_>> {
    walk(bytes, Search::Always).collect::<Result<_, _>>().unwrap()
}

/// Section, kinds of the entries.
fn regions(bytes: &[u8]) -> Vec<(String, Vec<EntryKind>)> {
    let name = |found: &FoundContainer<'_>| {
        found.place.section.map_or_else(String::new, |(_, name)| name.to_string())
    };
    let kinds = |found: &FoundContainer<'_>| match found.container {
        Container::Region(region) => region.entries().map(|entry| entry.unwrap().kind()).collect(),
        ref other => panic!("{other:?}"),
    };
    found(bytes).iter().map(|found| (name(found), kinds(found))).collect()
}

#[test]
fn objects_of_nvcc() {
    for (name, section, ids) in [
        ("whole.o", ".nv_fatbin", "__NV_MODULE_ID"),
        ("separate.o", "__nv_relfatbin", "_4a2a8ad8_4_t_cu__Z1kPi"),
    ] {
        let bytes = fixture(name);
        assert_eq!(regions(&bytes), [(section.into(), vec![EntryKind::Elf])], "{name}");
        let file = File::parse(&bytes).unwrap();
        let [wrapper] = wrappers(&file).collect::<Result<Vec<_>, _>>().unwrap()[..] else {
            panic!("{name}")
        };
        assert!(matches!(wrapper.data, Pointer::Section { offset: 0, .. }), "{name}");
        assert_eq!((wrapper.version, wrapper.second), (1, Pointer::Null), "{name}");
        let [only] = found(&bytes)[..] else { panic!("{name}") };
        assert_eq!(wrapper.data.file_offset(&file), Some(only.container.at()), "{name}");
        let [(at, id)] = module_ids(&file).unwrap().collect::<Vec<_>>()[..] else {
            panic!("{name}")
        };
        assert!(bytes[at as usize..].starts_with(id.as_bytes()), "{name}");
        // The hash in the id differs from run to run.
        assert_eq!(id.as_bytes()[0], ids.as_bytes()[0]);
        assert_eq!(id == "__NV_MODULE_ID", name == "whole.o");
    }
}

#[test]
fn a_shared_library() {
    let bytes = fixture("libt.so");
    let file = File::parse(&bytes).unwrap();
    let wrappers: Vec<_> = wrappers(&file).collect::<Result<_, _>>().unwrap();
    // The device linker's comes first: it points to what it linked, and to a table that is filled at start-up.
    assert_eq!(wrappers.iter().map(|wrapper| wrapper.version).collect::<Vec<_>>(), [2, 1]);
    assert!(matches!(wrappers[0].second, Pointer::Address(_)));
    assert_eq!(wrappers[1].second, Pointer::Null);
    let at: Vec<_> = wrappers.iter().map(|wrapper| wrapper.data.file_offset(&file)).collect();
    assert_eq!(
        at,
        found(&bytes).iter().map(|found| Some(found.container.at())).collect::<Vec<_>>()
    );
    let sections: Vec<_> = regions(&bytes).into_iter().map(|(section, _)| section).collect();
    assert_eq!(sections, [".nv_fatbin", "__nv_relfatbin"]);
}

/// An archive in the way of GNU's `ar`.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, data) in members {
        archive.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len()).bytes(),
        );
        archive.extend(*data);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

#[test]
fn archives() {
    let (whole, offloading, cubin) =
        (fixture("whole.o"), fixture("offloading.o"), fixture("k75.cubin"));
    let bytes =
        archive(&[("w.o/", &whole), ("text/", b"nothing"), ("o.o/", &offloading), ("c/", &cubin)]);
    let found = found(&bytes);
    let members: Vec<_> =
        found.iter().map(|found| found.place.member.unwrap().to_string()).collect();
    assert_eq!(members, ["w.o", "o.o", "o.o", "o.o", "c"]);
    let Container::Region(region) = found[0].container else { panic!() };
    assert!(
        bytes[region.at() as usize..].starts_with(region.bytes()),
        "offsets count from the archive's start"
    );
    assert!(matches!(found[4].container, Container::Cubin(span) if span.bytes() == cubin));

    let thin = fixture("thin.a");
    let items: Vec<_> = walk(&thin, Search::Always).map(|item| item.map(|_| ())).collect();
    assert_eq!(items, [Err(Error { at: 0, kind: ErrorKind::ThinArchive })]);

    // A member that is damaged does not hide the next.
    let mut bad = whole.clone();
    bad[5] = 9;
    let bytes = archive(&[("bad.o/", &bad), ("w.o/", &whole)]);
    let items: Vec<_> = walk(&bytes, Search::Always).collect();
    let error = items[0].as_ref().unwrap_err();
    assert_eq!(error.to_string(), format!("unknown byte order 9 at offset {:#x}", 8 + 60 + 5));
    assert!(items.len() == 2 && items[1].is_ok());
}

#[test]
fn ordinary_data() {
    let (region, binary) = (fixture("lz4.fatbin"), fixture("packager-19.bin"));
    let mut bytes = vec![1; 4096];
    bytes[8..16].copy_from_slice(b"\x50\xed\x55\xba\x01\0\x10\0"); // a magic that is none
    bytes[1000..1000 + region.len()].copy_from_slice(&region);
    bytes.splice(3200.., binary.iter().copied());
    bytes.extend([2; 100]);
    let places: Vec<_> =
        found(&bytes).iter().map(|found| (found.container.at(), found.place.searched)).collect();
    assert_eq!(places[..2], [(1000, true), (3200, true)]);
    assert_eq!(places.len(), 4);
    assert!(walk(&bytes, Search::Never).next().is_none());
    // Not at a multiple of 8.
    assert!(walk(&[&[0; 4], &region[..]].concat(), Search::Always).next().is_none());
    // Cut.
    assert!(
        walk(&[&[1; 8], &region[..region.len() - 8]].concat(), Search::Always).next().is_none()
    );
}

#[test]
fn gaps_and_junk_between_regions() {
    let region = fixture("zlib.fatbin");
    let ats = |gap: &[u8]| {
        let bytes = [&region, gap, &region[..]].concat();
        walk(&bytes, Search::Always)
            .map(|item| item.map(|found| found.container.at()).map_err(|e| e.at))
            .collect::<Vec<_>>()
    };
    let size = region.len() as u64;
    assert_eq!(ats(&[]), [Ok(0), Ok(size)]);
    assert_eq!(ats(&[0; 32]), [Ok(0), Ok(size + 32)]);
    assert_eq!(ats(&[7; 8]), [Ok(0), Err(size)]);
}

/// Windows are looked through apart, and what follows is what one look from the start to the end finds: regions at their ends and
/// starts, over their ends, around others, and magic numbers that begin nothing.
#[test]
fn windows_say_where_to_search() {
    const MIB: usize = 1 << 20;
    let region = fixture("zlib.fatbin");
    let around = {
        // a region whose payload is longer than a window, with a region in each
        let mut bytes = region.clone();
        let size = 2 * MIB as u64 - 16;
        let payload = size - u64::from(u32::from_le_bytes(region[20..24].try_into().unwrap()));
        bytes[8..16].copy_from_slice(&size.to_le_bytes());
        bytes[24..32].copy_from_slice(&payload.to_le_bytes());
        bytes.resize(2 * MIB, 3);
        for at in [MIB / 2, MIB - 64, 3 * MIB / 2] {
            bytes[at..at + region.len()].copy_from_slice(&region);
        }
        bytes
    };
    let magic = &region[..4];
    let places: [(usize, &[u8]); 11] = [
        (8, &region),
        (65528, magic),
        (65536, &region),
        (MIB - 4 * 16384 - 8, magic),
        (MIB - 8, &region),
        (2 * MIB, &region),
        (3 * MIB - 72, &around),
        (5 * MIB - 64, &region),
        (6 * MIB + 4, &region), // at no multiple of 8
        (8 * MIB - region.len().next_multiple_of(8), &region),
        (9 * MIB - 4, magic),
    ];
    let mut bytes = vec![7; 9 * MIB];
    for (at, what) in places {
        bytes[at..at + what.len()].copy_from_slice(what);
    }
    let expected = [
        8,
        65536,
        MIB - 8,
        2 * MIB,
        3 * MIB - 72,
        5 * MIB - 64,
        8 * MIB - region.len().next_multiple_of(8),
    ];
    let at = |found: FoundContainer<'_>| found.container.at();
    let walked: Vec<_> = found(&bytes).into_iter().map(at).collect();
    assert_eq!(walked, expected.map(|at| at as u64));

    let mut scan = scans(&bytes, Search::Always).next().unwrap().unwrap();
    let windows: Vec<_> = scan.windows().collect();
    assert_eq!(windows.len(), 9);
    let spans = windows.iter().map(|window| (window.span().at(), window.span().size()));
    assert!(spans.eq((0..9).map(|index| (index * MIB as u64, MIB as u64))));
    let end = |window: &fatbin::Window<'_>| window.span().at() + window.span().size();
    let clean: Vec<_> = windows.iter().map(|window| window.first() == end(window)).collect();
    assert_eq!(clean, [false, true, false, false, false, true, true, false, true]);
    let mut passed = Vec::new();
    loop {
        while let Some(rest) = scan.rest()
            && let Some(window) = windows
                .iter()
                .find(|window| (window.span().at()..window.first()).contains(&rest.at()))
        {
            scan.pass(window.first());
        }
        match scan.next() {
            None => break,
            Some(Ok(Step::Found(found))) => passed.push(at(found)),
            Some(step) => assert!(step.is_ok()),
        }
    }
    assert_eq!(passed, walked);
    scan.pass(0); // nothing is left
    assert!(scan.next().is_none());
}

/// A file of Windows with sections of these names: a program, or an object, whose names may be longer.
fn coff(is_object: bool, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut strings = vec![0; 4];
    let mut file = Vec::new();
    if !is_object {
        file.extend(b"MZ");
        file.resize(0x3c, 0);
        file.extend(0x40_u32.to_le_bytes());
        file.extend(b"PE\0\0");
    }
    let optional: u16 = if is_object { 0 } else { 240 };
    let table = file.len() + 20 + usize::from(optional);
    let mut at = (table + 40 * sections.len()).next_multiple_of(512);
    let end = sections.iter().fold(at, |end, (_, bytes)| end + bytes.len().next_multiple_of(512));
    let symbols = if is_object { u32::try_from(end).unwrap() } else { 0 };
    file.extend(0x8664_u16.to_le_bytes());
    file.extend(u16::try_from(sections.len()).unwrap().to_le_bytes());
    file.extend([0; 4]);
    file.extend(symbols.to_le_bytes());
    file.extend([0; 4]);
    file.extend(optional.to_le_bytes());
    file.resize(table, 0);
    for (name, bytes) in sections {
        let short = if is_object && name.len() > 8 {
            strings.extend(name.bytes().chain([0]));
            format!("/{}", strings.len() - name.len() - 1)
        } else {
            name.chars().take(8).collect()
        };
        file.extend(short.bytes().chain([0; 8]).take(8));
        let size = u32::try_from(bytes.len().next_multiple_of(512)).unwrap();
        let words = [size, 0x1000, size, u32::try_from(at).unwrap(), 0, 0, 0, 0x4000_0040];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at += usize::try_from(size).unwrap();
    }
    for (_, bytes) in sections {
        file.resize(file.len().next_multiple_of(512), 0);
        file.extend(*bytes);
    }
    file.resize(end, 0);
    file.extend(strings);
    file
}

#[test]
fn files_of_windows() {
    let (lz4, zstd) = (fixture("lz4.fatbin"), fixture("zstd.fatbin"));
    let bundle = fixture("bundle.ccob");
    for is_object in [false, true] {
        let data = [&[1; 64], &lz4[..]].concat();
        let file = coff(
            is_object,
            &[(".rdata", &data), (".nv_fatbin", &zstd), (".hip_fatbin", &bundle), (".text", &zstd)],
        );
        let found = found(&file);
        let names: Vec<_> = found
            .iter()
            .map(|found| (found.place.section.unwrap().1.to_string(), found.place.searched))
            .collect();
        let cut = |name: &str| name[..if is_object { name.len() } else { 8 }].to_owned();
        let expected = [(cut(".nv_fatbin"), false), (cut(".hip_fatbin"), false)];
        let searched = [(String::from(".rdata"), true), (String::from(".text"), true)];
        assert_eq!(names, [expected, searched].concat(), "{is_object}");
        assert!(matches!(found[1].container, Container::CompressedBundle(_)));
        let at = usize::try_from(found[0].container.at()).unwrap();
        assert!(file[at..].starts_with(&zstd));
        for end in 0..file.len() {
            walk(&file[..end], Search::Always).for_each(drop);
        }
    }
    // what only looks like one is searched as a whole
    let other = [&b"MZ"[..], &[0; 62], &lz4].concat();
    assert_eq!(found(&other).len(), 1);
}

#[test]
fn files_of_windows_by_clang_and_lld() {
    let regions = [fixture("zstd.fatbin"), fixture("lz4.fatbin")];
    for (file, name) in [
        ("../fatbin-windows/windows.obj", ".nv_fatbin"),
        ("../fatbin-windows/windows.dll", ".nv_fatb"),
    ] {
        let file = fixture(file);
        let found = found(&file);
        let names: Vec<_> = found
            .iter()
            .map(|found| (found.place.section.unwrap().1.to_string(), found.place.searched))
            .collect();
        assert_eq!(names, [(name.to_owned(), false), (".rdata".to_owned(), true)]);
        for (found, region) in found.iter().zip(&regions) {
            let at = usize::try_from(found.container.at()).unwrap();
            assert_eq!(found.container.size(), region.len() as u64);
            assert!(file[at..].starts_with(region), "{name}");
        }
    }
}
