//! Why the Mercury form of the code is left out: fixtures with a change that is not linked.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::names::{
    SHT_CUDA_CAPMERC, SHT_CUDA_MERCURY_CONSTANT_OPT, SHT_CUDA_MERCURY_INFO,
    SHT_CUDA_RESERVED_SHARED, STT_CUDA_OBJECT, STT_OBJECT,
};
use objects::{bytes_of, halves, put32, section_row, symbol_row};
use reloc_cuda::link::{LinkOptions, LinkedMercury, link, link_with};

/// What becomes of the Mercury form where the second object has this change.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> LinkedMercury {
    let [a, mut b] = halves("calls", "13.5-sm_100");
    change(&mut b);
    link(&[&a, &b]).unwrap().mercury
}

/// Makes a section one of another type.
fn of_type(section: &str, r#type: u32) -> LinkedMercury {
    changed(|object| {
        let row = section_row(object, section);
        put32(object, row + 4, r#type);
    })
}

fn left_out(why: &'static str) -> LinkedMercury {
    LinkedMercury::LeftOut { object: 1, why }
}

#[test]
fn unknown_sections() {
    let info = ".nv.merc.nv.info.deep";
    let unknown = left_out("its Mercury form is one that is not known");
    assert_eq!(of_type(info, SHT_CUDA_MERCURY_INFO), LinkedMercury::Merged);
    assert_eq!(of_type(info, 0x7000_00ff), unknown);
    assert_eq!(of_type(info, SHT_CUDA_CAPMERC), unknown, "not in the form of code");
    assert_eq!(of_type(info, SHT_CUDA_MERCURY_CONSTANT_OPT), unknown, "the code has no literals");
    assert_eq!(of_type(info, SHT_CUDA_RESERVED_SHARED), unknown, "the program reserves nothing");
}

#[test]
fn debug_information() {
    let more = left_out("it has debug information beyond line numbers in the Mercury form");
    let renamed = changed(|object| {
        let names = bytes_of(object, ".shstrtab");
        let name = b".nv.merc.debug_frame\0";
        let at = object[names.clone()].windows(name.len()).position(|bytes| bytes == name);
        object[names.start + at.unwrap() + ".nv.merc.debug_".len()..][..5]
            .copy_from_slice(b"types");
    });
    assert_eq!(renamed, more);
}

/// Symbols of Mercury have the numbers of the others.
#[test]
fn symbols_of_their_own() {
    let other = left_out("its Mercury symbols are not those of its code");
    const TABLE: &str = ".nv.merc.symtab";
    let name = |object: &[u8], of: &str| {
        let row = symbol_row(object, ".symtab", of);
        u32::from_le_bytes(object[row..row + 4].try_into().unwrap())
    };
    let named = changed(|object| {
        let (row, name) = (symbol_row(object, TABLE, "deep"), name(object, "triple"));
        put32(object, row, name);
    });
    assert_eq!(named, other);
    let bound = changed(|object| {
        let row = symbol_row(object, TABLE, "deep");
        object[row + 4] ^= 0x30;
    });
    assert_eq!(bound, other);
    // sections are called otherwise there
    let section = changed(|object| {
        let (row, name) = (bytes_of(object, TABLE).start + 24, name(object, "deep"));
        put32(object, row, name);
    });
    assert_eq!(section, LinkedMercury::Merged);
    // without some at the end it has those before; with more it has not
    for (rows, expected) in [(31, LinkedMercury::Merged), (33, other)] {
        let found = changed(|object| {
            let (bytes, row) = (bytes_of(object, TABLE), section_row(object, TABLE));
            assert_eq!(bytes.len(), 32 * 24);
            objects::put64(object, row + 32, rows * 24);
        });
        assert_eq!(found, expected, "{rows}");
    }
    let info = of_type(TABLE, SHT_CUDA_MERCURY_INFO);
    assert_eq!(info, left_out("it has no Mercury form"));
}

/// Code without its second form, which another object's function does not need here.
#[test]
fn functions_without_one() {
    let lacks = changed(|object| {
        let row = section_row(object, ".nv.capmerc.text.deep");
        put32(object, row + 44, 0);
    });
    assert_eq!(lacks, left_out("a function has no Mercury form"));
}

/// Textures that code names; not shared memory that is reserved for tensor memory.
#[test]
fn what_nvlink_makes_anew() {
    let linked = |program, version| {
        let [a, b] = halves(program, version);
        link(&[&a, &b]).unwrap().mercury
    };
    let why = "its code names textures, whose numbers nvlink puts into Mercury anew";
    assert_eq!(linked("places", "13.5-sm_100"), LinkedMercury::LeftOut { object: 0, why });
    assert_eq!(linked("tensor", "13.5-sm_100a"), LinkedMercury::Merged);
    assert_eq!(linked("calls", "13.5-sm_90"), LinkedMercury::None);
}

/// Literals of another number of bytes than the program has.
#[test]
fn literals_of_another_size() {
    let [mut a, b] = halves("mixed", "13.5-sm_100");
    let merged = link(&[&a, &b]).unwrap().mercury;
    assert_eq!(merged, LinkedMercury::Merged);
    let row = section_row(&a, ".nv.merc.nv.constant.optimizer.branches");
    objects::put64(&mut a, row + 32, 16);
    let why = "its Mercury form is one that is not known";
    assert_eq!(link(&[&a, &b]).unwrap().mercury, LinkedMercury::LeftOut { object: 0, why });
}

/// Variables are in Mercury of the type that the object says.
#[test]
fn types_of_variables_are_the_objects() {
    let [a, b] = halves("calls", "13.5-sm_100");
    for r#type in [STT_CUDA_OBJECT, STT_OBJECT] {
        let mut b = b.clone();
        let at = symbol_row(&b, ".symtab", "shared_by_both") - bytes_of(&b, ".symtab").start;
        for table in [".symtab", ".nv.merc.symtab"] {
            let row = bytes_of(&b, table).start + at;
            b[row + 4] = b[row + 4] & 0xf0 | r#type;
        }
        let linked = link(&[&a, &b]).unwrap().bytes;
        let at = symbol_row(&linked, ".symtab", "shared_by_both");
        let at = at - bytes_of(&linked, ".symtab").start;
        let row = bytes_of(&linked, ".nv.merc.symtab").start + at;
        assert_eq!(linked[row + 4] & 0xf, r#type);
    }
}

/// Functions that are dropped have entries without a size, as nvlink has them with `-kernels-used`.
#[test]
fn dropped_functions_have_no_size() {
    let [a, b] = halves("calls", "13.5-sm_100");
    let kernels = &["calls"];
    let options = LinkOptions { kernels, ..LinkOptions::default() };
    let [all, some] = [LinkOptions::default(), options].map(|options| {
        let linked = link_with(&[&a, &b], options).unwrap();
        assert_eq!(linked.mercury, LinkedMercury::Merged);
        let frame = bytes_of(&linked.bytes, ".nv.merc.debug_frame");
        linked.bytes[frame].to_vec()
    });
    // one size each of `indirect`, `recurses`, `undefined`, `recursive`
    let changed: Vec<_> = all.iter().zip(&some).filter(|(a, b)| a != b).collect();
    assert_eq!(all.len(), some.len());
    assert!(!changed.is_empty() && changed.iter().all(|(_, now)| **now == 0), "{changed:?}");
}
