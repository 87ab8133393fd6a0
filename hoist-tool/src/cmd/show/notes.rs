//! Notes (gABI ch. 7, "Note Section"): who says what about the file.

use anyhow::{Context as _, Result};
use elf_core::names::{self, ET_CORE, PT_NOTE};
use elf_core::{File, Notes};
use serde::{Serialize, Serializer};

use super::sections::in_section;
use crate::printable::Printable;

/// Notes that stand together: in a section, or in a segment.
#[derive(Clone, Debug)]
pub struct NoteList<'a> {
    /// Index of the section.
    pub section: Option<u32>,
    /// Index of the segment.
    pub segment: Option<usize>,
    notes: Notes<'a>,
    machine: u16,
    core: bool,
}

/// A note.
#[derive(Debug, Serialize)]
pub struct Note<'a> {
    /// Who defines the type.
    pub owner: Printable<'a>,
    /// `n_type`.
    pub r#type: u32,
    /// `NT_..`.
    pub type_name: Option<&'static str>,
    /// Offset of the description in the file.
    pub offset: u64,
    /// Size of the description in bytes.
    pub size: usize,
    /// The description, as hexadecimal digits.
    pub description: Hex<'a>,
    /// The program properties, if that is what the note holds.
    pub properties: Option<Vec<Property>>,
}

/// A program property.
#[derive(Debug, Serialize)]
pub struct Property {
    /// `pr_type`.
    pub r#type: u32,
    /// `GNU_PROPERTY_..`.
    pub type_name: Option<&'static str>,
    /// Its value, if it is a number.
    pub value: Option<u64>,
    /// Names of its bits.
    pub value_names: Vec<&'static str>,
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The notes of all sections; in a file without sections, of all segments.
pub(super) fn all<'a>(file: &File<'a>) -> Result<Vec<NoteList<'a>>> {
    let (machine, core) = (file.header().machine, file.header().r#type == ET_CORE);
    let mut lists = Vec::new();
    for (index, section) in (0u32..).zip(file.sections()) {
        let notes = file.section_notes(&section).with_context(|| in_section(file, index))?;
        let list = |notes| NoteList { section: Some(index), segment: None, notes, machine, core };
        lists.extend(notes.map(list));
    }
    if !file.sections().is_empty() {
        return Ok(lists);
    }
    for (index, segment) in file.segments().into_iter().enumerate() {
        if segment.r#type == PT_NOTE {
            let notes = file.segment_notes(&segment).with_context(|| format!("segment {index}"))?;
            let list =
                |notes| NoteList { section: None, segment: Some(index), notes, machine, core };
            lists.extend(notes.map(list));
        }
    }
    Ok(lists)
}

impl<'a> NoteList<'a> {
    /// The notes in order. One that cannot be read is the last.
    pub fn iter(&self) -> impl Iterator<Item = Result<Note<'a>>> + use<'a> {
        let (machine, core) = (self.machine, self.core);
        self.notes.clone().map(move |note| {
            let note = note?;
            let properties = note.properties().map(|properties| {
                let row = |property| Ok(property_of(machine, &property?));
                properties.map(row).collect::<Result<_>>()
            });
            Ok(Note {
                owner: note.owner.into(),
                r#type: note.r#type,
                type_name: names::note_type(note.owner.as_bytes(), core, note.r#type),
                offset: note.data_at,
                size: note.data.len(),
                description: Hex(note.data),
                properties: properties.transpose()?,
            })
        })
    }
}

fn property_of(machine: u16, property: &elf_core::Property<'_>) -> Property {
    let value = property.value();
    let flags = names::property_flags(machine, property.r#type);
    Property {
        r#type: property.r#type,
        type_name: names::property_type(machine, property.r#type),
        value,
        value_names: flags.names(value.unwrap_or(0)).collect(),
    }
}
