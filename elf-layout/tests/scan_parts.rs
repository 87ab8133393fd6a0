//! Objects that are scanned in parts.
#![cfg(test)]
#![cfg(all(feature = "alloc", feature = "parts"))]

mod support;

use elf_core::File;
use elf_layout::{Error, ErrorKind, HeapStorage, Options, ScanPart};
use reloc_x86::X86_64;
use reloc_x86::x86_64::{R_X86_64_32S, R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_PLT32};
use support::numbered::{self, outcome};
use support::{CODE, Object, process};

/// An object with a function, which asks for the GOT entry of another one and calls a third.
fn object(name: &str, others: [&str; 2]) -> Vec<u8> {
    let mut object = Object::new();
    let text = object.section(".text", CODE, 16, &[0x90; 64]);
    object.global(name, text, 0);
    let [entry, branch] = others.map(|name| object.undefined(name));
    object.relocation(text, 8, R_X86_64_GOTPCREL, entry, -4);
    object.relocation(text, 16, R_X86_64_PLT32, branch, -4);
    object.build()
}

/// The error of objects that are laid out in parts, of which those that are `done` are scanned in that order.
fn refused(objects: &[Vec<u8>], done: &[usize]) -> Error {
    let files: Vec<_> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let mut scan = |parts: &mut [ScanPart<'_, '_, X86_64>]| {
        done.iter().for_each(|part| parts[*part].scan());
    };
    let (mut room, options) = (HeapStorage::new(), Options::default());
    let count = objects.len();
    room.plan_in_parts(&files, None, options, &mut process, count, &mut scan).unwrap_err()
}

/// With numbers and without.
#[test]
fn each_part_is_told_and_notes_what_it_needs() {
    let mut objects = vec![object("a", ["b", "far"]), object("b", ["far", "c"])];
    objects.push(object("c", ["far_data", "far"]));
    let files: Vec<_> = objects.iter().map(|bytes| File::parse(bytes).unwrap()).collect();
    let numbers = numbered::numbers(&files).unwrap();
    let mut room = HeapStorage::new();
    let layout = room.plan::<X86_64>(&files, Options::default(), &mut process);
    let (entries, limit) =
        layout.as_ref().map(|it| (it.got_entries().count(), it.limit())).unwrap();
    let whole = outcome(layout);
    for (numbers, count) in [(None, 2), (Some(&numbers), 3), (None, 9)] {
        let (mut room, mut told) = (HeapStorage::new(), Vec::new());
        let mut scan = |parts: &mut [ScanPart<'_, '_, X86_64>]| {
            told = parts.iter().map(|part| format!("{part:?}")).collect();
            parts.iter_mut().rev().for_each(ScanPart::scan);
            // once more is nothing
            parts.iter_mut().for_each(ScanPart::scan);
        };
        let options = Options::default();
        let layout = room.plan_in_parts(&files, numbers, options, &mut process, count, &mut scan);
        assert_eq!(
            layout.as_ref().map(|it| (it.got_entries().count(), it.limit())),
            Ok((entries, limit))
        );
        assert!(outcome(layout) == whole);
        assert_eq!(told.len(), count.min(3));
        assert_eq!(
            told[0],
            format!("ScanPart {{ objects: 0..{}, .. }}", if count == 2 { 2 } else { 1 })
        );
    }
}

#[test]
fn what_cannot_be_cut_is_not_scanned_in_parts() {
    let objects = [object("a", ["b", "far"]), object("b", ["far", "a"])];
    let files = objects.each_ref().map(|bytes| File::parse(bytes).unwrap());
    for (files, count, is_cut) in
        [(&files[..], 0, false), (&files[..], 1, false), (&files[1..], 2, false), (&files, 2, true)]
    {
        let (mut room, mut is_called) = (HeapStorage::new(), false);
        let mut scan = |_: &mut [ScanPart<'_, '_, X86_64>]| is_called = true;
        let mut ask = |name: elf_core::Name<'_>| process(name).or_else(|| process("far".into()));
        let options = Options::default();
        room.plan_in_parts(files, None, options, &mut ask, count, &mut scan).unwrap();
        assert_eq!(is_called, is_cut);
    }
}

/// Whoever meets one first, and whether it is met by the caller.
#[test]
fn the_error_is_that_of_one_thread() {
    let good = object("a", ["far", "far"]);
    let bad = |name, missing| object(name, ["far", missing]);
    let objects = [good, bad("b", "one"), bad("c", "two"), bad("d", "three")];
    for done in [&[][..], &[3], &[3, 2, 1, 0], &[0, 1, 2, 3], &[2]] {
        let error = refused(&objects, done);
        assert_eq!(error.object, 1, "{done:?}");
        assert!(matches!(error.kind, ErrorKind::Undefined { .. }));
    }
}

/// Of several parts with fields that limit where the image may be.
#[test]
fn the_least_limit_counts() {
    let with = |r#type, name: &str| {
        let mut object = Object::new();
        let text = object.section(".text", CODE, 16, &[0x90; 64]);
        let own = object.global(name, text, 0);
        object.relocation(text, 8, r#type, own, 0);
        object.build()
    };
    let types = [R_X86_64_64, reloc_x86::x86_64::R_X86_64_32, R_X86_64_32S];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 1, 1], [0, 0, 0]] {
        let objects = [0, 1, 2].map(|at| with(types[order[at]], &format!("f{at}")));
        let files = objects.each_ref().map(|bytes| File::parse(bytes).unwrap());
        let mut room = HeapStorage::new();
        let mut scan =
            |parts: &mut [ScanPart<'_, '_, X86_64>]| parts.iter_mut().for_each(ScanPart::scan);
        let options = Options::default();
        let layout = room.plan_in_parts(&files, None, options, &mut process, 3, &mut scan);
        let least = match order {
            [0, 0, 0] => None,
            [0, 1, 1] => Some(1 << 32),
            _ => Some(1 << 31),
        };
        assert_eq!(layout.unwrap().limit(), least);
    }
}
