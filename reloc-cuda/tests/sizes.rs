//! Variables that objects have in different sizes: which go together is what nvlink 13.5 says of the same objects.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::names::{SHN_COMMON, STB_GLOBAL};
use elf_core::{File, Symbol};
use objects::{number, read, symbol_row};
use reloc_cuda::link::{LinkErrorKind, link};

fn half(name: &str) -> Vec<u8> {
    read(&format!("data_{name}-13.5-sm_80"))
}

/// Where an object has a symbol.
fn place(object: &[u8], name: &str) -> usize {
    symbol_row(object, ".symtab", name)
}

fn set_size(object: &mut [u8], name: &str, size: u64) {
    let at = place(object, name) + 16;
    object[at..at + 8].copy_from_slice(&size.to_le_bytes());
}

/// Makes a weak definition one that does not give way.
fn make_strong(object: &mut [u8], name: &str) {
    let at = place(object, name) + 4;
    object[at] = object[at] & 0xf | STB_GLOBAL << 4;
}

/// Makes a definition a common variable, with an alignment of 8.
fn make_common(object: &mut [u8], name: &str, size: u64) {
    make_strong(object, name);
    let at = place(object, name);
    object[at + 6..at + 8].copy_from_slice(&SHN_COMMON.to_le_bytes());
    object[at + 8..at + 16].copy_from_slice(&8u64.to_le_bytes());
    set_size(object, name, size);
}

/// What linking says, and the variable in the linked file.
fn linked(a: &[u8], b: &[u8], name: &str) -> Result<Symbol, LinkErrorKind> {
    let linked = link(&[a, b]).map_err(|errors| errors.0[0].kind.clone())?;
    let file = File::parse(&linked.bytes).unwrap();
    Ok(file.symbol_table().unwrap().unwrap().find(name.into()).unwrap().1)
}

/// Definitions, and what names them, have one size; where a mention has none it is any.
#[test]
fn definitions_have_one_size() {
    // two definitions; one that is common and a mention
    for (name, size) in [("table", 16), ("zeroed", 12), ("second_common", 8)] {
        for other in [4, size, 40] {
            let (mut a, b) = (half("a"), half("b"));
            set_size(&mut a, name, other);
            let expected = LinkErrorKind::Size { symbol: name.into(), first: 0 };
            match linked(&a, &b, name) {
                Ok(symbol) => assert_eq!((other, symbol.size), (size, size), "{name}"),
                Err(kind) => {
                    assert_ne!(other, size, "{name}");
                    assert_eq!(kind, expected);
                }
            }
        }
    }
    let (mut a, b) = (half("a"), half("b"));
    set_size(&mut a, "second_common", 0);
    assert_eq!(linked(&a, &b, "second_common").unwrap().size, 8);
}

/// Common variables have the size of the largest.
#[test]
fn common_variables_are_as_large_as_the_largest() {
    for size in [4, 40, 44, 64] {
        let (mut a, b) = (half("a"), half("b"));
        set_size(&mut a, "first_common", size);
        assert_eq!(linked(&a, &b, "first_common").unwrap().size, size.max(44));
        assert_eq!(linked(&b, &a, "first_common").unwrap().size, size.max(44));
    }
}

/// A common variable that is defined elsewhere is that one, and no larger, whichever object comes first.
#[test]
fn common_variables_are_not_larger_than_definitions() {
    for size in [4, 8, 16, 24] {
        let (mut defined, mut common) = (half("a"), half("b"));
        make_strong(&mut defined, "table");
        make_common(&mut common, "table", size);
        for objects in [[&defined, &common], [&common, &defined]] {
            let found = linked(objects[0], objects[1], "table");
            if size <= 16 {
                let symbol = found.unwrap();
                assert_eq!((symbol.size, symbol.binding()), (16, STB_GLOBAL), "{size}");
                let all = link(&[objects[0], objects[1]]).unwrap().bytes;
                let place = number(&all, ".nv.global.init");
                assert_eq!(usize::from(symbol.shndx), place, "{size}");
            } else {
                let symbol = "table".to_owned();
                assert_eq!(found.unwrap_err(), LinkErrorKind::Common { symbol, first: 0 });
            }
        }
    }
}
