//! Sections that are there once, by their names.

use crate::model::features::LINKER_DEFINED;
use crate::model::relocations::is_relocations;
use elf_core::names::SHT_GROUP;
use elf_core::{File, SectionFlags, SectionHeader};

/// Whether a section is a group of its own, whose signature is its name.
pub(crate) fn is_linkonce(file: &File<'_>, section: &SectionHeader) -> bool {
    // the names of most sections are not read
    let is_alone = section.r#type != SHT_GROUP && !section.flags.contains(SectionFlags::GROUP);
    if !LINKER_DEFINED || !is_alone || is_relocations(section) {
        return false;
    }
    let name = usize::try_from(section.name).unwrap_or(usize::MAX);
    let name = file.section_names().as_bytes().get(name..).unwrap_or_default();
    name.starts_with(b".gnu.linkonce.")
}
