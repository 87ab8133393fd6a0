//! Dynamic sections that are damaged, or say less than others.
#![cfg(feature = "default")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod common;

use common::fixture;
use elf_core::names::{
    DT_ANDROID_RELA, DT_ANDROID_RELASZ, DT_GNU_HASH, DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_RELA,
    DT_RELACOUNT, DT_RELAENT, DT_RELASZ, DT_RELR, DT_RELRENT, DT_RELRSZ, DT_SYMENT, PT_DYNAMIC,
    PT_LOAD,
};
use elf_core::{DynamicSection, File};

/// Where the dynamic section of a little-endian file of 64 bits has the value of a tag; the tag is before it.
fn value_at(bytes: &[u8], tag: u64) -> usize {
    let file = File::parse(bytes).unwrap();
    let segment = file.segments().iter().find(|it| it.r#type == PT_DYNAMIC).unwrap();
    let start = usize::try_from(segment.offset).unwrap();
    (start..).step_by(16).find(|at| bytes[*at..at + 8] == tag.to_le_bytes()).unwrap() + 8
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn dynamic(bytes: &[u8]) -> DynamicSection<'_> {
    File::parse(bytes).unwrap().dynamic_by_segment().unwrap().unwrap()
}

/// A loader that passed over a table without a size would have an image that is not relocated, and nobody would know.
#[test]
fn tables_have_sizes_and_rows_are_what_they_are() {
    let [shared, relr, android] =
        ["x86_64/libshared.so", "x86_64/libshared-relr.so", "forms/libandroid.so"].map(fixture);
    for (bytes, table, size, name) in [
        (&shared, DT_RELA, DT_RELASZ, "DT_RELASZ"),
        (&shared, DT_JMPREL, DT_PLTRELSZ, "DT_PLTRELSZ"),
        (&shared, DT_JMPREL, DT_PLTREL, "DT_PLTREL"),
        (&relr, DT_RELR, DT_RELRSZ, "DT_RELRSZ"),
        (&android, DT_ANDROID_RELA, DT_ANDROID_RELASZ, "DT_ANDROID_RELASZ"),
    ] {
        let mut bytes = bytes.clone();
        assert!(dynamic(&bytes).relocations(table).unwrap().is_some(), "{name}");
        let at = value_at(&bytes, size) - 8;
        // a tag that says nothing
        put(&mut bytes, at, 0x7777_7777);
        let why = dynamic(&bytes).relocations(table).err().unwrap().to_string();
        assert!(why.starts_with(&format!("{name} is missing, at offset 0x")), "{why}");
    }
    for (bytes, table, row, name, size) in [
        (&shared, DT_RELA, DT_RELAENT, "DT_RELAENT", 24),
        (&shared, DT_JMPREL, DT_RELAENT, "DT_RELAENT", 24),
        (&relr, DT_RELR, DT_RELRENT, "DT_RELRENT", 8),
    ] {
        let mut bytes = bytes.clone();
        let at = value_at(&bytes, row);
        put(&mut bytes, at, 12);
        let why = dynamic(&bytes).relocations(table).err().unwrap().to_string();
        assert!(why.starts_with(&format!("{name} is 12, not {size}, at offset 0x")), "{why}");
    }
    let mut bytes = shared;
    let at = value_at(&bytes, DT_SYMENT);
    put(&mut bytes, at, 16);
    let why = dynamic(&bytes).symbol_table().err().unwrap().to_string();
    assert!(why.starts_with("DT_SYMENT is 16, not 24, at offset 0x"), "{why}");
}

/// The hash table of an executable that shows nothing to others does not tell how many symbols there are.
#[test]
fn symbols_without_chains() {
    let mut bytes = fixture("x86_64/libshared-relr.so");
    let whole = dynamic(&bytes).symbol_table().unwrap().unwrap().len();
    let address =
        u64::from_le_bytes(*bytes[value_at(&bytes, DT_GNU_HASH)..].first_chunk().unwrap());
    let file = File::parse(&bytes).unwrap();
    let at = usize::try_from(file.offset_of(address).unwrap()).unwrap();
    let [buckets, _, filter, _] = [0, 4, 8, 12]
        .map(|from| u32::from_le_bytes(*bytes[at + from..].first_chunk().unwrap()) as usize);
    bytes[at + 16 + 8 * filter..][..4 * buckets].fill(0);
    assert_eq!(dynamic(&bytes).symbol_table().unwrap().unwrap().len(), whole);
}

/// What a segment has in the file beyond its memory is in no memory.
#[test]
fn segments_of_no_memory() {
    let mut bytes = fixture("x86_64/libshared.so");
    let file = File::parse(&bytes).unwrap();
    let headers = usize::try_from(file.header().program_headers).unwrap();
    let number = file.segments().iter().position(|it| it.r#type == PT_LOAD).unwrap();
    let header = file.segments().iter().nth(number).unwrap();
    assert_eq!(file.offset_of(header.address + 0x10), Some(header.offset + 0x10));
    for (memory, found) in [(0, None), (0x10, None), (0x11, Some(header.offset + 0x10))] {
        put(&mut bytes, headers + 56 * number + 40, memory);
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.offset_of(header.address + 0x10), found);
    }
}

/// What is said twice is what was said last, as dynamic linkers have it: they put entries into a table by their tags.
#[test]
fn the_last_of_several_entries_counts() {
    let mut bytes = fixture("x86_64/libshared.so");
    let records = |bytes: &[u8]| dynamic(bytes).relocations(DT_RELA).unwrap().unwrap().len();
    assert_eq!((dynamic(&bytes).value(DT_RELASZ), records(&bytes)), (Some(72), 3));
    let at = value_at(&bytes, DT_RELACOUNT);
    put(&mut bytes, at - 8, DT_RELASZ);
    put(&mut bytes, at, 24);
    assert_eq!((dynamic(&bytes).value(DT_RELASZ), records(&bytes)), (Some(24), 1));
}
