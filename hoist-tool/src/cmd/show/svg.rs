//! An ELF file as strips.

use anyhow::Result;
use elf_core::names::{PT_LOAD, SHT_NOBITS, SHT_NULL};
use elf_core::{File, ProgramHeader, SectionFlags, SectionHeader, SegmentFlags};

use super::Dump;
use crate::picture::{Block, Kind, Strip};

/// The bytes of a file, then the memory of each of its segments that are loaded.
///
/// # Errors
/// If a name of a section cannot be read.
pub(super) fn strips(label: &str, size: u64, dump: &Dump<'_>) -> Result<Vec<Strip>> {
    let file = &dump.file;
    let sections = named(file, dump)?;
    let mut strips = vec![Strip {
        title: format!("{label}, {size:#x} bytes"),
        start: 0,
        size,
        blocks: in_file(file, &sections),
        ranges: Vec::new(),
    }];
    let rows = dump.segments().collect::<Result<Vec<_>>>()?;
    let segments: Vec<ProgramHeader> = file.segments().into_iter().collect();
    for (index, segment) in segments.iter().enumerate() {
        if segment.r#type != PT_LOAD || segment.memory_size == 0 {
            continue;
        }
        let (start, size) = (segment.address, segment.memory_size);
        let end = start.saturating_add(size);
        let inside = |header: &SectionHeader| {
            header.flags.contains(SectionFlags::ALLOC)
                // thread-local zeros have addresses and no room
                && !(header.flags.contains(SectionFlags::TLS) && header.r#type == SHT_NOBITS)
                && (start..end).contains(&header.address)
        };
        let mut blocks: Vec<Block> = (sections.iter())
            .filter(|(header, _)| inside(header))
            .map(|(header, name)| Block {
                start: header.address,
                size: header.size,
                kind: kind(header),
                name: name.clone(),
            })
            .collect();
        if blocks.is_empty() {
            blocks = contents(segment);
        }
        let others = segments.iter().zip(&rows).filter(|(other, _)| {
            other.r#type != PT_LOAD
                && other.memory_size > 0
                && (start..end).contains(&other.address)
        });
        let ranges = others.map(|(other, row)| Block {
            start: other.address,
            size: other.memory_size,
            kind: Kind::Header,
            name: row.type_name.map_or_else(|| format!("{:#x}", row.r#type), String::from),
        });
        strips.push(Strip {
            title: format!("segment {index}, {}, {size:#x} bytes", letters(segment.flags)),
            start,
            size,
            blocks,
            ranges: ranges.collect(),
        });
    }
    Ok(strips)
}

/// Sections with their names.
fn named(file: &File<'_>, dump: &Dump<'_>) -> Result<Vec<(SectionHeader, String)>> {
    let headers = file.sections().into_iter();
    let rows =
        headers.zip(dump.sections()).map(|(header, row)| Ok((header, row?.name.to_string())));
    rows.filter(|row| !matches!(row, Ok((header, _)) if header.r#type == SHT_NULL)).collect()
}

/// What is where in the file itself.
fn in_file(file: &File<'_>, sections: &[(SectionHeader, String)]) -> Vec<Block> {
    let header = file.header();
    let table = |start, count: usize, size: u16, name: &str| Block {
        start,
        size: (count as u64).saturating_mul(size.into()),
        kind: Kind::Header,
        name: name.to_owned(),
    };
    let mut blocks = vec![
        table(0, 1, header.header_size, "ELF header"),
        table(
            header.program_headers,
            file.segments().len(),
            header.program_header_size,
            "program headers",
        ),
        table(
            header.section_headers,
            file.sections().len(),
            header.section_header_size,
            "section headers",
        ),
    ];
    if sections.is_empty() {
        let loaded = file.segments().into_iter().filter(|segment| segment.r#type == PT_LOAD);
        blocks.extend(loaded.map(|segment| Block {
            start: segment.offset,
            size: segment.file_size,
            kind: of_flags(segment.flags),
            name: letters(segment.flags),
        }));
    }
    let stored = sections.iter().filter(|(header, _)| header.r#type != SHT_NOBITS);
    blocks.extend(stored.map(|(header, name)| Block {
        start: header.offset,
        size: header.size,
        kind: kind(header),
        name: name.clone(),
    }));
    blocks
}

/// A segment without sections: what the file has of it, and zeros.
fn contents(segment: &ProgramHeader) -> Vec<Block> {
    let stored = segment.file_size.min(segment.memory_size);
    let block = |start, size, kind, name: &str| Block { start, size, kind, name: name.to_owned() };
    vec![
        block(segment.address, stored, of_flags(segment.flags), "contents"),
        block(
            segment.address.saturating_add(stored),
            segment.memory_size.saturating_sub(stored),
            Kind::Zeros,
            "zeros",
        ),
    ]
}

pub(super) fn kind(header: &SectionHeader) -> Kind {
    match header.flags {
        flags if !flags.contains(SectionFlags::ALLOC) => Kind::NotLoaded,
        _ if header.r#type == SHT_NOBITS => Kind::Zeros,
        flags if flags.contains(SectionFlags::EXECINSTR) => Kind::Code,
        flags if flags.contains(SectionFlags::WRITE) => Kind::Data,
        _ => Kind::ReadOnly,
    }
}

fn of_flags(flags: SegmentFlags) -> Kind {
    match flags {
        flags if flags.contains(SegmentFlags::EXECUTE) => Kind::Code,
        flags if flags.contains(SegmentFlags::WRITE) => Kind::Data,
        _ => Kind::ReadOnly,
    }
}

pub(super) fn letters(flags: SegmentFlags) -> String {
    let letters =
        [(SegmentFlags::READ, 'r'), (SegmentFlags::WRITE, 'w'), (SegmentFlags::EXECUTE, 'x')];
    letters.map(|(flag, letter)| if flags.contains(flag) { letter } else { '-' }).iter().collect()
}
