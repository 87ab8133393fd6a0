//! Objects of Arm made here: words in `.text`, records against symbols of any address.

use elf_core::names::{
    EM_ARM, ET_REL, SHN_ABS, SHT_ARM_ATTRIBUTES, SHT_PROGBITS, SHT_REL, SHT_STRTAB, SHT_SYMTAB,
};

/// A word with a relocation, and the symbol that it is against.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// In `.text`, in bytes.
    pub(crate) offset: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) r#type: u32,
    pub(crate) symbol: u32,
    pub(crate) symbol_type: u8,
    /// What the formula gives.
    pub(crate) value: i64,
    /// In `.tdata`, not absolute.
    pub(crate) is_variable: bool,
}

/// Armv7-A, Arm and Thumb-2 code.
const ATTRIBUTES: &[u8] = b"A\x19\0\0\0aeabi\0\x01\x0f\0\0\0\x06\x0a\x07A\x08\x01\x09\x02\x0c\x01";

const TEXT: u16 = 1;
const TDATA: u16 = 2;

/// Name, type, flags, content, and the four words at the end of a section header.
type Section<'b> = (&'static str, u32, u32, &'b [u8], [u32; 4]);

/// An object with the words of all cases and the relocations of those that are `wanted`.
pub(crate) fn object(cases: &[Case], size: usize, wanted: &dyn Fn(&Case) -> bool) -> Vec<u8> {
    let mut text = vec![0; size];
    let mut symbols = vec![0; 16];
    let (mut records, mut strings) = (Vec::new(), vec![0]);
    for (index, case) in (1u32..).zip(cases) {
        text[case.offset..][..case.bytes.len()].copy_from_slice(&case.bytes);
        let name = strings.len() as u32;
        strings.extend(format!("s{}\0", case.offset).bytes());
        for word in [name, case.symbol, 4] {
            symbols.extend(word.to_le_bytes());
        }
        let section = if case.is_variable { TDATA } else { SHN_ABS };
        symbols.extend([0x10 | case.symbol_type, 0]);
        symbols.extend(section.to_le_bytes());
        if wanted(case) {
            records.extend((case.offset as u32).to_le_bytes());
            records.extend((index << 8 | case.r#type).to_le_bytes());
        }
    }
    let sections: [Section<'_>; 8] = [
        ("", 0, 0, &[], [0; 4]),
        (".text", SHT_PROGBITS, 6, &text, [0, 0, 4, 0]),
        (".tdata", SHT_PROGBITS, 0x403, &[0; 8], [0, 0, 4, 0]),
        (".rel.text", SHT_REL, 0x40, &records, [4, TEXT.into(), 4, 8]),
        (".symtab", SHT_SYMTAB, 0, &symbols, [5, 1, 4, 16]),
        (".strtab", SHT_STRTAB, 0, &strings, [0, 0, 1, 0]),
        (".ARM.attributes", SHT_ARM_ATTRIBUTES, 0, ATTRIBUTES, [0, 0, 1, 0]),
        (".shstrtab", SHT_STRTAB, 0, &[], [0, 0, 1, 0]),
    ];
    let mut names = Vec::new();
    let mut body = Vec::new();
    let mut headers = Vec::new();
    let all: String = sections.iter().map(|(name, ..)| format!("{name}\0")).collect();
    for (name, r#type, flags, bytes, [link, info, alignment, entry]) in sections {
        let bytes = if name == ".shstrtab" { all.as_bytes() } else { bytes };
        body.resize(body.len().next_multiple_of(4), 0);
        let offset = 52 + body.len() as u32;
        let head = [names.len() as u32, r#type, flags, 0, offset, bytes.len() as u32];
        for word in head.into_iter().chain([link, info, alignment, entry]) {
            headers.extend(word.to_le_bytes());
        }
        names.extend(name.bytes().chain([0]));
        body.extend(bytes);
    }
    body.resize(body.len().next_multiple_of(4), 0);
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([ET_REL, EM_ARM].map(u16::to_le_bytes).concat());
    let table = 52 + body.len() as u32;
    file.extend([1, 0, 0, table, 0x0500_0000].map(u32::to_le_bytes).concat());
    file.extend([52u16, 0, 0, 40, 8, 7].map(u16::to_le_bytes).concat());
    file.extend(body);
    file.extend(headers);
    file
}
