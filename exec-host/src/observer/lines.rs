//! Lines of source that code was compiled from: DWARF's line tables (DWARF 5, section 6.2).

use elf_core::{File, Name, SectionFlags};
use gimli::{Dwarf, EndianSlice, LittleEndian};
use std::path::PathBuf;
use std::sync::Arc;

/// Where code from one address on comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) address: u64,
    /// From 1 on; 0 if it comes from no line.
    pub(super) number: u32,
    /// Tells blocks of one line apart.
    pub(super) discriminator: u32,
    pub(super) file: Arc<str>,
}

type Bytes<'o> = EndianSlice<'o, LittleEndian>;

/// Adds the lines of an object whose sections are relocated. Compressed sections are not read; nor is what follows an error.
pub(super) fn lines(object: &[u8], lines: &mut Vec<Line>) {
    let Ok(file) = File::parse(object) else { return };
    let section = |id: gimli::SectionId| -> Result<Bytes<'_>, gimli::Error> {
        let is_it = |header: &elf_core::SectionHeader| {
            file.section_name(header) == Ok(Name::from(id.name()))
                && !header.flags.contains(SectionFlags::COMPRESSED)
        };
        let header = file.sections().iter().find(is_it);
        let data = header.and_then(|header| file.section_data(&header).ok());
        Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
    };
    let Ok(dwarf) = Dwarf::load(section) else { return };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            // the lines before an error are right
            let _ = lines_of(&dwarf, &unit, lines);
        }
    }
}

fn lines_of<'o>(
    dwarf: &Dwarf<Bytes<'o>>,
    unit: &gimli::Unit<Bytes<'o>>,
    lines: &mut Vec<Line>,
) -> Result<(), gimli::Error> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let mut files: Vec<Option<Arc<str>>> = Vec::new();
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row()? {
        if row.end_sequence() {
            continue;
        }
        let index = usize::try_from(row.file_index()).unwrap_or(usize::MAX);
        let file = match files.get(index).cloned().flatten() {
            Some(file) => file,
            None => {
                let file = file_of(dwarf, unit, header, row);
                // a table may claim any number
                if index < 1 << 16 {
                    files.resize(files.len().max(index + 1), None);
                    if let Some(place) = files.get_mut(index) {
                        *place = Some(Arc::clone(&file));
                    }
                }
                file
            }
        };
        lines.push(Line {
            address: row.address(),
            number: row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(u32::MAX)),
            discriminator: u32::try_from(row.discriminator()).unwrap_or(u32::MAX),
            file,
        });
    }
    Ok(())
}

/// The path of a row's file, from the folder in which it was compiled.
fn file_of<'o>(
    dwarf: &Dwarf<Bytes<'o>>,
    unit: &gimli::Unit<Bytes<'o>>,
    header: &gimli::LineProgramHeader<Bytes<'o>>,
    row: &gimli::LineRow,
) -> Arc<str> {
    let text = |value| {
        let bytes = dwarf.attr_string(unit, value).ok()?;
        Some(bytes.to_string_lossy().into_owned())
    };
    let mut path = PathBuf::new();
    if let Some(folder) = unit.comp_dir {
        path.push(&*folder.to_string_lossy());
    }
    if let Some(file) = row.file(header) {
        path.extend(file.directory(header).and_then(text));
        path.extend(text(file.path_name()));
    }
    path.to_string_lossy().into()
}
