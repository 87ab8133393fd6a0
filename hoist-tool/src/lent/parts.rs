//! The parts of a file that commands look at: of an ELF file all but code and debug information, of an object code too, which a layout
//! depends on, of others all.

use core::ops::Range;

use elf_core::names::{EM_CUDA, ET_REL, PT_LOAD, SHT_NOBITS, SHT_PROGBITS};
use elf_core::{File, FileHeader, SectionFlags, SectionHeader, Table};

use crate::form::Form;

/// What tells the kind of a file, and where an ELF file has its tables.
const HEAD: u64 = 1 << 12;
/// Parts with less than this between them are one.
const GAP: u64 = 1 << 16;

/// Step number `step` of reading a file, with the parts of those before in their places: none after the last.
pub(super) fn next(bytes: &[u8], step: usize) -> Option<Vec<Range<u64>>> {
    let size = bytes.len() as u64;
    let one = |range: Range<u64>| core::iter::once(range).collect();
    let rest = || one(HEAD.min(size)..size);
    if step == 0 {
        return Some(one(0..HEAD.min(size)));
    }
    // archives are streams, of which those who take them for something else see what they begin with
    if Form::of(bytes) != Form::Plain {
        return None;
    }
    let Some(tables) = Tables::of(bytes) else { return (step == 1).then(rest) };
    match step {
        1 => Some(merged(bytes, vec![tables.first])),
        2 => Some(merged(bytes, vec![tables.sections, tables.segments])),
        3 => Some(File::parse(bytes).map_or_else(|_| rest(), |file| descriptions(&file))),
        4 => Some(contents(&File::parse(bytes).ok()?)),
        _ => None,
    }
}

/// Where an ELF file has its tables.
struct Tables {
    /// The first section header, which has the numbers of both if they are large.
    first: Range<u64>,
    sections: Range<u64>,
    segments: Range<u64>,
}

impl Tables {
    /// Those of a file that is worth reading in parts: one with sections, and no cubin.
    fn of(bytes: &[u8]) -> Option<Self> {
        let encoding = File::parse_segments(bytes).ok()?.encoding();
        let header = Table::<FileHeader>::parse(bytes, encoding, 0, 1).ok()?.get(0)?;
        let at = header.section_headers;
        let first = Table::<SectionHeader>::parse(bytes, encoding, at, 1).ok()?.get(0)?;
        if header.machine == EM_CUDA || at == 0 {
            return None;
        }
        let sections = match header.section_header_count {
            0 => first.size,
            count => count.into(),
        };
        let segments = match header.program_header_count {
            u16::MAX => first.info,
            count => count.into(),
        };
        let rows = |at: u64, count: u64, size: u16| {
            at..at.saturating_add(count.saturating_mul(size.into()))
        };
        Some(Self {
            first: rows(at, 1, header.section_header_size),
            sections: rows(at, sections, header.section_header_size),
            segments: rows(header.program_headers, segments.into(), header.program_header_size),
        })
    }
}

/// What describes the file: all sections but those of the program, and what segments lead to without them.
fn descriptions(file: &File<'_>) -> Vec<Range<u64>> {
    let sections = file.sections().into_iter();
    let sections =
        sections.filter(|one| !matches!(one.r#type, SHT_PROGBITS | SHT_NOBITS)).map(range);
    let segments = file.segments().into_iter().filter(|one| one.r#type != PT_LOAD);
    let segments = segments.map(|one| one.offset..one.offset.saturating_add(one.file_size));
    merged(file.bytes(), sections.chain(segments).collect())
}

/// What the program has, but debug information, and code that is linked.
fn contents(file: &File<'_>) -> Vec<Range<u64>> {
    let is_linked = file.header().r#type != ET_REL;
    let is_left = |section: &SectionHeader| {
        // one whose name cannot be read is looked at
        let name = file.section_name(section).unwrap_or_default();
        let starts_with = |start: &[u8]| name.as_bytes().starts_with(start);
        is_linked && section.flags.contains(SectionFlags::EXECINSTR) && starts_with(b".text")
            || starts_with(b".debug")
            || starts_with(b".zdebug")
    };
    let sections = file.sections().into_iter();
    let parts = sections.filter(|one| one.r#type == SHT_PROGBITS && !is_left(one)).map(range);
    merged(file.bytes(), parts.collect())
}

fn range(section: SectionHeader) -> Range<u64> {
    section.offset..section.offset.saturating_add(section.size)
}

/// As much of these parts as the file has, in order, and those that are near each other as one.
fn merged(bytes: &[u8], mut parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let size = bytes.len() as u64;
    for part in &mut parts {
        *part = part.start.min(size)..part.end.min(size);
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| part.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            Some(last) if part.start <= last.end.saturating_add(GAP) => {
                last.end = last.end.max(part.end);
            }
            _ => merged.push(part),
        }
    }
    merged
}
