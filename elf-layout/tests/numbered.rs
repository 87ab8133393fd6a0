//! Names by number where something is wrong: with what the numbers are of, or with the files.
#![cfg(test)]
#![cfg(feature = "alloc")]

mod support;

use elf_core::File;
use elf_core::names::{GRP_COMDAT, SHT_GROUP, STB_LOCAL};
use elf_layout::archives::{NameNumbers, UndefinedSymbols};
use elf_layout::{Error, HeapStorage, Options};
use reloc_x86::X86_64;
use support::{BASE, CODE, Object, nobody, numbered};

/// An object with a function in a group, which names some of others, too.
fn object(function: &str, others: &[&str]) -> Vec<u8> {
    let mut object = Object::new();
    let text = object.section(".text.f", CODE, 1, &[0xc3; 16]);
    let signature = object.weak(function, text, 8);
    object.group(signature, GRP_COMDAT, &[text]);
    others.iter().for_each(|name| {
        object.undefined_weak(name);
    });
    object.build()
}

/// The addresses of all symbols, read and by number.
fn both(files: &[File<'_>], numbers: &NameNumbers) -> [Result<Vec<Option<u64>>, Error>; 2] {
    let (mut first, mut second) = (HeapStorage::new(), HeapStorage::new());
    let options = Options::default();
    let read = first.plan::<X86_64>(files, options, &mut nobody);
    let by_number = second.plan_numbered::<X86_64>(files, numbers, options, &mut nobody);
    [read, by_number].map(|layout| {
        let layout = layout?;
        Ok((0..files.len()).flat_map(|object| layout.addresses(object, 0, BASE)).collect())
    })
}

#[test]
fn numbers_of_other_files_are_not_used() {
    let objects = [object("f", &["g"]), object("g", &["f", "h"]), object("f", &[])];
    let files = objects.each_ref().map(|bytes| File::parse(bytes).unwrap());
    for others in [&files[..2], &[files[1], files[0], files[2]], &[]] {
        let numbers = numbered::numbers(others).unwrap();
        let [read, by_number] = both(&files, &numbers);
        assert_eq!(by_number, read);
        assert!(read.unwrap().iter().any(Option::is_some));
    }
}

/// Names of files that the numbers are of are not read again.
#[test]
fn names_that_have_numbers_are_not_read() {
    let objects = [object("f", &["g"]), object("g", &[]), object("x", &[])];
    let files = objects.each_ref().map(|bytes| File::parse(bytes).unwrap());
    let numbers = numbered::numbers(&files[..2]).unwrap();
    // the other one has another name in the same place
    let [read, by_number] = both(&[files[0], files[2]], &numbers).map(Result::unwrap);
    // f and g of the one, x of the other
    assert_eq!((read.len(), by_number.len()), (5, 5));
    assert!(read[4].is_some() && read[2] != read[4]);
    assert_eq!(by_number[2], by_number[4]);
}

/// The error says what it says without numbers.
#[test]
fn what_is_damaged_is_read() {
    let (one, good) = (object("f", &["g", "h"]), object("f", &[]));
    let file = File::parse(&one).unwrap();
    let symbols = file.symbol_table().unwrap().unwrap();
    let rows = file.section(symbols.section()).unwrap().offset as usize;
    let group = file.sections().iter().position(|it| it.r#type == SHT_GROUP).unwrap();
    let signature = file.header().section_headers as usize + 64 * group + 44;
    for (at, value, is_added) in [(signature, 77, true), (rows + 24, u32::MAX, false)] {
        let mut bytes = one.clone();
        bytes[at..][..4].copy_from_slice(&value.to_le_bytes());
        let files = [&good, &bytes].map(|bytes| File::parse(bytes).unwrap());
        let mut undefined = UndefinedSymbols::new();
        undefined.add(&files[0]).unwrap();
        assert_eq!(undefined.add(&files[1]).is_ok(), is_added);
        let [read, by_number] = both(&files, &undefined.into_numbers());
        assert_eq!(by_number, read);
        assert_eq!(read.unwrap_err().object, 1);
    }
}

/// Local symbols come first (gABI ch. 4, "Symbol Table"), but who does not count on it is right, too.
#[test]
fn local_symbols_among_others() {
    let mut one = object("f", &["g", "h"]);
    let file = File::parse(&one).unwrap();
    let symbols = file.symbol_table().unwrap().unwrap();
    let rows = file.section(symbols.section()).unwrap().offset as usize;
    // the one in the middle
    one[rows + 24 * 2 + 4] = STB_LOCAL << 4;
    let other = object("h", &["f"]);
    let files = [&one, &other].map(|bytes| File::parse(bytes).unwrap());
    let numbers = numbered::numbers(&files).unwrap();
    let [read, by_number] = both(&files, &numbers);
    assert_eq!(by_number, read);
    let addresses = read.unwrap();
    assert!(addresses[5].is_some());
    assert_eq!(addresses[3], addresses[5], "h is what the other has");
}
