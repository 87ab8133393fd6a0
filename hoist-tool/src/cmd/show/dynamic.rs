//! The dynamic section.

use elf_core::names::{self, DT_FLAGS, DT_FLAGS_1, DT_PLTREL};
use elf_core::{Dynamic, DynamicSection, Error, File};
use serde::Serialize;

use crate::printable::Printable;

/// An entry of the dynamic section.
#[derive(Debug, Serialize)]
pub struct DynamicRow<'a> {
    /// `d_tag`.
    pub tag: i64,
    /// `DT_..`.
    pub tag_name: Option<&'static str>,
    /// `d_val` or `d_ptr`.
    pub value: u64,
    /// The text that the value stands for, if the tag is one of those.
    pub text: Option<Printable<'a>>,
    /// `DF_..` or `DF_1_..`, if the value is such flags; `DT_REL` or `DT_RELA` of `DT_PLTREL`.
    pub value_names: Vec<&'static str>,
}

/// The entries before `DT_NULL`: of the section or, in a file without sections, of the segment.
///
/// # Errors
/// If the section or segment leaves the file, or a text is not in the string table.
pub(super) fn rows<'a>(file: &File<'a>) -> Result<Vec<DynamicRow<'a>>, Error> {
    let Some(dynamic) = find(file)? else { return Ok(Vec::new()) };
    dynamic.entries().iter().map(|entry| row(file.header().machine, &entry, &dynamic)).collect()
}

/// In a file that has sections, one without bytes is really without: such a file describes another one.
pub(super) fn find<'a>(file: &File<'a>) -> Result<Option<DynamicSection<'a>>, Error> {
    if file.sections().is_empty() { file.dynamic_by_segment() } else { file.dynamic_by_section() }
}

fn row<'a>(
    machine: u16,
    entry: &Dynamic,
    dynamic: &DynamicSection<'a>,
) -> Result<DynamicRow<'a>, Error> {
    let &Dynamic { tag, value } = entry;
    let value_names = match tag.cast_unsigned() {
        DT_FLAGS => names::DF.names(value).collect(),
        DT_FLAGS_1 => names::DF_1.names(value).collect(),
        DT_PLTREL => names::dynamic_tag(machine, value).into_iter().collect(),
        _ => Vec::new(),
    };
    Ok(DynamicRow {
        tag,
        tag_name: names::dynamic_tag(machine, tag.cast_unsigned()),
        value,
        text: dynamic.text(entry)?.map(Printable::from),
        value_names,
    })
}
