//! Reads and shows everything of an ELF file.

use super::sink::Sink;
use elf_core::names::{self, DT_JMPREL, DT_REL, DT_RELA, DT_RELR};
use elf_core::{File, Name, RelocationIter, Relocations, SectionHeader, SymbolTable};

/// Rows of a table that are shown: enough for any file of a fuzzer's size.
const ROWS: usize = 4096;
/// Rows of a table for each of which a list is searched.
const SEARCHES: usize = 64;

/// Reads everything; shows it, or why it cannot be read.
pub fn run(bytes: &[u8]) {
    let mut sink = Sink::default();
    match File::parse(bytes) {
        Ok(file) => whole(&file, &mut sink),
        Err(error) => sink.display(error),
    }
}

fn whole(file: &File<'_>, sink: &mut Sink) {
    let header = file.header();
    sink.debug(file);
    sink.debug(names::machine(header.machine));
    sink.debug(names::file_type(header.r#type));
    let flags = names::header_flags(header.machine, header.os_abi, header.abi_version);
    flags.names(header.flags.into()).for_each(|name| sink.display(name));
    for section in file.sections().iter().take(ROWS) {
        sink.debug(section);
        sink.result(file.section_name(&section));
        sink.debug(names::section_type(header.machine, section.r#type));
        let flags = names::section_flags(header.machine);
        flags.names(section.flags.bits()).for_each(|name| sink.display(name));
        contents(file, &section, sink);
    }
    assert_eq!(file.sections().iter().len(), file.sections().len());
    assert!(file.section(file.sections().len() as u32).is_err(), "there is no such section");
    for segment in file.segments().iter().take(ROWS) {
        sink.debug(segment);
        sink.debug(names::segment_type(header.machine, segment.r#type));
        if let Ok(data) = file.segment_data(&segment) {
            assert_eq!(data.len() as u64, segment.file_size);
        }
        if let Some(Some(notes)) = sink.result(file.segment_notes(&segment)) {
            self::notes(notes, sink);
        }
        sink.debug(file.offset_of(segment.address));
        sink.debug(file.bytes_at("an address", segment.address).is_ok());
    }
    for table in [file.symbol_table(), file.dynamic_symbol_table()] {
        match table {
            Ok(Some(table)) => symbols(file, &table, sink),
            Ok(None) => {}
            Err(error) => sink.display(error),
        }
    }
    if let Some(Some(versions)) = sink.result(file.versions()) {
        self::versions(&versions, sink);
    }
    for dynamic in [file.dynamic(), file.dynamic_by_section(), file.dynamic_by_segment()] {
        match dynamic {
            Ok(Some(dynamic)) => self::dynamic(file, &dynamic, sink),
            Ok(None) => {}
            Err(error) => sink.display(error),
        }
    }
}

fn contents(file: &File<'_>, section: &SectionHeader, sink: &mut Sink) {
    match file.section_data(section) {
        Ok(data) => assert_eq!(data.len() as u64, section.file_size()),
        Err(error) => sink.display(error),
    }
    match file.compressed(section) {
        Ok(compressed) => sink.debug(compressed.map(|(header, data)| (header, data.len()))),
        Err(error) => sink.display(error),
    }
    match file.relocations(section) {
        Ok(Some(records)) => relocations(&records, sink),
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
    match file.section_group(section) {
        Ok(Some(group)) => {
            sink.debug((group, group.is_comdat()));
            group.members().take(ROWS).for_each(|member| sink.debug(file.section(member).is_ok()));
        }
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
    match file.section_notes(section) {
        Ok(Some(notes)) => self::notes(notes, sink),
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
    let Ok(linked) = file.symbol_table_at(section.link) else { return };
    let name = linked.symbols().iter().next_back().and_then(|symbol| linked.name_of(&symbol).ok());
    let name = name.unwrap_or(Name::from("main"));
    match file.hash_table(section) {
        Ok(Some(table)) => sink.debug(table.find(name, &linked).map_err(|error| sink_text(&error))),
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
    match file.gnu_hash_table(section) {
        Ok(Some(table)) => {
            sink.debug(table.find(name, &linked).map_err(|error| sink_text(&error)));
            sink.debug(table.symbol_count());
        }
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
}

fn sink_text(error: &elf_core::Error) -> usize {
    let mut sink = Sink::default();
    sink.display(error);
    0
}

/// The records by all ways that there are.
fn relocations<'a>(records: &Relocations<'a>, sink: &mut Sink) {
    let mut count = 0;
    let counted = records.try_for_each(|_| {
        count += 1;
        Ok::<_, ()>(())
    });
    assert_eq!((counted, count), (Ok(()), records.len()));
    assert_eq!(records.iter().fold(0, |count, _| count + 1), records.len());
    let mut stops = [const { RelocationIter::EMPTY }; 8];
    let indexed = records.indexed(&mut stops);
    assert_eq!(indexed.len(), records.len());
    for (index, record) in records.iter().enumerate().take(ROWS) {
        sink.debug(record);
        if index < SEARCHES {
            assert_eq!(records.get(index), Some(record));
            assert_eq!(indexed.get(index), Some(record));
        }
    }
    assert_eq!((records.get(records.len()), indexed.get(records.len())), (None, None));
}

fn symbols(file: &File<'_>, table: &SymbolTable<'_>, sink: &mut Sink) {
    let header = file.header();
    for (index, symbol) in (0u32..).zip(table.symbols()).take(ROWS) {
        sink.debug(symbol);
        sink.result(table.name_of(&symbol));
        sink.result(table.section_of(index, &symbol));
        assert_eq!(table.get(index), Ok(symbol));
        sink.debug(names::symbol_type(header.machine, header.os_abi, symbol.r#type()));
        sink.debug(names::symbol_binding(header.machine, header.os_abi, symbol.binding()));
        sink.debug(names::symbol_visibility(symbol.other));
    }
    assert!(table.first_global() <= table.len());
    assert!(table.get(table.len() as u32).is_err(), "there is no such symbol");
    sink.debug(table.find(Name::from("main")));
}

fn notes(notes: elf_core::Notes<'_>, sink: &mut Sink) {
    for note in notes.take(ROWS) {
        let Some(note) = sink.result(note) else { continue };
        for property in note.properties().into_iter().flatten().take(ROWS) {
            if let Some(property) = sink.result(property) {
                sink.debug(property.value());
            }
        }
    }
}

fn versions(versions: &elf_core::version::Versions<'_>, sink: &mut Sink) {
    for definition in versions.definitions().take(SEARCHES) {
        if let Some(definition) = sink.result(definition) {
            sink.result(definition.name());
            definition.names().take(SEARCHES).for_each(|name| {
                sink.result(name);
            });
        }
    }
    for need in versions.needs().take(SEARCHES) {
        if let Some(need) = sink.result(need) {
            need.versions().take(SEARCHES).for_each(|version| {
                sink.result(version);
            });
        }
    }
    for symbol in 0..SEARCHES {
        sink.result(versions.of(symbol as u32));
    }
}

fn dynamic(file: &File<'_>, dynamic: &elf_core::DynamicSection<'_>, sink: &mut Sink) {
    for entry in dynamic.entries().iter().take(ROWS) {
        sink.debug(names::dynamic_tag(file.header().machine, entry.tag.cast_unsigned()));
        sink.result(dynamic.text(&entry));
    }
    for tag in [DT_RELA, DT_REL, DT_RELR, DT_JMPREL] {
        match dynamic.relocations(tag) {
            Ok(Some(records)) => relocations(&records, sink),
            Ok(None) => {}
            Err(error) => sink.display(error),
        }
    }
    match dynamic.symbol_table() {
        Ok(Some(table)) => symbols(file, &table, sink),
        Ok(None) => {}
        Err(error) => sink.display(error),
    }
    if let Some(Some(versions)) = sink.result(dynamic.versions()) {
        self::versions(&versions, sink);
    }
}
