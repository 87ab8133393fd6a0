//! Attributes of functions that linking changes: fixtures with changes, as nvlink 13.5 has them of the same objects.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use nvinfo::{AttributeValue, Attributes, Cubin, eiattr};
use objects::{attribute, bytes_of, halves, put32, read, replace, sections, symbol_row};
use reloc_cuda::link::link;

/// `EIATTR_AT_ENTRY_FRAGMENTS`.
const FRAGMENTS: u8 = 0x4f;
/// `EIATTR_SPARSE_MMA_MASK`.
const SPARSE_MMA_MASK: u8 = 0x50;
/// `EIATTR_LANGUAGE`.
const LANGUAGE: u8 = 0x66;

/// The words of an attribute, of each record that a section has of it.
fn words(cubin: &[u8], section: &str, number: u8) -> Vec<Vec<u32>> {
    let range = bytes_of(cubin, section);
    let rows = Attributes::new(&cubin[range.clone()], range.start as u64).map(Result::unwrap);
    let rows = rows.filter(|row| row.number == number);
    let words = |row: nvinfo::Attribute<'_>| match row.value {
        AttributeValue::Bytes(bytes) => {
            let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            words.collect()
        }
        other => panic!("{other:?}"),
    };
    rows.map(words).collect()
}

/// `EIATTR_PREEXIT_USED`.
const EARLY_END: u8 = 0x6d;

/// The number of a symbol.
fn symbol(cubin: &[u8], name: &str) -> u32 {
    ((symbol_row(cubin, ".symtab", name) - bytes_of(cubin, ".symtab").start) / 24) as u32
}

/// Code that is to run before a kernel: what it has itself, and behind that what is said of the functions that it calls, each once.
/// These have none of it any more.
#[test]
fn kernels_keep_their_fragments_before_those_of_what_they_call() {
    let [a, b] = halves("tensor", "13.5-sm_100a");
    assert_eq!(words(&b, ".nv.info.allocate", FRAGMENTS), [[6]]);
    let linked = |own: Option<u32>| {
        let mut a = a.clone();
        if let Some(own) = own {
            // in the place of the language, of as many bytes
            let at = attribute(&a, ".nv.info.calls", LANGUAGE);
            a[at + 1] = FRAGMENTS;
            put32(&mut a, at + 4, own);
        }
        let linked = link(&[&a, &b]).unwrap().bytes;
        assert_eq!(words(&linked, ".nv.info.allocate", FRAGMENTS), [[0; 0]; 0], "{own:?}");
        words(&linked, ".nv.info.calls", FRAGMENTS)
    };
    assert_eq!(linked(None), [[6]]);
    assert_eq!(linked(Some(6)), [[6]]);
    assert_eq!(linked(Some(3)), [[3, 6]]);
}

/// An only kernel keeps its own number of virtual resources, whatever those have that it calls.
#[test]
fn only_kernels_keep_their_resources() {
    let [mut a, mut b] = halves("alone", "13.5-sm_90");
    for (object, section, count) in [(&mut a, ".nv.info.only", 3), (&mut b, ".nv.info.tile", 5)] {
        let bytes =
            [&object[bytes_of(object, section)], &[2, eiattr::VRC_CTA_INIT_COUNT, count, 0]];
        let bytes = bytes.concat();
        replace(object, section, &bytes);
    }
    let linked = link(&[&a, &b]).unwrap().bytes;
    let at = attribute(&linked, ".nv.info.only", eiattr::VRC_CTA_INIT_COUNT);
    assert_eq!(linked[at..at + 4], [2, eiattr::VRC_CTA_INIT_COUNT, 3, 0]);
}

/// An only kernel whose functions all stay keeps its own mask, but for the bit of those that have none.
#[test]
fn only_kernels_know_of_functions_without_a_mask() {
    let [a, mut b] = ["alone_a-13.5-sm_90", "whole_b-13.5-sm_90"].map(read);
    let mask = |object: &[u8]| {
        let at = attribute(object, ".nv.info.only", SPARSE_MMA_MASK);
        [object[at + 2], object[at + 3]]
    };
    assert_eq!(mask(&link(&[&a, &b]).unwrap().bytes), [0x10, 0]);
    let at = attribute(&b, ".nv.info.tile", SPARSE_MMA_MASK);
    let all = bytes_of(&b, ".nv.info.tile");
    let without = [&b[all.start..at], &b[at + 4..all.end]].concat();
    replace(&mut b, ".nv.info.tile", &without);
    assert_eq!(mask(&link(&[&a, &b]).unwrap().bytes), [0x10, 0x80]);
}

/// Undefined functions that a kernel reaches: the only one of a program has them in the order of the code, one of several its own
/// first.
#[test]
fn one_of_several_kernels_has_its_own_undefined_functions_first() {
    let ([a, b], [c, d]) = (halves("only", "13.5-sm_90"), halves("names", "13.5-sm_90"));
    let linked = |objects: &[&[u8]]| {
        let linked = link(objects).unwrap().bytes;
        let words = words(&linked, ".nv.info.kernel", eiattr::EXTERNS);
        let cubin = Cubin::parse(&linked).unwrap();
        let table = cubin.symbols().unwrap();
        let name = |index| table.name_of(&table.symbols().get(index as usize).unwrap()).unwrap();
        words.concat().into_iter().map(|index| name(index).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(linked(&[&a, &b]), ["free", "malloc"]);
    assert_eq!(linked(&[&a, &b, &c, &d]), ["malloc", "free"]);
}

/// What a function says of a symbol is said of the one of the linked file.
#[test]
fn attributes_of_a_symbol_name_that_of_the_linked_file() {
    let [mut a, b] = halves("names", "13.5-sm_90");
    // in the place of the bank of parameters, as large
    let at = attribute(&a, ".nv.info.ka", eiattr::PARAM_CBANK);
    a[at + 1] = eiattr::FRAME_SIZE;
    let near = symbol(&a, "near");
    put32(&mut a, at + 4, near);
    put32(&mut a, at + 8, 0x30);
    let linked = link(&[&a, &b]).unwrap().bytes;
    let found = words(&linked, ".nv.info.ka", eiattr::FRAME_SIZE);
    assert_eq!(found, [[symbol(&linked, "near"), 0x30]]);
    assert_ne!(near, symbol(&linked, "near"));
}

/// That code may end early is taken over from what a kernel calls from `sm_100` on.
#[test]
fn kernels_take_over_early_ends_from_sm_100_on() {
    for (program, version, kernel, expected) in
        [("only", "13.5-sm_90", "kernel", false), ("mixed", "13.5-sm_100", "all", true)]
    {
        let section = format!(".nv.info.{kernel}");
        let mut objects = halves(program, version);
        let own = objects.iter_mut().find(|one| sections(one).contains(&section)).unwrap();
        // becomes one that nobody knows
        let at = attribute(own, &section, EARLY_END);
        own[at + 1] = 0xfe;
        let linked = link(&[&objects[0], &objects[1]]).unwrap().bytes;
        let range = bytes_of(&linked, &section);
        let mut rows = Attributes::new(&linked[range.clone()], range.start as u64);
        assert_eq!(rows.any(|row| row.unwrap().number == EARLY_END), expected, "{version}");
    }
}
