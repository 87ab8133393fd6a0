//! The same for people: tables whose columns fit what is in them.

use core::fmt::{Arguments, Display};
use std::io::Write;

use anyhow::Result;
use elf_core::SegmentFlags;

use super::{Dump, Hex, Note, Property, Selection, SymbolRow, Version, svg};
use crate::input::Part;
use crate::paint;
use crate::printable::Printable;
use crate::table::Table;

/// Bytes of a note that are shown.
const NOTE_BYTES: usize = 32;

/// Writes what is selected of one file or member.
pub(super) fn write<'a>(
    part: &Part<'_>,
    dump: Option<Dump<'a>>,
    selection: Selection,
    out: &mut dyn Write,
) -> Result<()> {
    paint::title(out, format_args!("{}:", Printable::from(part.label.as_str())))?;
    let Some(dump) = dump else {
        writeln!(out, "  not an ELF file, {} bytes", part.bytes.len())?;
        return Ok(());
    };
    let text = Text { digits: if dump.file.encoding().is_64() { 16 } else { 8 }, dump };
    let parts: [(bool, Print<'a>); 7] = [
        (selection.header, Text::header),
        (selection.segments, Text::segments),
        (selection.sections, Text::sections),
        (selection.dynamic, Text::dynamic),
        (selection.symbols, Text::symbols),
        (selection.relocations, Text::relocations),
        (selection.notes, Text::notes),
    ];
    parts.iter().filter(|(selected, _)| *selected).try_for_each(|(_, print)| print(&text, out))
}

type Print<'a> = fn(&Text<'a>, &mut dyn Write) -> Result<()>;

struct Text<'a> {
    dump: Dump<'a>,
    /// Hexadecimal digits of an address.
    digits: usize,
}

