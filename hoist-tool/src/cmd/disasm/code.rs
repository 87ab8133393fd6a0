//! What is at an address: symbols in order, and the functions they cut code into.

use anyhow::{Context as _, Result};
use elf_core::names::{
    EM_ARM, ET_REL, SHT_REL, SHT_RELA, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_SECTION,
    STT_TLS,
};
use elf_core::{Definition, File, Mapping, Name, SectionHeader, SymbolTable};

/// A file and its symbols by address.
pub(super) struct Code<'a> {
    pub(super) file: File<'a>,
    /// The symbols that relocations mean, if it is a relocatable object.
    pub(super) table: Option<SymbolTable<'a>>,
    /// In the order of [`Named::key`].
    named: Vec<Named<'a>>,
    /// What code and data are, in the order of [`Mark::key`].
    marks: Vec<Mark>,
    /// Relocation sections of a relocatable object, in the order of the sections they apply to.
    relocations: Vec<SectionHeader>,
    /// Whether values of symbols are offsets in their sections, not addresses.
    relative: bool,
}

#[derive(Clone, Copy)]
struct Named<'a> {
    section: u32,
    value: u64,
    size: u64,
    /// Of several at one address, the least: global functions first.
    rank: u8,
    is_code: bool,
    name: Name<'a>,
}

impl Named<'_> {
    fn key(&self) -> (u32, u64, u8) {
        (self.section, self.value, self.rank)
    }
}

/// What the bytes of a section are, from a value to the next mark.
struct Mark {
    section: u32,
    value: u64,
    /// Whether a mapping symbol says so, not only the state of a function.
    is_symbol: bool,
    mapping: Mapping,
}

impl Mark {
    const fn key(&self) -> (u32, u64, bool) {
        (self.section, self.value, self.is_symbol)
    }
}

/// Code from one symbol to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'a> {
    pub(super) name: Name<'a>,
    /// First byte, in bytes from the start of the section.
    pub(super) start: u64,
    /// End of the code.
    pub(super) end: u64,
}

impl<'a> Code<'a> {
    pub(super) fn of(file: &File<'a>) -> Result<Self> {
        let table = match file.symbol_table()? {
            Some(table) => Some(table),
            None => file.dynamic_symbol_table()?,
        };
        let relative = file.header().r#type == ET_REL;
        let machine = file.header().machine;
        let (mut named, mut marks) = (Vec::new(), Vec::new());
        if let Some(table) = &table {
            for (index, symbol) in (0u32..).zip(table.symbols()).skip(1) {
                let r#type = symbol.r#type();
                let Definition::Section(section) = table.section_of(index, &symbol)? else {
                    continue;
                };
                if matches!(r#type, STT_SECTION | STT_FILE | STT_TLS) {
                    continue;
                }
                let name = table.name_of(&symbol).with_context(|| format!("symbol {index}"))?;
                if let Some(mapping) = Mapping::of(machine, &symbol, name) {
                    marks.push(Mark { section, value: symbol.value, is_symbol: true, mapping });
                    continue;
                }
                if name.is_empty() {
                    continue;
                }
                let is_function = matches!(r#type, STT_FUNC | STT_GNU_IFUNC);
                let mut value = symbol.value;
                if machine == EM_ARM && is_function {
                    // bit 0 is the state of the function
                    let mapping = if value & 1 == 0 { Mapping::Arm } else { Mapping::Thumb };
                    value &= !1;
                    marks.push(Mark { section, value, is_symbol: false, mapping });
                }
                let rank = u8::from(!is_function) * 2 + u8::from(symbol.binding() == 0);
                let is_code = is_function || r#type == STT_NOTYPE;
                named.push(Named { section, value, size: symbol.size, rank, is_code, name });
            }
        }
        named.sort_by_key(Named::key);
        marks.sort_by_key(Mark::key);
        let symbols = table.as_ref().map_or(0, |table| table.section());
        let means_symbols =
            |header: &SectionHeader| relative && header.link == symbols && symbols != 0;
        let is_relocation = |header: &SectionHeader| matches!(header.r#type, SHT_RELA | SHT_REL);
        let mut relocations: Vec<_> =
            file.sections().iter().filter(is_relocation).filter(means_symbols).collect();
        relocations.sort_by_key(|header| header.info);
        Ok(Self { file: *file, table, named, marks, relocations, relative })
    }

    /// The relocation sections of section `index`.
    pub(super) fn relocation_sections(&self, index: u32) -> &[SectionHeader] {
        let start = self.relocations.partition_point(|header| header.info < index);
        let end = self.relocations.partition_point(|header| header.info <= index);
        self.relocations.get(start..end).unwrap_or_default()
    }

    /// What is at a value in a section, and the value up to which it is that.
    pub(super) fn mapping(&self, section: u32, value: u64) -> (Option<Mapping>, u64) {
        let behind =
            self.marks.partition_point(|mark| (mark.section, mark.value) <= (section, value));
        let within = |mark: &&Mark| mark.section == section;
        let last = behind.checked_sub(1).and_then(|at| self.marks.get(at)).filter(within);
        let next = self.marks.get(behind).filter(within);
        (last.map(|mark| mark.mapping), next.map_or(u64::MAX, |mark| mark.value))
    }

    /// The address of the first byte of a section.
    pub(super) const fn start_of(&self, section: &SectionHeader) -> u64 {
        if self.relative { 0 } else { section.address }
    }

    /// The functions of a section in order, from its start to its end without gaps.
    pub(super) fn functions(&self, index: u32, section: &SectionHeader) -> Vec<Function<'a>> {
        let (start, size) = (self.start_of(section), section.size);
        let in_section = self.in_section(index).iter().filter(|named| named.is_code);
        let mut functions: Vec<Function<'a>> = Vec::new();
        for named in in_section {
            let at = named.value.wrapping_sub(start);
            if at >= size || functions.last().is_some_and(|last| last.start == at) {
                continue;
            }
            functions.push(Function { name: named.name, start: at, end: size });
        }
        if functions.first().is_none_or(|first| first.start > 0) {
            functions.insert(0, Function { name: Name(b""), start: 0, end: size });
        }
        let starts: Vec<u64> = functions.iter().skip(1).map(|function| function.start).collect();
        for (function, next) in functions.iter_mut().zip(starts) {
            function.end = next;
        }
        functions
    }

    /// The symbol at or before `value` in a section, and how far behind it that is.
    pub(super) fn nearest(&self, section: u32, value: u64) -> Option<(Name<'a>, u64)> {
        let named = self.in_section(section);
        let before = named.partition_point(|named| named.value <= value);
        let last = named.get(before.checked_sub(1)?)?;
        // the first of those at its address
        let at = named.partition_point(|named| named.value < last.value);
        let best = named.get(at)?;
        let offset = value.wrapping_sub(best.value);
        let inside = offset == 0 || offset < best.size || (best.size == 0 && best.is_code);
        inside.then_some((best.name, offset))
    }

    /// The symbol at or before an address, whatever its section.
    pub(super) fn at_address(&self, address: u64) -> Option<(Name<'a>, u64)> {
        let holds = |header: &SectionHeader| {
            header.address != 0
                && address.checked_sub(header.address).is_some_and(|at| at < header.size)
        };
        let (section, _) = (0u32..).zip(self.file.sections()).find(|(_, header)| holds(header))?;
        self.nearest(section, address)
    }

    fn in_section(&self, section: u32) -> &[Named<'a>] {
        let start = self.named.partition_point(|named| named.section < section);
        let end = self.named.partition_point(|named| named.section <= section);
        self.named.get(start..end).unwrap_or_default()
    }
}
