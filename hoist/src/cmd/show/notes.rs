//! Notes (gABI ch. 7, "Note Section"): who says what about the file.

use elf_core::names::{self, ET_CORE, PT_NOTE, SHT_NOTE};
use elf_core::{Error, ErrorKind, File};
use serde::{Serialize, Serializer};

use crate::printable::Printable;

/// Bytes that hold notes: a section's, or a segment's.
#[derive(Clone, Copy, Debug)]
pub struct NoteBytes<'a> {
    /// Index of the section or segment.
    pub index: usize,
    /// Whether it is a section.
    pub is_section: bool,
    data: &'a [u8],
    at: u64,
    alignment: u64,
    big: bool,
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

/// The sections of notes; in a file without sections, the segments.
pub(super) fn all<'a>(file: &File<'a>) -> Result<Vec<NoteBytes<'a>>, Error> {
    let (big, core) = (file.encoding().is_big_endian(), file.header().r#type == ET_CORE);
    let sections =
        file.sections().iter().enumerate().filter(|(_, section)| section.r#type == SHT_NOTE);
    let segments =
        file.segments().iter().enumerate().filter(|(_, segment)| segment.r#type == PT_NOTE);
    if !file.sections().is_empty() {
        return sections
            .map(|(index, section)| {
                let (at, alignment) = (section.offset, section.alignment);
                Ok(NoteBytes {
                    index,
                    is_section: true,
                    data: file.section_data(&section)?,
                    at,
                    alignment,
                    big,
                    core,
                })
            })
            .collect();
    }
    segments
        .map(|(index, segment)| {
            let (at, alignment) = (segment.offset, segment.alignment);
            Ok(NoteBytes {
                index,
                is_section: false,
                data: file.segment_data(&segment)?,
                at,
                alignment,
                big,
                core,
            })
        })
        .collect()
}

impl<'a> NoteBytes<'a> {
    /// The notes in order. One that does not fit is an error, and the last.
    pub fn iter(&self) -> impl Iterator<Item = Result<Note<'a>, Error>> + use<'a> {
        let whole = *self;
        let mut next = 0usize;
        core::iter::from_fn(move || {
            if next >= whole.data.len() {
                return None;
            }
            let at = next;
            let note = whole.note(at);
            next = note.as_ref().map_or(usize::MAX, |(_, end)| *end);
            let outside =
                ErrorKind::Outside { what: "note", count: 1, file: whole.data.len() as u64 };
            let error = Error { at: whole.at.saturating_add(at as u64), kind: outside };
            Some(note.map(|(note, _)| note).ok_or(error))
        })
    }

    /// The note at this offset and the offset behind it.
    fn note(&self, at: usize) -> Option<(Note<'a>, usize)> {
        // 4 but for GNU properties of 64-bit files, whatever the alignment says
        let padded = |size: usize| match self.alignment {
            8 => size.checked_next_multiple_of(8),
            _ => size.checked_next_multiple_of(4),
        };
        let (header, rest) = self.data.get(at..)?.split_first_chunk::<12>()?;
        let word = |index: usize| {
            let bytes = *header.as_chunks::<4>().0.get(index)?;
            Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
        };
        let (name_size, size, r#type) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let owner = rest.get(..name_size)?;
        let owner = owner.split(|&byte| byte == 0).next().unwrap_or(owner);
        let start = padded(at.checked_add(12)?.checked_add(name_size)?)?;
        let end = start.checked_add(size)?;
        let description = Hex(self.data.get(start..end)?);
        let type_name = names::note_type(owner, self.core, r#type);
        let offset = self.at.saturating_add(start as u64);
        Some((
            Note { owner: owner.into(), r#type, type_name, offset, size, description },
            padded(end)?,
        ))
    }
}
