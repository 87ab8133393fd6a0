//! What is compared: places with relocations, and an object of them.

use std::collections::HashMap;

use archs::Architecture;
use elf_core::names::{STB_GLOBAL, STT_NOTYPE, STT_TLS};
use object::elf;
use object::write::{Object, Relocation, Symbol, SymbolSection};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope,
};

/// Bytes from one place to the next.
pub(crate) const STEP: usize = 32;

/// Where `.text` is.
pub(crate) const fn base(address_size: u64) -> u64 {
    if address_size == 4 { 0x4000_0000 } else { 1 << 40 }
}

/// A place, and the relocations that are about it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// In `.text`, in bytes.
    pub(crate) offset: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Wanted>,
    /// What the formula gives, but for pages.
    pub(crate) value: i64,
}

/// A relocation so many bytes behind the start of the place.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) at: u64,
    pub(crate) r#type: u32,
    pub(crate) target: Target,
    pub(crate) addend: i64,
}

/// What a relocation is against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// An address, by a symbol of this type.
    Absolute(u64, u8),
    /// So far into `.tdata`.
    Variable(u64),
    /// So far into `.data`, by a symbol of this type.
    Data(u64, u8),
    /// An address, by one symbol for all places.
    Shared(u64),
    /// The start of `.tdata`, by one symbol for all places.
    SharedVariable,
    /// The table of addresses that the linker makes.
    Got,
    /// The start of the place.
    Label,
}

/// Armv7-A, Arm and Thumb-2 code.
const ATTRIBUTES: &[u8] = b"A\x19\0\0\0aeabi\0\x01\x0f\0\0\0\x06\x0a\x07A\x08\x01\x09\x02\x0c\x01";

/// An object with the words and relocations of these cases.
pub(crate) fn object(machine: Architecture, cases: &[Case], size: usize) -> Vec<u8> {
    let (architecture, flags) = match machine {
        Architecture::Arm => (object::Architecture::Arm, 0x0500_0000),
        Architecture::Rv64 => (object::Architecture::Riscv64, 5),
        Architecture::Rv32 => (object::Architecture::Riscv32, 1),
        Architecture::LoongArch64 => (object::Architecture::LoongArch64, 0x43),
        other => panic!("no limits of {other} here"),
    };
    let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    file.flags =
        FileFlags::Elf { os_abi: elf::OsAbi(0), abi_version: 0, e_flags: elf::FileFlags(flags) };
    let text = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
    let mut records = cases.iter().flat_map(|case| &case.records);
    // one of them, which begins a segment
    let (name, kind) = match records.any(|it| matches!(it.target, Target::Data(..))) {
        true => (".data", SectionKind::Data),
        false => (".tdata", SectionKind::Tls),
    };
    let data = file.add_section(Vec::new(), name.as_bytes().to_vec(), kind);
    let mut bytes = vec![0; size];
    for case in cases {
        bytes[case.offset..][..case.bytes.len()].copy_from_slice(&case.bytes);
    }
    file.append_section_data(text, &bytes, 4);
    file.append_section_data(data, &[0; 8], 4);
    if machine == Architecture::Arm {
        let kind = SectionKind::Metadata;
        let attributes = file.add_section(Vec::new(), b".ARM.attributes".to_vec(), kind);
        let (sh_type, sh_flags) = (elf::SHT_ARM_ATTRIBUTES, elf::SectionFlags(0));
        file.section_mut(attributes).flags = SectionFlags::Elf { sh_type, sh_flags };
        file.append_section_data(attributes, ATTRIBUTES, 1);
    }
    let mut symbol = |name: String, value, section, st_info: u8| {
        file.add_symbol(Symbol {
            name: name.into_bytes(),
            value,
            size: 0,
            kind: SymbolKind::Label,
            scope: if st_info >> 4 == 0 { SymbolScope::Compilation } else { SymbolScope::Dynamic },
            weak: false,
            section,
            flags: SymbolFlags::Elf {
                st_info: elf::SymbolInfo(st_info),
                st_other: elf::SymbolOther(0),
            },
        })
    };
    let global = |symbol_type| STB_GLOBAL << 4 | symbol_type;
    let mut relocations = Vec::new();
    let mut shared = HashMap::new();
    for case in cases {
        let at = case.offset as u64;
        for wanted in &case.records {
            let name = format!("s{at}.{}.{}", wanted.at, wanted.r#type);
            let target = match wanted.target {
                Target::Variable(value) => {
                    symbol(name, value, SymbolSection::Section(data), global(STT_TLS))
                }
                Target::Absolute(value, symbol_type) => {
                    symbol(name, value, SymbolSection::Absolute, global(symbol_type))
                }
                Target::Data(value, symbol_type) => {
                    symbol(name, value, SymbolSection::Section(data), global(symbol_type))
                }
                Target::Shared(_) | Target::SharedVariable | Target::Got => {
                    let make = || match wanted.target {
                        Target::Shared(value) => {
                            symbol(name, value, SymbolSection::Absolute, global(STT_NOTYPE))
                        }
                        Target::Got => {
                            let name = String::from("_GLOBAL_OFFSET_TABLE_");
                            symbol(name, 0, SymbolSection::Undefined, global(STT_NOTYPE))
                        }
                        _ => symbol(name, 0, SymbolSection::Section(data), global(STT_TLS)),
                    };
                    *shared.entry(std::mem::discriminant(&wanted.target)).or_insert_with(make)
                }
                Target::Label => symbol(name, at, SymbolSection::Section(text), STT_NOTYPE),
            };
            let flags = RelocationFlags::Elf { r_type: elf::RelocationType(wanted.r#type) };
            relocations.push(Relocation {
                offset: at + wanted.at,
                symbol: target,
                addend: wanted.addend,
                flags,
            });
        }
    }
    for relocation in relocations {
        file.add_relocation(text, relocation).expect("a relocation");
    }
    file.write().expect("an object")
}
