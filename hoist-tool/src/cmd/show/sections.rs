//! Sections in words.

use crate::explain::section_name;
use crate::printable::Printable;

/// A section by number and, if it has one, name.
pub(super) fn in_section(file: &elf_core::File<'_>, index: u32) -> String {
    match section_name(file, index).filter(|name| !name.is_empty()) {
        Some(name) => format!("section {}", Printable::from(name)),
        None => format!("section {index}"),
    }
}
