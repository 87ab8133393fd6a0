//! Which names are in the table of a linked file, and which relocations name them: fixtures with changes.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::names::{SHN_UNDEF, STB_WEAK};
use elf_core::{File, Symbol};
use objects::{bytes_of, halves, number, put32};
use reloc_cuda::cuda::{R_CUDA_ABS32_LO_32, R_CUDA_ABS56_16_34};
use reloc_cuda::link::link;

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
