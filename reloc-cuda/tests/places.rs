//! Values that code, banks and debug information get, and notes: fixtures with changes, as nvlink 13.5 has them of the
//! same objects where it links them.
#![cfg(test)]
#![cfg(feature = "link")]

mod linked;
mod objects;

use elf_core::File;
use elf_core::names::SHT_PROGBITS;
use linked::differences;
use objects::{bytes_of, halves, header, number, put32, read, section_row, sections, symbol_row};
use reloc_cuda::cuda::{R_CUDA_64, R_CUDA_CONST_FIELD19_40, R_CUDA_UNUSED_CLEAR64};
use reloc_cuda::link::{LinkErrorKind, LinkOptions, link, link_with};

/// Of a section of records without addends the row for this offset.
fn row(object: &[u8], section: &str, offset: u64) -> usize {
    let mut rows = bytes_of(object, section).step_by(16);
    rows.find(|row| object[*row..row + 8] == offset.to_le_bytes()).unwrap()
}

/// The number of the first symbol with this name, in this section if it has a name.
fn symbol(object: &[u8], name: &str, section: &str) -> u32 {
    let file = File::parse(object).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let place = number(object, section);
    let is = |one: &elf_core::Symbol| {
        table.name_of(one).unwrap() == name && (place == 0 || usize::from(one.shndx) == place)
    };
    let mut all = (0..).zip(table.symbols());
    all.find(|(_, one)| is(one)).unwrap_or_else(|| panic!("no {name}")).0
}

/// Debug information names shared variables by their addresses, arrays of the launch by all ones.
#[test]
fn debug_information_has_addresses_of_shared_variables() {
    let [mut a, b] = halves("places", "13.5-sm_80");
    for (offset, name) in [(0x4e, "alike2"), (0x2f, "first")] {
        let (row, symbol) = (row(&a, ".rel.debug_line", offset), symbol(&a, name, ""));
        put32(&mut a, row + 12, symbol);
    }
    let linked = link(&[&a, &b]).unwrap().bytes;
    let lines = &linked[bytes_of(&linked, ".debug_line")];
    assert_eq!(lines[0x4e..0x56], 0x38u64.to_le_bytes());
    assert_eq!(lines[0x2f..0x37], u64::MAX.to_le_bytes());
}

/// Parameters are in bank 0.
#[test]
fn parameters_are_in_the_first_bank() {
    let [mut a, b] = halves("calls", "13.5-sm_80");
    let (row, symbol) =
        (row(&a, ".rel.text.calls", 0x80), symbol(&a, "_param", ".nv.constant0.calls"));
    let linked = |a: &[u8]| {
        let linked = link(&[a, &b]).unwrap().bytes;
        let at = bytes_of(&linked, ".text.calls").start + 0x80;
        u128::from_le_bytes(linked[at..at + 16].try_into().unwrap())
    };
    put32(&mut a, row + 8, R_CUDA_CONST_FIELD19_40);
    put32(&mut a, row + 12, symbol);
    // 14 bits of words, 5 bits of the bank; a parameter is at 0x160
    assert_eq!(linked(&a) >> 40 & 0x7_ffff, 0x160 / 4);
}

/// An array of the launch that no kernel is known to use is nowhere, and a field of 24 bits has as many ones.
#[test]
fn arrays_that_no_kernel_uses_are_nowhere() {
    let [a, b] = halves("arrays", "13.5-sm_80");
    let options = LinkOptions { kernels: &["no such"], ..LinkOptions::default() };
    let linked = link_with(&[&a, &b], options).unwrap().bytes;
    let found = sections(&linked).into_iter().filter(|one| one.starts_with(".text."));
    assert_eq!(found.collect::<Vec<_>>(), [".text.pointed"]);
    let start = bytes_of(&linked, ".text.pointed").start;
    let field = |at: usize| {
        let word = linked[start + at..][..8].try_into().unwrap();
        u64::from_le_bytes(word) >> 40
    };
    // with the addend it wraps around
    assert_eq!([field(0), field(0x20)], [0xff_ffff, 3]);
}

