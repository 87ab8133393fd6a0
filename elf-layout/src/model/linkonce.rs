//! Sections that are there once, by their names.

use crate::model::features::LINKER_DEFINED;
use elf_core::names::{SHT_CREL, SHT_GROUP, SHT_REL, SHT_RELA};
use elf_core::{File, SectionFlags, SectionHeader};

/// Whether a section is a group of its own, whose signature is its name.
pub(crate) fn is_linkonce(file: &File<'_>, section: &SectionHeader) -> bool {
    // the names of most sections are not read
    let is_other = matches!(section.r#type, SHT_GROUP | SHT_RELA | SHT_REL | SHT_CREL);
    if !LINKER_DEFINED || is_other || section.flags.contains(SectionFlags::GROUP) {
        return false;
    }
    let name = usize::try_from(section.name).unwrap_or(usize::MAX);
    let name = file.section_names().as_bytes().get(name..).unwrap_or_default();
    name.first_chunk() == Some(b".gnu.linkonce.")
}
