//! What a file holds, row by row, read when it is asked for.

use std::borrow::Cow;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use archs::relocation_name;
use elf_core::names;
use elf_core::{
    Definition, File, Mapping, ProgramHeader, Record, Relocations, SectionHeader, Symbol,
    SymbolTable,
};

use super::dynamic::{self, DynamicRow};
use super::notes::{self, NoteList};
use super::rows::{Header, Relocation, Section, Segment, SymbolRow};
use super::sections::in_section;
use super::versions::{Version, Versions};
use crate::explain::name_in;
use crate::printable::Printable;

/// An ELF file that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    pub(super) file: File<'a>,
}

/// A symbol table with the versions of its symbols.
#[derive(Clone)]
pub struct Symbols<'a> {
    /// The table.
    pub table: SymbolTable<'a>,
    versions: Option<Rc<Versions<'a>>>,
}

impl<'a> Symbols<'a> {
    /// The symbol table that is a section.
    fn of(file: &File<'a>, section: u32) -> Result<Self, elf_core::Error> {
        let table = file.symbol_table_at(section)?;
        let is_dynamic = file.section(section)?.r#type == names::SHT_DYNSYM;
        let versions = if is_dynamic { file.versions()? } else { None };
        Ok(Self {
            table,
            versions: versions.map(|found| Versions::of(&found)).transpose()?.map(Rc::new),
        })
    }

    /// The symbols that the dynamic section names by address.
    fn by_address(file: &File<'a>) -> Result<Option<Self>, elf_core::Error> {
        let Some(dynamic) = dynamic::find(file)? else { return Ok(None) };
        let Some(table) = dynamic.symbol_table()? else { return Ok(None) };
        let versions = dynamic.versions()?.map(|found| Versions::of(&found)).transpose()?;
        Ok(Some(Self { table, versions: versions.map(Rc::new) }))
    }

    fn version(&self, index: u32, symbol: &Symbol) -> Option<Version<'a>> {
        self.versions.as_ref()?.get(index, !symbol.is_undefined())
    }
}

/// Tags of the dynamic section that name relocations.
const RELOCATION_TAGS: [u64; 8] = [
    names::DT_RELA,
    names::DT_REL,
    names::DT_RELR,
    names::DT_CREL,
    names::DT_ANDROID_REL,
    names::DT_ANDROID_RELA,
    names::DT_ANDROID_RELR,
    names::DT_JMPREL,
];

/// A relocation section and what it means.
#[derive(Clone)]
pub struct RelocationSection<'a> {
    /// Index of the section, or 0.
    pub section: u32,
    /// The tag of the dynamic section that names them, if no section does.
    pub tag: Option<&'static str>,
    /// `sh_info`: the section it applies to.
    pub target: u32,
    /// Its records.
    pub records: Relocations<'a>,
    /// The symbols they mean.
    pub symbols: Option<Symbols<'a>>,
}

impl<'a> Dump<'a> {
    /// Shows this file.
    #[must_use]
    pub const fn new(file: File<'a>) -> Self {
        Self { file }
    }

