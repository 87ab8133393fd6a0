//! How much a load may take, unless its user says otherwise. What a file of few bytes asks for is not believed without bounds.

use elf_core::{File, SectionFlags};
use elf_layout::Layout;
use elf_layout::archives::names_limit;

use crate::Host;
use crate::error::Error;

/// Bytes of an image of so many bytes of files. What is zero and never touched costs address space only.
pub(crate) const fn image_limit(files: u64) -> u64 {
    files.saturating_mul(64).saturating_add(16 << 30)
}

/// Refuses objects whose symbols have too long names.
pub(crate) fn check_names(object: usize, file: &File<'_>) -> Result<(), Error> {
    // a damaged table is an error of the layout, which says more
    let Ok(Some(table)) = file.symbol_table() else { return Ok(()) };
    let limit = names_limit(file.bytes().len() as u64);
    table.check_names(limit).map_err(|error| Error::Elf { object, error })
}

/// Refuses an image that is larger than `limit`, or than its objects explain.
pub(crate) fn check_image(layout: &Layout<'_, '_, Host>, limit: Option<u64>) -> Result<(), Error> {
    let objects = layout.files().iter().fold(0, |sum, file| file.bytes().len() as u64 + sum);
    let limit = limit.unwrap_or(image_limit(objects));
    let size = layout.size();
    if size <= limit {
        return Ok(());
    }
    let loaded = layout.files().iter().enumerate().flat_map(|(object, file)| {
        let sections = (0u32..).zip(file.sections());
        let loaded = sections.filter(|(_, header)| header.flags.contains(SectionFlags::ALLOC));
        loaded.map(move |(section, header)| (header.size, object, section))
    });
    let (largest, object, section) = loaded.max_by_key(|row| row.0).unwrap_or_default();
    Err(Error::TooLarge { size, limit, object, section, name: Box::default(), largest })
}