/// A word without an addend names a section where that begins, and nothing else.
#[test]
fn words_name_beginnings_of_sections() {
    let [a, mut b] = halves("data", "13.5-sm_80");
    let section = ".rel.nv.global.init";
    let row = row(&b, section, 0);
    let symbol = symbol(&b, ".nv.global.init", ".nv.global.init");
    put32(&mut b, row + 8, R_CUDA_64);
    put32(&mut b, row + 12, symbol);
    assert!(link(&[&b, &a]).is_ok());
    let errors = link(&[&a, &b]).unwrap_err();
    let (section, offset, r#type) = (".nv.global.init".to_owned(), 0x18, R_CUDA_64);
    assert_eq!(errors.0[0].kind, LinkErrorKind::Relocation { section, offset, r#type });
}

/// A word that is cleared if its symbol is dropped has the size of one that stays.
#[test]
fn words_have_sizes_of_what_stays() {
    let [a, mut b] = halves("data", "13.5-sm_80");
    let row = row(&b, ".rel.nv.global.init", 0);
    let symbol = symbol(&b, "zeroed", "");
    put32(&mut b, row + 8, R_CUDA_UNUSED_CLEAR64);
    put32(&mut b, row + 12, symbol);
    let linked = link(&[&b, &a]).unwrap().bytes;
    assert_eq!(linked[bytes_of(&linked, ".nv.global.init")][..8], 12u64.to_le_bytes());
}

/// Gives a symbol the name without its first character.
fn rename(object: &mut [u8], name: &str) {
    let row = symbol_row(object, ".symtab", name);
    let name = u32::from_le_bytes(object[row..row + 4].try_into().unwrap());
    put32(object, row, name + 1);
}

/// A kernel that has no shared memory has an empty section of it beside a pool and arrays of the launch, but on `sm_90`
/// alone where they are aligned by more than 16.
#[test]
fn kernels_without_shared_memory_have_an_empty_section() {
    let [a, b] = halves("places", "13.5-sm_80");
    let [mut c, mut d] = halves("data", "13.5-sm_80");
    rename(&mut c, "first");
    rename(&mut d, "second");
    let linked = link(&[&a, &b, &c, &d]).unwrap().bytes;
    assert!(!sections(&linked).contains(&".nv.shared.branches".to_owned()));
    assert_eq!(header(&linked, ".nv.shared.alone").alignment, 32);
    for (version, size) in [("13.5-sm_80", 0), ("13.5-sm_90", 0x400)] {
        let [a, b] = halves("calls", version);
        let [c, d] = halves("arrays", version);
        let [mut e, f] = halves("data", version);
        rename(&mut e, "pointer");
        // also where no kernel uses the arrays
        for kernels in [&[][..], &["branches"]] {
            let options = LinkOptions { kernels, ..LinkOptions::default() };
            let linked = link_with(&[&a, &b, &c, &d, &e, &f], options).unwrap().bytes;
            let empty = header(&linked, ".nv.shared.branches");
            assert_eq!((empty.size, empty.alignment), (size, 16), "{version}");
        }
    }
}

/// Sections that describe the program have the flags of the first object's.
#[test]
fn descriptions_have_the_objects_flags() {
    for (program, version, section) in [
        ("calls", "13.5-sm_90", ".debug_frame"),
        ("calls", "13.5-sm_90", ".nv.compat"),
        ("places", "13.5-sm_80", ".debug_line"),
    ] {
        let [mut a, b] = halves(program, version);
        let row = section_row(&a, section);
        put32(&mut a, row + 8, 0x20);
        let linked = link(&[&a, &b]).unwrap().bytes;
        assert_eq!(header(&linked, section).flags.bits(), 0x20, "{section}");
    }
}

/// Gives a section a name that is no longer.
fn rename_section(object: &mut [u8], from: &str, to: &str) {
    let row = section_row(object, from);
    let name = u32::from_le_bytes(object[row..row + 4].try_into().unwrap()) as usize;
    let at = bytes_of(object, ".shstrtab").start + name;
    object[at..at + from.len()].fill(0);
    object[at..at + to.len()].copy_from_slice(to.as_bytes());
}

/// Where no object says what it goes with, the linked file says whether that is one architecture alone.
#[test]
fn architectures_are_said_where_objects_do_not() {
    for (program, version, alone) in [("data", "13.5-sm_90", 0), ("tensor", "13.5-sm_100a", 1)] {
        let mut objects = halves(program, version);
        for object in &mut objects {
            rename_section(object, ".nv.compat", ".strtab");
        }
        let [a, b] = objects;
        let linked = link(&[&a, &b]).unwrap().bytes;
        assert_eq!(linked[bytes_of(&linked, ".nv.compat")][..4], [2, 9, alone, 0], "{program}");
    }
}

/// Memory without contents has no bytes in the file, whatever the type of the section.
#[test]
fn memory_has_no_bytes() {
    let [a, mut b] = halves("calls", "13.5-sm_90");
    let linked = link(&[&a, &b]).unwrap().bytes;
    let row = section_row(&b, ".nv_debug.shared");
    put32(&mut b, row + 4, SHT_PROGBITS);
    put32(&mut b, row + 32, 0x10_0000);
    assert!(link(&[&a, &b]).unwrap().bytes == linked);
}

/// `.note.nv.cuinfo` is of the newest toolkit and of the oldest architecture.
#[test]
fn notes_are_of_the_newest_toolkit() {
    let [a, b] = halves("gpu", "13.0-sm_90");
    let [c, d] = halves("weak", "13.5-sm_90");
    let linked = link(&[&a, &b, &c, &d]).unwrap().bytes;
    let note = &linked[bytes_of(&linked, ".note.nv.cuinfo")];
    assert_eq!(note[24..], [2, 0, 80, 0, 135, 0, 0, 0]);
}

/// `.note.nv.cuver`, of toolkits 12.8 and 12.9, stays, for the oldest architecture of all.
#[test]
fn older_notes_stay() {
    let [mut a, b] = halves("gpu", "13.0-sm_90");
    let [c, d] = halves("weak", "13.5-sm_90");
    rename_section(&mut a, ".note.nv.cuinfo", ".note.nv.cuver");
    let last = bytes_of(&a, ".note.nv.cuver").end - 2;
    a[last] = 7;
    let linked = link(&[&a, &b, &c, &d]).unwrap().bytes;
    let note = &linked[bytes_of(&linked, ".note.nv.cuver")];
    assert_eq!(note[24..], [2, 0, 80, 0, 130, 0, 7, 0]);
}

/// What `nvlink -r` joined is linked as if it had not been: arrays of the launch are in a section there, and have one
/// name in code, whose value is no alignment.
#[test]
fn what_nvlink_joined_is_linked_as_its_parts() {
    let mut joined = read("joined-13.5-sm_90");
    let linked = link(&[&joined]).unwrap().bytes;
    assert_eq!(differences(&read("zeros-13.5-sm_90"), &linked), [""; 0]);
    let [array, all] =
        ["dynamic", "externsharedinstance"].map(|name| symbol_row(&joined, ".symtab", name) + 8);
    put32(&mut joined, array, 0x40);
    put32(&mut joined, all, 0x18);
    let linked = link(&[&joined]).unwrap().bytes;
    assert_eq!(header(&linked, ".nv.shared.kernel").alignment, 0x40);
}
