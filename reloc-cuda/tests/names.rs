//! Which names are in the table of a linked file, and which relocations name them: fixtures with changes.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::names::{SHN_UNDEF, STB_WEAK, STO_CUDA_CONSTANT};
use elf_core::{File, Symbol};
use objects::{bytes_of, halves, header, number, put32, sections, symbol_row};
use reloc_cuda::cuda::{
    R_CUDA_32, R_CUDA_32_LO, R_CUDA_64, R_CUDA_ABS32_LO_32, R_CUDA_ABS56_16_34, R_CUDA_G32,
    R_CUDA_G64,
};
use reloc_cuda::link::{LinkErrorKind, LinkOptions, link, link_with};

/// The number of a symbol and what it is, if the file has it.
fn symbol(object: &[u8], name: &str) -> Option<(u32, Symbol)> {
    let file = File::parse(object).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    (0..).zip(table.symbols()).find(|(_, one)| table.name_of(one).unwrap() == name)
}

fn index(object: &[u8], name: &str) -> u32 {
    symbol(object, name).unwrap_or_else(|| panic!("no {name}")).0
}

/// Makes every row of the call graph that says so of `callee`, by a caller or as one whose address is taken, say it of `other`.
fn call_another(object: &mut [u8], callee: &str, other: &str) {
    let [callee, other] = [callee, other].map(|name| index(object, name));
    for row in bytes_of(object, ".nv.callgraph").step_by(8) {
        let [caller, called] =
            [row, row + 4].map(|at| u32::from_le_bytes(object[at..at + 4].try_into().unwrap()));
        if called == callee {
            put32(object, row + 4, other);
        }
        // the second word of such a row is a prototype
        if caller == callee {
            put32(object, row, other);
        }
    }
}

/// A second name of a function is there if the function is, also where nobody calls the second name.
#[test]
fn second_names_stay_with_their_code() {
    let [mut a, mut b] = halves("names", "13.5-sm_90");
    call_another(&mut b, "second", "late");
    let linked = link(&[&a, &b]).unwrap().bytes;
    assert_eq!(symbol(&linked, "real"), None);
    assert_eq!(symbol(&linked, "second"), None);
    // nor does the table of functions name what is not there
    assert!(!sections(&linked).contains(&".rela.nv.global.init".to_owned()));
    call_another(&mut a, "near", "real");
    let linked = link(&[&a, &b]).unwrap().bytes;
    let (_, second) = symbol(&linked, "second").unwrap();
    assert_eq!(usize::from(second.shndx), number(&linked, ".text.real"));
}