impl Text<'_> {
    fn header(&self, out: &mut dyn Write) -> Result<()> {
        let header = self.dump.header();
        let mut table = Table::new(out);
        table.row(["  file type", &known(header.type_name, "ET_", header.r#type)])?;
        table.row(["  machine", &known(header.machine_name, "EM_", header.machine)])?;
        table.row(["  class", &format!("{} bits, {}-endian", header.bits, header.byte_order)])?;
        let os_abi = known(header.os_abi_name, "ELFOSABI_", header.os_abi);
        table.row(["  system", &format!("{os_abi}, ABI version {}", header.abi_version)])?;
        table.row(["  version", &header.version.to_string()])?;
        table.row(["  entry", &format!("{:#x}", header.entry)])?;
        let flags = names_of(&header.flag_names, "EF_");
        table.row(["  flags", format!("{:#x} {flags}", header.flags).trim_end()])?;
        table.row([
            "  segments",
            &format!("{} at offset {:#x}", header.segments, header.program_headers),
        ])?;
        let (count, at, names) = (header.sections, header.section_headers, header.section_names);
        table
            .row(["  sections", &format!("{count} at offset {at:#x}, names in section {names}")])?;
        table.end()
    }

    fn segments(&self, out: &mut dyn Write) -> Result<()> {
        if self.dump.file.segments().is_empty() {
            return Ok(());
        }
        title(out, format_args!("segments"))?;
        let mut table = Table::new(out);
        table.heading([
            "  #",
            "type",
            "offset",
            "address",
            "physical",
            "in file",
            "in memory",
            "align",
            "flags",
        ])?;
        for segment in self.dump.segments() {
            let segment = segment?;
            let flags = svg::letters(SegmentFlags::from_bits_retain(segment.flags));
            table.painted(
                (8, paint::of_permissions(&flags)),
                [
                    format!("  {}", segment.index),
                    known(segment.type_name, "PT_", segment.r#type),
                    format!("{:#x}", segment.offset),
                    self.address(segment.address),
                    self.address(segment.physical_address),
                    format!("{:#x}", segment.file_size),
                    format!("{:#x}", segment.memory_size),
                    format!("{:#x}", segment.alignment),
                    names_of(&segment.flag_names, "PF_"),
                ],
            )?;
        }
        table.end()
    }

    fn sections(&self, out: &mut dyn Write) -> Result<()> {
        if self.dump.file.sections().is_empty() {
            return Ok(());
        }
        title(out, format_args!("sections"))?;
        let mut table = Table::new(out);
        table.heading([
            "  #", "name", "type", "address", "offset", "size", "entry", "align", "link", "info",
            "flags",
        ])?;
        for (header, section) in self.dump.file.sections().into_iter().zip(self.dump.sections()) {
            let section = section?;
            table.painted(
                (1, svg::kind(&header).into()),
                [
                    format!("  {}", section.index),
                    section.name.to_string(),
                    known(section.type_name, "SHT_", section.r#type),
                    self.address(section.address),
                    format!("{:#x}", section.offset),
                    format!("{:#x}", section.size),
                    format!("{:#x}", section.entry_size),
                    section.alignment.to_string(),
                    section.link.to_string(),
                    section.info.to_string(),
                    names_of(&section.flag_names, "SHF_"),
                ],
            )?;
        }
        table.end()
    }

    fn dynamic(&self, out: &mut dyn Write) -> Result<()> {
        let rows = self.dump.dynamic()?;
        if rows.is_empty() {
            return Ok(());
        }
        title(out, format_args!("dynamic section"))?;
        let mut table = Table::new(out);
        table.heading(["  tag", "value", "meaning"])?;
        for row in rows {
            let meaning =
                row.text.map_or_else(|| names_of(&row.value_names, "DT_"), |text| text.to_string());
            table.row([
                format!("  {}", known(row.tag_name, "DT_", row.tag)),
                format!("{:#x}", row.value),
                meaning,
            ])?;
        }
        table.end()
    }

    fn symbols(&self, out: &mut dyn Write) -> Result<()> {
        for symbols in self.dump.symbol_tables() {
            let symbols = symbols?;
            let label = self.dump.section_label(symbols.table.section());
            match symbols.table.section() {
                0 => title(out, format_args!("dynamic symbols"))?,
                _ => title(out, format_args!("symbols in {label}"))?,
            }
            let mut table = Table::new(out);
            table.heading([
                "  #",
                "value",
                "size",
                "type",
                "binding",
                "visibility",
                "section",
                "name",
            ])?;
            let mut marks = 0;
            for symbol in self.dump.symbols(&symbols) {
                let symbol = symbol?;
                if symbol.is_mapping {
                    marks += 1;
                } else {
                    self.symbol(&symbol, &mut table)?;
                }
            }
            table.end()?;
            if marks > 0 {
                writeln!(
                    out,
                    "  and {marks} mapping symbols ($x and the like), which --json shows"
                )?;
            }
        }
        Ok(())
    }

    fn symbol(&self, symbol: &SymbolRow<'_>, table: &mut Table<'_>) -> Result<()> {
        let mut visibility = known(symbol.visibility_name, "STV_", symbol.other & 3);
        if symbol.other & !3 != 0 {
            visibility = format!("{visibility} {}", names_of(&symbol.other_names, "STO_"));
            if symbol.other_names.is_empty() {
                visibility = format!("{}{:#x}", visibility, symbol.other & !3);
            }
        }
        let section = match symbol.section_name {
            Some(name) => String::from(name.to_string().trim_start_matches("SHN_")),
            None => format!("{:#x}", symbol.section),
        };
        table.row([
            format!("  {}", symbol.index),
            self.address(symbol.value),
            symbol.size.to_string(),
            known(symbol.type_name, "STT_", symbol.r#type),
            known(symbol.binding_name, "STB_", symbol.binding),
            visibility,
            section,
            versioned(symbol.name, symbol.version),
        ])
    }

    fn relocations(&self, out: &mut dyn Write) -> Result<()> {
        for section in self.dump.relocation_sections() {
            let section = section?;
            let label = match section.tag {
                Some(tag) => String::from(tag),
                None => self.dump.section_label(section.section),
            };
            match section.target {
                0 => title(out, format_args!("relocations in {label}"))?,
                target => {
                    let target = self.dump.section_label(target);
                    title(out, format_args!("relocations in {label}, of {target}"))?;
                }
            }
            let mut table = Table::new(out);
            table.heading(["  offset", "type", "symbol"])?;
            for record in self.dump.relocations(&section) {
                let record = record?;
                let symbol = match record.symbol_name {
                    Some(name) if record.symbol != 0 => versioned(name, record.symbol_version),
                    _ if record.symbol == 0 => String::new(),
                    _ => format!("symbol {}", record.symbol),
                };
                let sign = |is_negative| match (symbol.is_empty(), is_negative) {
                    (true, false) => "",
                    (true, true) => "-",
                    (false, false) => " + ",
                    (false, true) => " - ",
                };
                let addend = match record.addend {
                    None | Some(0) => String::new(),
                    Some(addend) => format!("{}{:#x}", sign(addend < 0), addend.unsigned_abs()),
                };
                let r#type = record
                    .type_name
                    .map_or_else(|| format!("type {}", record.r#type), |name| name.into_owned());
                table.row([
                    format!("  {}", self.address(record.offset)),
                    r#type,
                    format!("{symbol}{addend}"),
                ])?;
            }
            table.end()?;
        }
        Ok(())
    }

    fn notes(&self, out: &mut dyn Write) -> Result<()> {
        for list in self.dump.notes()? {
            match (list.section, list.segment) {
                (Some(section), _) => {
                    title(out, format_args!("notes in {}", self.dump.section_label(section)))?;
                }
                (None, segment) => {
                    let segment = segment.unwrap_or_default();
                    title(out, format_args!("notes in segment {segment}"))?;
                }
            }
            let mut table = Table::new(out);
            table.heading(["  owner", "type", "size", "description"])?;
            for note in list.iter() {
                let note = note?;
                let r#type = known(note.type_name, "NT_", note.r#type);
                let (owner, size) = (format!("  {}", note.owner), note.size.to_string());
                table.row([owner, r#type, size, description(&note)])?;
            }
            table.end()?;
        }
        Ok(())
    }

    fn address(&self, address: u64) -> String {
        format!("{address:0digits$x}", digits = self.digits)
    }
}

/// An empty line, and one that says what follows.
fn title(out: &mut dyn Write, text: Arguments<'_>) -> Result<()> {
    writeln!(out)?;
    Ok(paint::title(out, text)?)
}

/// Program properties by name; of other notes the first bytes.
fn description(note: &Note<'_>) -> String {
    let property = |property: &Property| {
        let name = known(property.type_name, "GNU_PROPERTY_", property.r#type);
        let value = match (property.value, property.value_names.as_slice()) {
            (None, _) => return name,
            (Some(value), []) => format!("{value:#x}"),
            (_, names) => names_of(names, "GNU_PROPERTY_"),
        };
        format!("{name}: {value}")
    };
    match (&note.properties, note.description.0.get(..NOTE_BYTES)) {
        (Some(properties), _) => properties.iter().map(property).collect::<Vec<_>>().join(", "),
        (None, Some(bytes)) if bytes.len() < note.size => format!("{}...", Hex(bytes)),
        (None, _) => note.description.to_string(),
    }
}

/// A name without its prefix, or the number.
fn known(name: Option<&str>, prefix: &str, number: impl Display) -> String {
    match name {
        Some(name) => String::from(name.strip_prefix(prefix).unwrap_or(name)),
        None => number.to_string(),
    }
}

/// Names without their prefix, with blanks between.
fn names_of(names: &[&str], prefix: &str) -> String {
    let short: Vec<&str> =
        names.iter().map(|name| name.strip_prefix(prefix).unwrap_or(name)).collect();
    short.join(" ")
}

/// A symbol's name and version as linkers write it.
fn versioned(name: Printable<'_>, version: Option<Version<'_>>) -> String {
    match version {
        Some(Version { name: version, default: true, .. }) => {
            format!("{}@@{version}", name.readable())
        }
        Some(Version { name: version, default: false, .. }) => {
            format!("{}@{version}", name.readable())
        }
        None => name.readable().to_string(),
    }
}
