//! Which of two weak functions is linked, what must be defined though no code that stays names it, and what need not.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::File;
use objects::{bytes_of, halves, put32, put64, symbol_row, weakened};
use reloc_cuda::link::link;

/// Of two weak functions that of fewer registers stays, whichever comes first, as with nvlink.
#[test]
fn fewer_registers_win() {
    let [a, b] = halves("fewer", "13.5-sm_90");
    let size = |object: &[u8]| {
        let file = File::parse(object).unwrap();
        file.symbol_table().unwrap().unwrap().find("replaced".into()).unwrap().1.size
    };
    assert!(size(&a) > size(&b));
    for objects in [[&a, &b], [&b, &a]] {
        let linked = link(&objects.map(|object| &object[..])).unwrap();
        assert_eq!(size(&linked.bytes), size(&b));
    }
}

/// What is undefined is refused if it is a variable, used or not, shared memory of known size among them, and if it is
/// a function whose address is taken, by code that is dropped, too.
#[test]
fn what_nobody_uses_is_refused_too() {
    let [a, b] = halves("fewer", "13.5-sm_90");
    let lines = |objects: &[&[u8]]| {
        let text = link(objects).unwrap_err().to_string();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let undefined = ["far", "elsewhere", "shared_elsewhere"];
    assert_eq!(lines(&[&a]), undefined.map(|name| format!("object 0: symbol {name} is undefined")));
    assert_eq!(lines(&[&b]), ["object 0: symbol named is undefined"]);
}

/// Debug information may name a label of code that the compiler removed: such a record goes.
#[test]
fn labels_that_are_nowhere_are_not_named() {
    let [mut a, b] = halves("templates", "13.5-sm_90");
    let records = |object: &[u8]| bytes_of(object, ".rela.debug_loc").len() / 24;
    let all = records(&link(&[&a, &b]).unwrap().bytes);
    // local, without a type
    let label = symbol_row(&a, ".symtab", "__UFT_END");
    a[label + 4] = 0;
    let number = (label - bytes_of(&a, ".symtab").start) / 24;
    let first = bytes_of(&a, ".rela.debug_loc").start;
    put32(&mut a, first + 12, number as u32);
    put64(&mut a, first + 16, 0);
    let linked = link(&[&a, &b]).unwrap().bytes;
    assert_eq!(records(&linked), all - 1);
}

/// An object that takes a function's address knows its prototype, which the definition must have.
#[test]
fn prototypes_of_addresses_are_compared() {
    let [a, b] = halves("fewer", "13.5-sm_90");
    let mut other = a.clone();
    // `#ii`, of the function whose address is taken alone
    let strings = bytes_of(&a, ".strtab");
    let text = a[strings.clone()].windows(4).position(|text| text == b"#ii\0").unwrap();
    other[strings.start + text + 1] = b'l';
    assert!(link(&[&a, &b]).is_ok());
    let error = link(&[&other, &b]).unwrap_err().to_string();
    assert!(error.contains("object 1: symbol far has another prototype in object 0"), "{error}");
}

/// How a toolkit calls stands behind the types of a prototype: objects of several may have it otherwise, and the last is
/// believed, as with nvlink.
#[test]
fn prototypes_of_several_toolkits_go_together() {
    let [a, b] = halves("only", "13.5-sm_90");
    let mut other = weakened(a.clone());
    let strings = bytes_of(&a, ".strtab");
    let text = a[strings.clone()].windows(3).position(|text| text == b"|12").unwrap();
    other[strings.start + text + 1] = b'3';
    let has = |object: &[u8], text: &[u8]| {
        object[bytes_of(object, ".strtab")].windows(3).any(|at| at == text)
    };
    for (objects, expected) in [([&a, &other], b"|32"), ([&other, &a], b"|12")] {
        let linked = link(&[objects[0], objects[1], &b]).unwrap().bytes;
        assert!(has(&linked, expected));
    }
}
