//! Objects of the fixtures, and changes of them.

#![allow(dead_code, reason = "each test uses a part")]

use elf_core::names::{SHN_UNDEF, SHT_RELA, STB_GLOBAL, STB_WEAK, STT_FUNC};
use elf_core::{File, SectionHeader};
use nvinfo::Attributes;
use std::ops::Range;
use std::path::PathBuf;

/// A file among the fixtures.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    let path = folder.join(format!("{name}.cubin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Both halves of a program, by their version.
pub(crate) fn halves(program: &str, version: &str) -> [Vec<u8>; 2] {
    ["a", "b"].map(|half| read(&format!("{program}_{half}-{version}")))
}

/// Names of the sections.
pub(crate) fn sections(object: &[u8]) -> Vec<String> {
    let file = File::parse(object).unwrap();
    file.sections().iter().map(|one| file.section_name(&one).unwrap().to_string()).collect()
}

/// The number of a section.
pub(crate) fn number(object: &[u8], name: &str) -> usize {
    sections(object).iter().position(|one| one == name).unwrap_or_else(|| panic!("no {name}"))
}

pub(crate) fn header(object: &[u8], name: &str) -> SectionHeader {
    File::parse(object).unwrap().section(number(object, name) as u32).unwrap()
}

/// Where the header of a section is.
pub(crate) fn section_row(object: &[u8], name: &str) -> usize {
    let headers = u64::from_le_bytes(object[40..48].try_into().unwrap());
    headers as usize + 64 * number(object, name)
}

/// Where the bytes of a section are.
pub(crate) fn bytes_of(object: &[u8], name: &str) -> Range<usize> {
    let header = header(object, name);
    header.offset as usize..(header.offset + header.size) as usize
}

/// Where a table of symbols has one of this name.
pub(crate) fn symbol_row(object: &[u8], table: &str, name: &str) -> usize {
    let file = File::parse(object).unwrap();
    let rows = file.symbol_table().unwrap().unwrap();
    let index = rows.symbols().iter().position(|one| rows.name_of(&one).unwrap() == name).unwrap();
    bytes_of(object, table).start + 24 * index
}

/// Where a section has its first attribute of this number.
pub(crate) fn attribute(object: &[u8], section: &str, number: u8) -> usize {
    let range = bytes_of(object, section);
    let mut rows = Attributes::new(&object[range.clone()], range.start as u64).map(Result::unwrap);
    let found = rows.find(|row| row.number == number);
    found.unwrap_or_else(|| panic!("no attribute {number:#x} in {section}")).at as usize
}

pub(crate) fn put32(object: &mut [u8], at: usize, value: u32) {
    object[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put64(object: &mut [u8], at: usize, value: u64) {
    object[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Gives a section other bytes, behind all that the file has.
pub(crate) fn replace(object: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let row = section_row(object, name);
    object.resize(object.len().next_multiple_of(128), 0);
    let at = object.len() as u64;
    put64(object, row + 24, at);
    put64(object, row + 32, bytes.len() as u64);
    object.extend_from_slice(bytes);
}

/// Makes all functions weak that an object defines, also in the table of Mercury, if it has one.
pub(crate) fn weakened(mut object: Vec<u8>) -> Vec<u8> {
    let symbols = File::parse(&object).unwrap().symbol_table().unwrap().unwrap();
    let symbols: Vec<_> = symbols.symbols().iter().collect();
    for table in [".symtab", ".nv.merc.symtab"] {
        if !sections(&object).iter().any(|one| one == table) {
            continue;
        }
        let start = bytes_of(&object, table).start;
        for (index, symbol) in symbols.iter().enumerate() {
            let is_function = symbol.r#type() == STT_FUNC && symbol.shndx != SHN_UNDEF;
            if is_function && symbol.binding() == STB_GLOBAL {
                object[start + 24 * index + 4] = STB_WEAK << 4 | STT_FUNC;
            }
        }
    }
    object
}

/// How many relocations of a section of records name each of these symbols.
pub(crate) fn named(object: &[u8], section: &str, names: &[&str]) -> Vec<usize> {
    let file = File::parse(object).unwrap();
    let table = file.symbol_table().unwrap().unwrap();
    let header = header(object, section);
    let r#type = if header.entry_size == 24 { SHT_RELA } else { header.r#type };
    let rows = file.relocations(&SectionHeader { r#type, ..header }).unwrap().unwrap();
    let symbols: Vec<_> =
        rows.iter().map(|row| table.symbols().get(row.symbol as usize).unwrap()).collect();
    let is = |symbol: &elf_core::Symbol, name: &str| table.name_of(symbol).unwrap() == name;
    names.iter().map(|name| symbols.iter().filter(|one| is(one, name)).count()).collect()
}
