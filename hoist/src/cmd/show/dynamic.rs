//! The dynamic section, by section or by segment.

use elf_core::names::{
    self, DT_AUDIT, DT_AUXILIARY, DT_CONFIG, DT_DEPAUDIT, DT_FILTER, DT_FLAGS, DT_FLAGS_1,
    DT_NEEDED, DT_NULL, DT_PLTREL, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB,
    PT_DYNAMIC, PT_LOAD, SHT_DYNAMIC,
};
use elf_core::{Dynamic, Error, File, StringTable, Table, table};
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

/// The entries before `DT_NULL`.
///
/// # Errors
/// If the section or segment leaves the file, or a text is not in the string table.
pub(super) fn rows<'a>(file: &File<'a>) -> Result<Vec<DynamicRow<'a>>, Error> {
    let Some((entries, strings)) = find(file)? else { return Ok(Vec::new()) };
    let used = entries.iter().take_while(|entry| entry.tag != DT_NULL.cast_signed());
    used.map(|entry| row(file.header().machine, entry, &strings)).collect()
}

fn row<'a>(
    machine: u16,
    entry: Dynamic,
    strings: &StringTable<'a>,
) -> Result<DynamicRow<'a>, Error> {
    let Dynamic { tag, value } = entry;
    let text = match tag.cast_unsigned() {
        DT_NEEDED | DT_SONAME | DT_RPATH | DT_RUNPATH | DT_AUXILIARY | DT_FILTER | DT_CONFIG
        | DT_AUDIT | DT_DEPAUDIT => {
            Some(strings.get(u32::try_from(value).unwrap_or(u32::MAX))?.into())
        }
        _ => None,
    };
    let value_names = match tag.cast_unsigned() {
        DT_FLAGS => names::DF.names(value).collect(),
        DT_FLAGS_1 => names::DF_1.names(value).collect(),
        DT_PLTREL => names::dynamic_tag(machine, value).into_iter().collect(),
        _ => Vec::new(),
    };
    // 32-bit tags are signed: those of the processors' range have their sign in the way
    let number = if tag < 0 { tag.cast_unsigned() & 0xffff_ffff } else { tag.cast_unsigned() };
    Ok(DynamicRow { tag, tag_name: names::dynamic_tag(machine, number), value, text, value_names })
}

type Found<'a> = Option<(Table<'a, Dynamic>, StringTable<'a>)>;

/// The section; in a file without sections, what the segment says.
fn find<'a>(file: &File<'a>) -> Result<Found<'a>, Error> {
    if !file.sections().is_empty() {
        let section = file.sections().iter().find(|section| section.r#type == SHT_DYNAMIC);
        let read =
            |section| Ok((file.rows(&section)?, file.string_table(section.link, "sh_link")?));
        return section.map(read).transpose();
    }
    let Some(segment) = file.segments().iter().find(|segment| segment.r#type == PT_DYNAMIC) else {
        return Ok(None);
    };
    let entry = if file.encoding().is_64() { 16 } else { 8 };
    let entries: Table<'a, Dynamic> =
        Table::parse(file.bytes(), file.encoding(), segment.offset, segment.file_size / entry)?;
    let value = |tag: u64| {
        entries.iter().find(|entry| entry.tag == tag.cast_signed()).map(|entry| entry.value)
    };
    let loaded = |address: u64| {
        let mut loads = file.segments().iter().filter(|segment| segment.r#type == PT_LOAD);
        let load = loads
            .find(|load| address.checked_sub(load.address).is_some_and(|at| at < load.file_size))?;
        Some(address.wrapping_sub(load.address).wrapping_add(load.offset))
    };
    let strings = match value(DT_STRTAB).and_then(loaded).zip(value(DT_STRSZ)) {
        Some((at, size)) => {
            StringTable::new(table::bytes(file.bytes(), "dynamic string table", at, size)?, at)
        }
        None => StringTable::default(),
    };
    Ok(Some((entries, strings)))
}
