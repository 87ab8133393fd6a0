//! Objects made for tests.

use super::file::{File, Header, put_word};
use elf_core::SectionFlags;
use elf_core::names::*;

/// An object to be: little-endian, for x86-64 and of 64 bits, unless it is made another.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) r#type: u16,
    pub(crate) machine: u16,
    pub(crate) class: u8,
    sections: Vec<Section>,
    symbols: Vec<Symbol>,
    groups: Vec<(usize, u32, Vec<u32>)>,
}

#[derive(Clone, Debug)]
struct Section {
    name: String,
    r#type: u32,
    flags: SectionFlags,
    address: u64,
    alignment: u64,
    size: u64,
    data: Vec<u8>,
    link: Option<u32>,
    followed: u32,
    relocations: Vec<(u64, u32, usize, i64)>,
}

#[derive(Clone, Debug)]
struct Symbol {
    name: String,
    info: u8,
    visibility: u8,
    place: Place,
    value: u64,
    size: u64,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Undefined,
    Absolute,
    Common,
    In(u32),
    Reserved(u16),
}

impl Object {
    pub(crate) fn new() -> Self {
        let (sections, symbols, groups) = (Vec::new(), Vec::new(), Vec::new());
        Self { r#type: ET_REL, machine: EM_X86_64, class: ELFCLASS64, sections, symbols, groups }
    }

    /// Adds a section with bytes; its index.
    pub(crate) fn section(
        &mut self,
        name: &str,
        flags: SectionFlags,
        alignment: u64,
        data: &[u8],
    ) -> u32 {
        self.sections.push(Section {
            name: name.into(),
            r#type: SHT_PROGBITS,
            flags,
            address: 0,
            alignment,
            size: data.len() as u64,
            data: data.to_vec(),
            link: None,
            followed: 0,
            relocations: Vec::new(),
        });
        self.sections.len() as u32
    }

    /// Adds a section of zeros; its index.
    pub(crate) fn zeros(
        &mut self,
        name: &str,
        flags: SectionFlags,
        alignment: u64,
        size: u64,
    ) -> u32 {
        let index = self.section(name, flags, alignment, &[]);
        let section = self.sections.last_mut().unwrap();
        (section.r#type, section.size) = (SHT_NOBITS, size);
        index
    }

    /// Gives a section an address of its own.
    pub(crate) fn at(&mut self, section: u32, address: u64) {
        self.sections[section as usize - 1].address = address;
    }

    /// Makes a section one of another type.
    pub(crate) fn kind(&mut self, section: u32, r#type: u32) {
        self.sections[section as usize - 1].r#type = r#type;
    }

    /// Lets a section follow another one (`SHF_LINK_ORDER`).
    pub(crate) fn follows(&mut self, section: u32, followed: u32) {
        self.names(section, followed);
        self.sections[section as usize - 1].flags |= SectionFlags::LINK_ORDER;
    }

    /// Lets the `sh_link` of a section name another one.
    pub(crate) fn names(&mut self, section: u32, other: u32) {
        self.sections[section as usize - 1].followed = other;
    }

    /// Lets the relocations of a section mean another symbol table.
    pub(crate) fn link(&mut self, section: u32, link: u32) {
        self.sections[section as usize - 1].link = Some(link);
    }

    /// Adds a symbol; its number here. [`index`](Self::index) tells its index in the file.
    pub(crate) fn symbol(
        &mut self,
        name: &str,
        binding: u8,
        r#type: u8,
        place: Place,
        value: u64,
        size: u64,
    ) -> usize {
        let info = binding << 4 | r#type;
        self.symbols.push(Symbol { name: name.into(), info, visibility: 0, place, value, size });
        self.symbols.len() - 1
    }

    /// Makes a symbol one of another visibility.
    pub(crate) fn visibility(&mut self, symbol: usize, visibility: u8) {
        self.symbols[symbol].visibility = visibility;
    }

    pub(crate) fn global(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_GLOBAL, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn weak(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_WEAK, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn local(&mut self, name: &str, section: u32, value: u64) -> usize {
        self.symbol(name, STB_LOCAL, STT_NOTYPE, Place::In(section), value, 8)
    }

    pub(crate) fn undefined(&mut self, name: &str) -> usize {
        self.symbol(name, STB_GLOBAL, STT_NOTYPE, Place::Undefined, 0, 0)
    }

    pub(crate) fn undefined_weak(&mut self, name: &str) -> usize {
        self.symbol(name, STB_WEAK, STT_NOTYPE, Place::Undefined, 0, 0)
    }

    pub(crate) fn common(&mut self, name: &str, size: u64, alignment: u64) -> usize {
        self.symbol(name, STB_GLOBAL, STT_OBJECT, Place::Common, alignment, size)
    }

    /// Adds a relocation of a section.
    pub(crate) fn relocation(
        &mut self,
        section: u32,
        offset: u64,
        r#type: u32,
        symbol: usize,
        addend: i64,
    ) {
        self.sections[section as usize - 1].relocations.push((offset, r#type, symbol, addend));
    }

    /// Adds a section group; its members must be there already.
    pub(crate) fn group(&mut self, signature: usize, flags: u32, members: &[u32]) {
        self.groups.push((signature, flags, members.to_vec()));
    }

    /// The index of symbol `number` in the file: local ones come first.
    pub(crate) fn index(&self, number: usize) -> u32 {
        let order = self.order();
        order.iter().position(|at| *at == number).unwrap() as u32 + 1
    }

    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.symbols.len()).collect();
        order.sort_by_key(|at| self.symbols[*at].info >> 4 != STB_LOCAL);
        order
    }

    /// The file: the sections in the order they were added in, their relocations, groups, symbols and names behind them.
    pub(crate) fn build(&self) -> Vec<u8> {
        let order = self.order();
        let mut indices = vec![0u32; order.len()];
        order.iter().zip(1..).for_each(|(at, index)| indices[*at] = index);
        let own = self.sections.len();
        let tables = self.sections.iter().filter(|section| !section.relocations.is_empty()).count();
        let symbol_table = (1 + own + tables + self.groups.len()) as u32;
        let extended = symbol_table >= 0xff00 - 3;
        let (names_at, strings) = (symbol_table + 1, symbol_table + 2 + u32::from(extended));
        let mut file = File::new(self.class);
        for section in &self.sections {
            file.put(&section.data, &section.name, |header| Header {
                r#type: section.r#type,
                flags: section.flags.bits(),
                address: section.address,
                size: section.size,
                link: section.followed,
                alignment: section.alignment,
                ..header
            });
        }
        for (section, target) in self.sections.iter().zip(1..) {
            if section.relocations.is_empty() {
                continue;
            }
            let link = section.link.unwrap_or(symbol_table);
            let data = self.records(section, &indices);
            file.put(&data, ".rela", |header| Header {
                r#type: SHT_RELA,
                link,
                info: target,
                alignment: 8,
                entry_size: self.row(24, 12),
                ..header
            });
        }
        for (signature, flags, members) in &self.groups {
            let words = [&[*flags], &members[..]].concat();
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            file.put(&words, ".group", |header| Header {
                r#type: SHT_GROUP,
                link: symbol_table,
                info: indices[*signature],
                alignment: 4,
                entry_size: 4,
                ..header
            });
        }
        let (table, texts, wide) = self.symbols(&order);
        let is_local = |at: &&usize| self.symbols[**at].info >> 4 == STB_LOCAL;
        file.put(&table, ".symtab", |header| Header {
            r#type: SHT_SYMTAB,
            link: names_at,
            info: order.iter().filter(is_local).count() as u32 + 1,
            alignment: 8,
            entry_size: self.row(24, 16),
            ..header
        });
        let strings_of = |header| Header { r#type: SHT_STRTAB, alignment: 1, ..header };
        file.put(&texts, ".strtab", strings_of);
        if extended {
            file.put(&wide, ".symtab_shndx", |header| Header {
                r#type: SHT_SYMTAB_SHNDX,
                link: symbol_table,
                alignment: 4,
                entry_size: 4,
                ..header
            });
        }
        let (file, last) = file.finish(self.r#type, self.machine);
        assert_eq!(last, strings);
        file
    }

    /// Bytes of a row that has so many in files of 64 and of 32 bits.
    fn row(&self, of_64: u64, of_32: u64) -> u64 {
        if self.class == ELFCLASS64 { of_64 } else { of_32 }
    }

    /// The records of a section.
    fn records(&self, section: &Section, indices: &[u32]) -> Vec<u8> {
        let mut data = Vec::new();
        for &(offset, r#type, symbol, addend) in &section.relocations {
            let index = indices.get(symbol).copied().unwrap_or(symbol as u32);
            let shift = self.row(32, 8);
            for word in [offset, u64::from(index) << shift | u64::from(r#type), addend as u64] {
                put_word(&mut data, self.class, word);
            }
        }
        data
    }

    /// The symbol table, its names, and the sections of those whose numbers are large.
    fn symbols(&self, order: &[usize]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let (mut table, mut texts, mut wide) = (Vec::new(), vec![0u8], vec![0u8; 4]);
        table.resize(self.row(24, 16) as usize, 0);
        for at in order {
            let symbol = &self.symbols[*at];
            let (shndx, section) = match symbol.place {
                Place::Undefined => (SHN_UNDEF, 0),
                Place::Absolute => (SHN_ABS, 0),
                Place::Common => (SHN_COMMON, 0),
                Place::Reserved(shndx) => (shndx, 0),
                Place::In(section) if section >= SHN_LORESERVE.into() => (SHN_XINDEX, section),
                Place::In(section) => (section as u16, 0),
            };
            let name = if symbol.name.is_empty() { 0 } else { texts.len() as u32 };
            if !symbol.name.is_empty() {
                texts.extend(symbol.name.bytes().chain([0]));
            }
            table.extend(name.to_le_bytes());
            let of_32 = self.class != ELFCLASS64;
            if of_32 {
                put_word(&mut table, self.class, symbol.value);
                put_word(&mut table, self.class, symbol.size);
            }
            table.extend([symbol.info, symbol.visibility]);
            table.extend(shndx.to_le_bytes());
            if !of_32 {
                put_word(&mut table, self.class, symbol.value);
                put_word(&mut table, self.class, symbol.size);
            }
            wide.extend(section.to_le_bytes());
        }
        (table, texts, wide)
    }
}
