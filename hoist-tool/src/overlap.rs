//! Whether a file overlaps itself: no compiler writes an object two parts of which share bytes.

use core::fmt::{self, Display};
use core::ops::Range;

use anyhow::{Result, bail};
use elf_core::names::{SHT_CREL, SHT_REL, SHT_RELA};
use elf_core::{File, SectionHeader};

use crate::explain::section_name;
use crate::printable::Printable;

/// A part of a file that has bytes of its own.
#[derive(Clone, Copy)]
enum Part {
    Header,
    SectionHeaders,
    Section(u32),
}

/// Checks that the header, the section headers and the contents of all sections lie apart. `look` sees all section headers.
///
/// # Errors
/// If two of them share bytes: which, and where.
pub fn check(file: &File<'_>, mut look: impl FnMut(&SectionHeader)) -> Result<()> {
    let header = file.header();
    let table = file.sections().len() as u64 * u64::from(header.section_header_size);
    let mut parts = Vec::with_capacity(file.sections().len() + 2);
    parts.push((0..u64::from(header.header_size), Part::Header));
    // compilers write relocations behind all else, each kind by rising offset: what is in two runs is sorted at once
    let mut relocations = Vec::with_capacity(file.sections().len() / 2);
    let mut index = 0u32;
    file.sections().iter().for_each(|section| {
        look(&section);
        let end = section.offset.saturating_add(section.file_size());
        let is_relocations = matches!(section.r#type, SHT_RELA | SHT_REL | SHT_CREL);
        let part = (section.offset..end, Part::Section(index));
        if is_relocations {
            relocations.push(part)
        } else {
            parts.push(part)
        }
        index = index.wrapping_add(1);
    });
    parts.append(&mut relocations);
    parts.push((
        header.section_headers..header.section_headers.saturating_add(table),
        Part::SectionHeaders,
    ));
    parts.retain(|(range, _)| !range.is_empty());
    parts.sort_by_key(|(range, _)| range.start);
    let overlap = parts.array_windows().find(|[(first, _), (second, _)]| second.start < first.end);
    if let Some([(first, before), (second, after)]) = overlap {
        let Range { start, end } = second.start..first.end.min(second.end);
        let (before, after) = (Named(file, *before), Named(file, *after));
        bail!("{before} and {after} share the bytes at offsets {start:#x} to {end:#x}");
    }
    Ok(())
}

/// What to call a part.
struct Named<'f, 'a>(&'f File<'a>, Part);

impl Display for Named<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Part::Header => f.write_str("the file header"),
            Part::SectionHeaders => f.write_str("the section headers"),
            Part::Section(index) => {
                match section_name(self.0, index).filter(|name| !name.is_empty()) {
                    Some(name) => write!(f, "section {}", Printable::from(name)),
                    None => write!(f, "section {index}"),
                }
            }
        }
    }
}