/// A weak variable that nobody defines is there where a relocation names it, and that is kept; but what its place in the table of
/// unified functions adds to an address is nothing, as there is no such table.
#[test]
fn undefined_weak_variables_are_there_where_they_are_named() {
    let [a, b] = halves("calls", "13.5-sm_90");
    let row = bytes_of(&a, ".rela.text.calls").start;
    let at = &a[row..row + 8];
    // records of that place, by the name and type that the object has there
    let linked = |name: &str, r#type: u32| {
        let mut a = a.clone();
        put32(&mut a, row + 8, r#type);
        let named = index(&a, name);
        put32(&mut a, row + 12, named);
        let linked = link(&[&a, &b]).unwrap().bytes;
        let found = symbol(&linked, name);
        let rows = linked[bytes_of(&linked, ".rela.text.calls")].chunks(24);
        let rows: Vec<_> =
            rows.filter(|row| &row[..8] == at).map(|row| row[8..16].to_vec()).collect();
        let expected = found.map(|(index, _)| [r#type.to_le_bytes(), index.to_le_bytes()].concat());
        assert!(rows.iter().all(|row| Some(row) == expected.as_ref()), "{name}");
        (rows.len(), found.map(|found| (found.1.shndx, found.1.binding())))
    };
    let undefined = Some((SHN_UNDEF, STB_WEAK));
    assert_eq!(linked("__UFT_OFFSET", R_CUDA_ABS32_LO_32), (1, undefined));
    assert_eq!(linked("__UFT_OFFSET", R_CUDA_ABS56_16_34), (0, None));
    assert_eq!(linked("__UFT", R_CUDA_ABS56_16_34), (1, undefined));
    assert_eq!(linked("array", R_CUDA_ABS56_16_34).0, 1);
}

/// The same of one of any name, which another object's symbol does not define.
#[test]
fn weak_variables_need_no_definition() {
    let [mut a, b] = halves("data", "13.5-sm_90");
    let row = symbol_row(&a, ".symtab", "second_common");
    let name = u32::from_le_bytes(a[row..row + 4].try_into().unwrap());
    put32(&mut a, row, name + 1);
    let error = link(&[&a, &b]).unwrap_err();
    assert_eq!(error.to_string(), "object 0: symbol econd_common is undefined");
    a[row + 4] = a[row + 4] & 0xf | STB_WEAK << 4;
    let linked = link(&[&a, &b]).unwrap().bytes;
    let (_, found) = symbol(&linked, "econd_common").unwrap();
    assert_eq!((found.shndx, found.binding()), (SHN_UNDEF, STB_WEAK));
}

/// A record of a second name is one of the function's; of a name inside its code it is that one's.
#[test]
fn second_names_are_the_function() {
    let [mut a, b] = halves("names", "13.5-sm_90");
    for (value, expected) in [(0, "real"), (16, "second")] {
        let at = symbol_row(&a, ".symtab", "second") + 8;
        put32(&mut a, at, value);
        let linked = link(&[&a, &b]).unwrap().bytes;
        let rows = linked[bytes_of(&linked, ".rela.nv.global.init")].chunks(24);
        let named: Vec<_> = rows.map(|row| row[12..16].to_vec()).collect();
        assert_eq!(named, [index(&linked, expected).to_le_bytes(); 2], "{expected}");
    }
}

/// A function whose address is taken by its second name is there for it, where nvlink ends with "reference to deleted
/// symbol".
#[test]
fn functions_stay_for_a_second_name_that_is_taken() {
    let [a, b] = halves("names", "13.5-sm_90");
    let options = LinkOptions { kernels: &["ka"], ..LinkOptions::default() };
    let linked = link_with(&[&a, &b], options).unwrap().bytes;
    assert_eq!(symbol(&linked, "kb"), None);
    let text = number(&linked, ".text.real");
    assert_eq!(usize::from(symbol(&linked, "second").unwrap().1.shndx), text);
    let rows = linked[bytes_of(&linked, ".rela.nv.global.init")].chunks(24);
    let named: Vec<_> = rows.map(|row| row[12..16].to_vec()).collect();
    assert_eq!(named, [index(&linked, "real").to_le_bytes(); 2]);
}

/// A local name is another one than that of a kernel.
#[test]
fn local_names_are_of_their_object() {
    let [mut a, b] = halves("names", "13.5-sm_90");
    let [local, kernel] = ["$__own__25", "ka"].map(|name| symbol_row(&a, ".symtab", name));
    let name = a[kernel..kernel + 4].to_vec();
    a[local..local + 4].copy_from_slice(&name);
    let [own, text] = [".nv.shared.kb", ".text.ka"].map(|name| {
        let linked = link(&[&a, &b]).unwrap().bytes;
        header(&linked, name).size
    });
    assert_eq!((own, text), (0x468, 0x180));
}

/// What an object says of the place of a variable that another one defines is of no matter.
#[test]
fn only_definitions_have_places() {
    let [mut a, b] = halves("calls", "13.5-sm_90");
    let linked = link(&[&b, &a]).unwrap().bytes;
    let at = symbol_row(&a, ".symtab", "shared_by_both") + 8;
    put32(&mut a, at, 0x40);
    assert!(link(&[&b, &a]).unwrap().bytes == linked);
}

/// A name is in global memory or in a bank, the same for all objects.
#[test]
fn names_are_in_one_space() {
    let [a, mut b] = halves("data", "13.5-sm_90");
    let at = symbol_row(&b, ".symtab", "second_common") + 5;
    b[at] = STO_CUDA_CONSTANT;
    let errors = link(&[&a, &b]).unwrap_err();
    let symbol = "second_common".to_owned();
    assert_eq!(errors.0[0].kind, LinkErrorKind::Space { symbol, first: 0 });
}

/// Functions that are dropped may call what nobody defines.
#[test]
fn dropped_functions_may_call_what_is_undefined() {
    let [a, mut b] = halves("names", "13.5-sm_90");
    // `ate`, which nobody calls
    let row = symbol_row(&b, ".symtab", "late");
    let name = u32::from_le_bytes(b[row..row + 4].try_into().unwrap());
    put32(&mut b, row, name + 1);
    let with = |kernels| link_with(&[&a, &b], LinkOptions { kernels, ..LinkOptions::default() });
    let error = with(&["k"]).unwrap_err();
    assert_eq!(error.to_string(), "object 0: symbol late is undefined");
    let linked = with(&["kb"]).unwrap().bytes;
    assert_eq!(symbol(&linked, "via"), None);
    assert_eq!(symbol(&linked, "late"), None);
}

/// What nobody defines has no value, whatever an object says.
#[test]
fn undefined_functions_have_no_value() {
    let [mut a, b] = halves("names", "13.5-sm_90");
    let at = symbol_row(&a, ".symtab", "malloc") + 8;
    put32(&mut a, at, 16);
    let linked = link(&[&a, &b]).unwrap().bytes;
    assert_eq!(symbol(&linked, "malloc").unwrap().1.value, 0);
}

/// The place of a constant in its bank is written by every relocation that is not the driver's alone, as nvlink does.
#[test]
fn places_in_a_bank_are_resolved() {
    let [a, b] = halves("data", "13.5-sm_90");
    let mut rows = bytes_of(&b, ".rela.nv.global.init").step_by(24);
    // of the first variable
    let row = rows.find(|row| b[*row..row + 8] == [0; 8]).unwrap();
    let linked = |r#type: u32| {
        let mut b = b.clone();
        put32(&mut b, row + 8, r#type);
        let linked = link(&[&a, &b]).unwrap().bytes;
        let (third, places) =
            (symbol(&linked, "third").unwrap(), symbol(&linked, "places").unwrap());
        let at = bytes_of(&linked, ".nv.global.init").start + places.1.value as usize;
        let written = u64::from_le_bytes(linked[at..at + 8].try_into().unwrap());
        let rows = linked[bytes_of(&linked, ".rela.nv.global.init")].chunks(24);
        let mut rows = rows.filter(|row| row[..8] == places.1.value.to_le_bytes());
        let record = rows
            .next()
            .map(|row| [8, 12].map(|at| u32::from_le_bytes(row[at..at + 4].try_into().unwrap())));
        assert!(record.is_none_or(|record| record == [r#type, third.0]));
        (written, third.1.value, record.is_some())
    };
    for r#type in [R_CUDA_64, R_CUDA_32, R_CUDA_32_LO] {
        assert_eq!(linked(r#type), (0x20, 0x20, false), "{type}");
    }
    assert_eq!(linked(R_CUDA_ABS32_LO_32), (0x20 << 32, 0x20, false));
    for r#type in [R_CUDA_G32, R_CUDA_G64] {
        assert_eq!(linked(r#type), (0, 0x20, true), "{type}");
    }
}
