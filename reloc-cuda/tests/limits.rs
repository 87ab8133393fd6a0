//! Objects that are linked up to a limit, and refused beyond it: fixtures with changes.
#![cfg(test)]
#![cfg(feature = "link")]

mod objects;

use elf_core::names::{STB_GLOBAL, STB_WEAK};
use nvinfo::eiattr;
use objects::{attribute, halves, put32, put64, read, replace, section_row, symbol_row};
use reloc_cuda::link::{LinkErrorKind, link};

fn message(objects: &[&[u8]]) -> String {
    link(objects).map_or_else(|error| error.to_string(), |_| String::new())
}

/// Objects with the header of toolkit 12: for `sm_90` of no older one, and for no architecture before `sm_75`, as with nvlink.
#[test]
fn toolkits_are_as_old_as_the_architecture_allows() {
    const NEVER: u32 = u32::MAX;
    let objects = halves("shapes", "12.9-sm_80");
    for (sm, oldest) in [(74, NEVER), (75, 0), (89, 0), (90, 120), (99, 120)] {
        for toolkit in [0, 110, 119, 120, 129] {
            let mut objects = objects.clone();
            for object in &mut objects {
                put32(object, 20, toolkit);
                object[48] = sm as u8;
            }
            let [a, b] = &objects;
            let found = link(&[a, b]).map(|_| ()).map_err(|errors| errors.0[0].kind.clone());
            let expected = match toolkit < oldest {
                true => Err(LinkErrorKind::Toolkit { sm, toolkit }),
                false => Ok(()),
            };
            assert_eq!(found, expected, "sm_{sm} by {toolkit}");
        }
    }
}

/// Constants of all objects are in one bank of 64 KiB.
#[test]
fn constants_fit_their_bank() {
    for (size, expected) in
        [(0x1_0000, ""), (0x1_0004, "object 0: 0x10004 bytes of constants: at most 0x10000")]
    {
        let [mut a, mut b] = halves("calls", "13.5-sm_90");
        // the last variable is the one that is so large
        replace(&mut b, ".nv.constant3", &vec![1; size]);
        for object in [&mut a, &mut b] {
            let row = symbol_row(object, ".symtab", "constants");
            put64(object, row + 16, size as u64 - 28);
        }
        assert_eq!(message(&[&a, &b]), expected);
    }
}

/// The kernel that has a size of parameters, with this binding.
fn kernel(binding: u8, size: u64) -> Vec<u8> {
    let mut object = read("alone_a-13.5-sm_90");
    let symbol = symbol_row(&object, ".symtab", "only") + 4;
    object[symbol] = object[symbol] & 0xf | binding << 4;
    let bank = section_row(&object, ".nv.constant0.only");
    put64(&mut object, bank + 32, size);
    object
}

/// Weak kernels of one name have parameters of one size; one that is not weak has its own.
#[test]
fn weak_kernels_have_parameters_of_one_size() {
    let callees = read("alone_b-13.5-sm_90");
    let both = |first: (u8, u64), second: (u8, u64)| {
        let [first, second] = [first, second].map(|(binding, size)| kernel(binding, size));
        message(&[&first, &second, &callees])
    };
    let why = "object 1: weak kernel only has parameters of another size elsewhere";
    assert_eq!(both((STB_WEAK, 0x218), (STB_WEAK, 0x218)), "");
    assert_eq!(both((STB_WEAK, 0x218), (STB_WEAK, 0x214)), why);
    assert_eq!(both((STB_WEAK, 0x214), (STB_WEAK, 0x218)), why);
    assert_eq!(both((STB_GLOBAL, 0x218), (STB_WEAK, 0x214)), "");
    assert_eq!(both((STB_WEAK, 0x214), (STB_GLOBAL, 0x218)), "");
}

/// A kernel calls functions of as many registers as it may have, and no more; how many it has itself is its own affair, and if it does
/// not say how many it may have, it may have any.
#[test]
fn kernels_call_functions_of_as_many_registers_as_they_may_have() {
    let [a, b] = halves("shapes", "13.5-sm_90");
    // of 24 registers, as is its callee
    let most = attribute(&b, ".nv.info.other", eiattr::MAXREG_COUNT);
    let linked = |count: u8| {
        let mut b = b.clone();
        b[most + 2] = count;
        message(&[&a, &b])
    };
    let why = "object 1: kernel other of at most 23 registers calls helper that needs 24";
    assert_eq!(linked(24), "");
    assert_eq!(linked(23), why);
    assert_eq!(linked(0), "");
}

/// Shared memory of a kernel is at most 48 KiB.
#[test]
fn kernels_have_as_much_shared_memory_as_they_may() {
    let [a, b] = halves("names", "13.5-sm_90");
    let own = symbol_row(&a, ".symtab", "$__own__25") + 16;
    let linked = |size| {
        let mut a = a.clone();
        put64(&mut a, own, size);
        message(&[&a, &b])
    };
    assert_eq!(linked(0xbffc), "");
    assert_eq!(linked(0xc000), "");
    let why = "kernel kb uses 0xc001 bytes of shared memory: at most 0xc000";
    assert_eq!(linked(0xc001), format!("object 0: {why}"));
}

/// Also of what the system has.
#[test]
fn alignments_of_reserved_memory_are_powers_of_two() {
    let [a, mut b] = halves("tensor", "13.5-sm_100a");
    let name = "__nv_reservedSMEM_tcgen05_partition";
    let at = symbol_row(&b, ".symtab", name) + 8;
    put64(&mut b, at, 0x18);
    let why = format!("object 1: alignment 0x18 of {name} is not linked");
    assert_eq!(message(&[&a, &b]), why);
}

/// Alignments are powers of two, of no absurd amount.
#[test]
fn alignments_are_powers_of_two() {
    let [a, b] = halves("arrays", "13.5-sm_90");
    let at = symbol_row(&a, ".symtab", "array") + 8;
    let linked = |alignment: u64| {
        let mut a = a.clone();
        put64(&mut a, at, alignment);
        link(&[&a, &b]).map(|_| ()).map_err(|errors| errors.0[0].kind.clone())
    };
    assert_eq!(linked(0x400), Ok(()));
    for alignment in [0x18, 1 << 40] {
        let name = "array".to_owned();
        assert_eq!(linked(alignment), Err(LinkErrorKind::Alignment { name, alignment }));
    }
}
