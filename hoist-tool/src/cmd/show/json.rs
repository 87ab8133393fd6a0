//! The same for programs: one JSON object a file, written as it is read.

use std::io::Write;

use anyhow::Result;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use super::{Dump, Selection};
use crate::explain::section_name;
use crate::faults::in_words;
use crate::input::Part;
use crate::printable::Printable;

/// Writes the object of one file or member.
pub(super) fn write(
    part: &Part<'_>,
    path: &str,
    dump: Option<Dump<'_>>,
    selection: Selection,
    out: &mut dyn Write,
) -> Result<()> {
    Ok(crate::json::write(out, &Report { part, path, dump, selection })?)
}

struct Report<'r, 'a> {
    part: &'r Part<'a>,
    path: &'r str,
    dump: Option<Dump<'a>>,
    selection: Selection,
}

impl Serialize for Report<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", self.path)?;
        map.serialize_entry("member", &self.part.member)?;
        map.serialize_entry("size", &self.part.bytes.len())?;
        map.serialize_entry("elf", &self.dump.is_some())?;
        let Some(dump) = &self.dump else { return map.end() };
        if self.selection.header {
            map.serialize_entry("header", &dump.header())?;
        }
        if self.selection.segments {
            map.serialize_entry("segments", &Rows(|| dump.segments()))?;
        }
        if self.selection.sections {
            map.serialize_entry("sections", &Rows(|| dump.sections()))?;
        }
        if self.selection.dynamic {
            map.serialize_entry("dynamic", &dump.dynamic().map_err(custom)?)?;
        }
        if self.selection.symbols {
            map.serialize_entry("symbol_tables", &SymbolTables(dump))?;
        }
        if self.selection.relocations {
            map.serialize_entry("relocations", &RelocationSections(dump))?;
        }
        if self.selection.notes {
            map.serialize_entry("notes", &NoteSections(dump))?;
        }
        map.end()
    }
}

/// Rows as a list, read while they are written.
struct Rows<F>(F);

impl<F, I, T> Serialize for Rows<F>
where
    F: Fn() -> I,
    I: Iterator<Item = Result<T>>,
    T: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        list(serializer, (self.0)(), |list, row| list.serialize_element(row))
    }
}

/// A list of what `write` makes of `items`.
fn list<S: Serializer, T>(
    serializer: S,
    items: impl Iterator<Item = Result<T>>,
    write: impl Fn(&mut S::SerializeSeq, &T) -> Result<(), S::Error>,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for item in items {
        write(&mut list, &item.map_err(custom)?)?;
    }
    list.end()
}

fn custom<E: serde::ser::Error>(error: anyhow::Error) -> E {
    E::custom(in_words(&error))
}

/// An element of `symbol_tables`.
#[derive(Serialize)]
struct Table<'a, R> {
    section: u32,
    section_name: Option<Printable<'a>>,
    symbols: R,
}

struct SymbolTables<'r, 'a>(&'r Dump<'a>);

impl Serialize for SymbolTables<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dump = self.0;
        list(serializer, dump.symbol_tables(), |list, symbols| {
            let section = symbols.table.section();
            let rows = Rows(|| dump.symbols(symbols));
            list.serialize_element(&Table {
                section,
                section_name: name(dump, section),
                symbols: rows,
            })
        })
    }
}

/// An element of `relocations`.
#[derive(Serialize)]
struct Relocations<'a, R> {
    section: u32,
    section_name: Option<Printable<'a>>,
    /// The section that they apply to, or 0.
    target: u32,
    target_name: Option<Printable<'a>>,
    /// The tag of the dynamic section that names them, if no section does.
    tag: Option<&'static str>,
    /// The section of the symbols that they mean, or nothing.
    symbol_table: Option<u32>,
    records: R,
}

struct RelocationSections<'r, 'a>(&'r Dump<'a>);

impl Serialize for RelocationSections<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dump = self.0;
        list(serializer, dump.relocation_sections(), |list, of| {
            list.serialize_element(&Relocations {
                section: of.section,
                section_name: name(dump, of.section),
                tag: of.tag,
                target: of.target,
                target_name: name(dump, of.target),
                symbol_table: of.symbols.as_ref().map(|symbols| symbols.table.section()),
                records: Rows(|| dump.relocations(of)),
            })
        })
    }
}

/// An element of `notes`: those of a section or of a segment.
#[derive(Serialize)]
struct Notes<'a, R> {
    section: Option<u32>,
    section_name: Option<Printable<'a>>,
    segment: Option<usize>,
    notes: R,
}

struct NoteSections<'r, 'a>(&'r Dump<'a>);

impl Serialize for NoteSections<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dump = self.0;
        let all = dump.notes().map_err(custom)?;
        list(serializer, all.into_iter().map(Ok), |list, of| {
            list.serialize_element(&Notes {
                section: of.section,
                section_name: of.section.and_then(|section| name(dump, section)),
                segment: of.segment,
                notes: Rows(|| of.iter()),
            })
        })
    }
}

fn name<'a>(dump: &Dump<'a>, section: u32) -> Option<Printable<'a>> {
    section_name(&dump.file, section).map(Printable::from)
}
