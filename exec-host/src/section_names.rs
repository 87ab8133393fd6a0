//! Names of sections, for those who ask what they begin with.

use elf_core::{File, SectionHeader};

/// The section names from that of a section on: nobody has to look for its end.
pub(crate) fn names_from<'a>(file: &File<'a>, header: &SectionHeader) -> &'a [u8] {
    file.section_names().as_bytes().get(header.name as usize..).unwrap_or_default()
}