    /// The file header.
    #[must_use]
    pub fn header(&self) -> Header {
        let (file, header) = (self.file, self.file.header());
        let flags = names::header_flags(header.machine, header.os_abi, header.abi_version);
        Header {
            bits: if file.encoding().is_64() { 64 } else { 32 },
            byte_order: if file.encoding().is_big_endian() { "big" } else { "little" },
            os_abi: header.os_abi,
            os_abi_name: names::os_abi(header.machine, header.os_abi),
            abi_version: header.abi_version,
            r#type: header.r#type,
            type_name: names::file_type(header.r#type),
            machine: header.machine,
            machine_name: names::machine(header.machine),
            version: header.version,
            entry: header.entry,
            flags: header.flags,
            flag_names: flags.names(header.flags.into()).collect(),
            header_size: header.header_size,
            program_headers: header.program_headers,
            program_header_size: header.program_header_size,
            segments: file.segments().len(),
            section_headers: header.section_headers,
            section_header_size: header.section_header_size,
            sections: file.sections().len(),
            section_names: file.section_names_index(),
        }
    }

    /// The sections.
    pub fn sections(&self) -> impl Iterator<Item = Result<Section<'a>>> + use<'a> {
        let (file, machine) = (self.file, self.machine());
        (0u32..).zip(file.sections()).map(move |(index, header)| {
            let name =
                file.section_name(&header).with_context(|| format!("name of section {index}"))?;
            let SectionHeader {
                r#type,
                flags,
                address,
                offset,
                size,
                link,
                info,
                alignment,
                entry_size,
                ..
            } = header;
            Ok(Section {
                index,
                name: name.into(),
                r#type,
                type_name: names::section_type(machine, r#type),
                flags: flags.bits(),
                flag_names: names::section_flags(machine).names(flags.bits()).collect(),
                address,
                offset,
                size,
                link,
                info,
                alignment,
                entry_size,
            })
        })
    }

    /// The segments.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment>> + use<'a> {
        let machine = self.machine();
        self.file.segments().into_iter().enumerate().map(move |(index, header)| {
            let ProgramHeader { r#type, flags, offset, address, physical_address, .. } = header;
            Ok(Segment {
                index,
                r#type,
                type_name: names::segment_type(machine, r#type),
                flags: flags.bits(),
                flag_names: names::segment_flags(machine).names(flags.bits().into()).collect(),
                offset,
                address,
                physical_address,
                file_size: header.file_size,
                memory_size: header.memory_size,
                alignment: header.alignment,
            })
        })
    }

    /// The symbol tables, in the order of their sections; in a file without sections, the dynamic symbols.
    pub fn symbol_tables(&self) -> impl Iterator<Item = Result<Symbols<'a>>> + use<'a> {
        let file = self.file;
        let is_table =
            |header: &SectionHeader| matches!(header.r#type, names::SHT_SYMTAB | names::SHT_DYNSYM);
        let tables = (0u32..).zip(file.sections()).filter(move |(_, header)| is_table(header));
        let by_section = tables.map(move |(index, _)| {
            Symbols::of(&file, index).with_context(|| in_section(&file, index))
        });
        by_section.chain(self.symbols_by_address().transpose())
    }

    /// The dynamic symbols of a file without sections.
    fn symbols_by_address(&self) -> Result<Option<Symbols<'a>>> {
        if !self.file.sections().is_empty() {
            return Ok(None);
        }
        Symbols::by_address(&self.file).context("dynamic symbols")
    }

    /// The symbols of a table.
    pub fn symbols<'s>(
        &'s self,
        of: &'s Symbols<'a>,
    ) -> impl Iterator<Item = Result<SymbolRow<'a>>> + use<'a, 's> {
        let context = move || in_section(&self.file, of.table.section());
        let symbols = (0u32..).zip(of.table.symbols());
        symbols.map(move |(index, symbol)| self.symbol(of, index, &symbol).with_context(context))
    }

    fn symbol(
        &self,
        of: &Symbols<'a>,
        index: u32,
        symbol: &Symbol,
    ) -> Result<SymbolRow<'a>, elf_core::Error> {
        let table = &of.table;
        let (file, machine, os_abi) = (&self.file, self.machine(), self.file.header().os_abi);
        let reserved = |shndx: u16| {
            let name = names::section_index(machine, shndx).map(Printable::from);
            (shndx.into(), name)
        };
        let (section, section_name) = match table.section_of(index, symbol)? {
            // tools that remove sections leave symbols of them behind
            Definition::Section(section) if section as usize >= file.sections().len() => {
                (section, None)
            }
            Definition::Section(section) => {
                (section, Some(file.section_name(&file.section(section)?)?.into()))
            }
            _ => reserved(symbol.shndx),
        };
        let of_type = names::symbol_other_of_type(machine, symbol.r#type());
        let name = name_in(file, table, index, symbol)?;
        Ok(SymbolRow {
            index,
            name: name.into(),
            is_mapping: Mapping::of(machine, symbol, name).is_some(),
            version: of.version(index, symbol),
            value: symbol.value,
            size: symbol.size,
            r#type: symbol.r#type(),
            type_name: names::symbol_type(machine, os_abi, symbol.r#type()),
            binding: symbol.binding(),
            binding_name: names::symbol_binding(machine, os_abi, symbol.binding()),
            other: symbol.other,
            visibility_name: names::symbol_visibility(symbol.other),
            other_names: (names::symbol_other(machine).names(symbol.other.into()))
                .chain(of_type.names(symbol.other.into()))
                .collect(),
            section,
            section_name,
        })
    }

    /// The relocation sections, in their order; in a file without sections, what the dynamic section names.
    pub fn relocation_sections(
        &self,
    ) -> impl Iterator<Item = Result<RelocationSection<'a>>> + use<'a> {
        let file = self.file;
        // neighbours mean the same symbols
        let mut last: Option<Symbols<'a>> = None;
        let mut symbols = move |link| match &last {
            _ if link == 0 => Ok(None),
            Some(known) if known.table.section() == link => Ok(Some(known.clone())),
            _ => Symbols::of(&file, link).map(|found| last.insert(found).clone()).map(Some),
        };
        let by_section = (0u32..).zip(file.sections()).filter_map(move |(section, header)| {
            let records = file.relocations(&header).transpose()?;
            let found = records.and_then(|records| {
                let (target, symbols) = (header.info, symbols(header.link)?);
                Ok(RelocationSection { section, tag: None, target, records, symbols })
            });
            Some(found.with_context(|| in_section(&file, section)))
        });
        let by_address = self.relocations_by_address();
        let (found, error) =
            by_address.map_or_else(|error| (Vec::new(), Some(error)), |found| (found, None));
        by_section.chain(found.into_iter().map(Ok)).chain(error.map(Err))
    }

    /// The relocations that the dynamic section of a file without sections names.
    fn relocations_by_address(&self) -> Result<Vec<RelocationSection<'a>>> {
        let mut found = Vec::new();
        if !self.file.sections().is_empty() {
            return Ok(found);
        }
        let Some(dynamic) = dynamic::find(&self.file).context("dynamic section")? else {
            return Ok(found);
        };
        let symbols = self.symbols_by_address()?;
        for tag in RELOCATION_TAGS {
            let name = names::dynamic_tag(self.machine(), tag);
            let records = dynamic.relocations(tag).with_context(|| name.unwrap_or_default())?;
            found.extend(records.map(|records| RelocationSection {
                section: 0,
                tag: name,
                target: 0,
                records,
                symbols: symbols.clone(),
            }));
        }
        Ok(found)
    }

    /// The relocations of a section.
    pub fn relocations<'s>(
        &'s self,
        of: &'s RelocationSection<'a>,
    ) -> impl Iterator<Item = Result<Relocation<'a>>> + use<'a, 's> {
        of.records.iter().map(move |record| {
            self.relocation(of, &record).with_context(|| {
                format!("{}: offset {:#x}", in_section(&self.file, of.section), record.offset)
            })
        })
    }

    fn relocation(
        &self,
        of: &RelocationSection<'a>,
        record: &Record,
    ) -> Result<Relocation<'a>, elf_core::Error> {
        let (symbol_name, symbol_version) = match &of.symbols {
            None => (None, None),
            Some(symbols) => {
                let symbol = symbols.table.get(record.symbol)?;
                let name = name_in(&self.file, &symbols.table, record.symbol, &symbol)?;
                (Some(name.into()), symbols.version(record.symbol, &symbol))
            }
        };
        Ok(Relocation {
            offset: record.offset,
            r#type: record.r#type,
            type_name: self.relocation_name(record.r#type),
            symbol: record.symbol,
            symbol_name,
            symbol_version,
            addend: record.addend,
        })
    }

    /// The entries of the dynamic section before `DT_NULL`.
    ///
    /// # Errors
    /// If it leaves the file, or a text is not in the string table.
    pub fn dynamic(&self) -> Result<Vec<DynamicRow<'a>>> {
        dynamic::rows(&self.file).context("dynamic section")
    }

    /// Bytes that hold notes: of the sections or, in a file without sections, of the segments.
    ///
    /// # Errors
    /// If they leave the file.
    pub fn notes(&self) -> Result<Vec<NoteList<'a>>> {
        notes::all(&self.file).context("notes")
    }

    /// What to call a section: its name, or its number if it has none.
    #[must_use]
    pub fn section_label(&self, index: u32) -> String {
        in_section(&self.file, index)
    }

    fn relocation_name(&self, r#type: u32) -> Option<Cow<'static, str>> {
        let machine = self.machine();
        if machine != names::EM_MIPS || !self.file.encoding().is_64() {
            return relocation_name(machine, r#type).map(Cow::Borrowed);
        }
        // three types in a byte each, and a special symbol
        let [first, second, third, _] = r#type.to_le_bytes();
        let numbers = [first, second, third].into_iter().map(u32::from).enumerate();
        let used = numbers.filter(|&(at, number)| at == 0 || number != 0);
        let names: Option<Vec<_>> =
            used.map(|(_, number)| relocation_name(machine, number)).collect();
        Some(Cow::Owned(names?.join("/")))
    }

    fn machine(&self) -> u16 {
        self.file.header().machine
    }
}
