//! Objects as a linker gets them: every section under a name of its own, so that a script can place each and none is special;
//! strings are not merged; unless it is asked for, no relocation invites it to rewrite instructions.

use elf_core::names::{
    EM_386, EM_ARM, SHF_LINK_ORDER, SHF_MERGE, SHF_STRINGS, SHT_ARM_ATTRIBUTES, SHT_ARM_EXIDX,
    SHT_PROGBITS,
};
use elf_core::{Encoding, File, SectionHeader};

/// What section `index` of object `object` is called.
pub(crate) fn name(object: usize, index: u32) -> String {
    format!(".h{object}.{index}")
}

/// A copy of an object with its sections renamed, to be linked with or without relaxation.
pub(crate) fn renamed(object: usize, file: &File<'_>, relax: bool) -> Vec<u8> {
    let mut bytes = file.bytes().to_vec();
    let encoding = file.encoding();
    let header = file.header();
    // behind the old names: the symbols' may be among them
    let mut names = file.section_names().as_bytes().to_vec();
    let start = bytes.len() as u64;
    for (index, section) in (0u32..).zip(file.sections()) {
        let at = header.section_headers + u64::from(index) * u64::from(header.section_header_size);
        put(&mut bytes, encoding, at, 4, names.len() as u64); // sh_name
        // says which instructions linkers may use
        let is_attributes = header.machine == EM_ARM && section.r#type == SHT_ARM_ATTRIBUTES;
        let name = name(object, index);
        names.extend(if is_attributes { ".ARM.attributes" } else { &name }.bytes());
        names.push(0);
        let mut flags = section.flags.bits() & !(SHF_MERGE | SHF_STRINGS);
        // linkers sort and shorten tables that they know, and put them where they like
        if header.machine == EM_ARM && section.r#type == SHT_ARM_EXIDX {
            flags &= !SHF_LINK_ORDER;
            put(&mut bytes, encoding, at + 4, 4, SHT_PROGBITS.into());
        }
        put(&mut bytes, encoding, at + 8, word(encoding), flags);
    }
    let at = header.section_headers
        + u64::from(file.section_names_index()) * u64::from(header.section_header_size);
    let (offset, size) = if encoding.is_64() { (24, 32) } else { (16, 20) };
    put(&mut bytes, encoding, at + offset, word(encoding), start);
    put(&mut bytes, encoding, at + size, word(encoding), names.len() as u64);
    bytes.extend(names);
    if header.machine == EM_386 && !relax {
        file.sections().iter().for_each(|section| plain_got(&mut bytes, file, &section));
    }
    bytes
}

/// `R_386_GOT32` for `R_386_GOT32X`: GNU ld rewrites the instructions of the latter, `--no-relax` or not.
fn plain_got(bytes: &mut [u8], file: &File<'_>, section: &SectionHeader) {
    const GOT32: u64 = 3;
    const GOT32X: u32 = 43;
    let records = file.relocations(section).expect("relocations").into_iter().flatten();
    for (at, record) in (section.offset..).step_by(8).zip(records) {
        if record.r#type == GOT32X {
            put(bytes, file.encoding(), at + 4, 1, GOT32);
        }
    }
}

fn word(encoding: Encoding) -> usize {
    if encoding.is_64() { 8 } else { 4 }
}

fn put(bytes: &mut [u8], encoding: Encoding, at: u64, size: usize, value: u64) {
    let place = &mut bytes[at as usize..][..size];
    let value = value.to_le_bytes();
    place.copy_from_slice(&value[..size]);
    if encoding.is_big_endian() {
        place.reverse();
    }
}
