//! Versions of symbols (LSB, "Symbol Versioning"): the tables that say which version each dynamic symbol has.

use std::collections::HashMap;

use elf_core::names::{
    SHT_GNU_verdef, SHT_GNU_verneed, SHT_GNU_versym, VER_FLG_BASE, VERSYM_HIDDEN, VERSYM_VERSION,
};
use elf_core::{Error, ErrorKind, File, SectionHeader, StringTable, SymbolTable, table};
use serde::Serialize;

use crate::printable::Printable;

/// The version of a symbol.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Version<'a> {
    /// Its name.
    pub name: Printable<'a>,
    /// Whether a reference without version means this one: `name@@version`, not `name@version`.
    pub default: bool,
}

/// The versions of the symbols of one table.
#[derive(Debug)]
pub(super) struct Versions<'a> {
    /// By symbol: the index of a version, the highest bit set if it is not the default.
    indices: Vec<u16>,
    names: Names<'a>,
}

/// Versions by index: the name, and whether this file defines it.
type Names<'a> = HashMap<u16, (Printable<'a>, bool)>;

impl<'a> Versions<'a> {
    /// The versions of the symbols of `table`, if it has any.
    pub(super) fn of(file: &File<'a>, table: &SymbolTable<'a>) -> Result<Option<Self>, Error> {
        let find = |wanted| file.sections().iter().find(move |section| section.r#type == wanted);
        let Some(section) = find(SHT_GNU_versym).filter(|section| section.link == table.section())
        else {
            return Ok(None);
        };
        let big = file.encoding().is_big_endian();
        let data = file.section_data(&section)?;
        let indices = data.as_chunks::<2>().0.iter().map(|&bytes| u16_of(bytes, big)).collect();
        let mut names = HashMap::new();
        if let Some(section) = find(SHT_GNU_verdef) {
            definitions(&Records::of(file, &section)?, section.info, &mut names)?;
        }
        if let Some(section) = find(SHT_GNU_verneed) {
            requirements(&Records::of(file, &section)?, section.info, &mut names)?;
        }
        Ok(Some(Self { indices, names }))
    }

    /// The version of symbol `index`. Local and unversioned ones have none.
    pub(super) fn get(&self, index: u32, defined: bool) -> Option<Version<'a>> {
        let version = *self.indices.get(usize::try_from(index).ok()?)?;
        // a copy of another file's variable has a section here and its version there
        let (name, here) = *self.names.get(&(version & VERSYM_VERSION))?;
        Some(Version { name, default: defined && here && version & VERSYM_HIDDEN == 0 })
    }
}

/// A section whose records point at each other.
struct Records<'a> {
    data: &'a [u8],
    at: u64,
    names: StringTable<'a>,
    big: bool,
}

impl<'a> Records<'a> {
    fn of(file: &File<'a>, section: &SectionHeader) -> Result<Self, Error> {
        Ok(Self {
            data: file.section_data(section)?,
            at: section.offset,
            names: file.string_table(section.link, "sh_link")?,
            big: file.encoding().is_big_endian(),
        })
    }

    fn bytes<const N: usize>(&self, offset: u64) -> Result<[u8; N], Error> {
        let bytes = table::bytes(self.data, "version record", offset, N as u64)
            .ok()
            .and_then(|bytes| bytes.as_array());
        let outside =
            ErrorKind::Outside { what: "version record", count: 1, file: self.data.len() as u64 };
        bytes.copied().ok_or(Error { at: self.at.saturating_add(offset), kind: outside })
    }

    fn half(&self, offset: u64) -> Result<u16, Error> {
        Ok(u16_of(self.bytes(offset)?, self.big))
    }

    fn word(&self, offset: u64) -> Result<u64, Error> {
        let bytes = self.bytes(offset)?;
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }.into())
    }

    fn name(&self, offset: u64) -> Result<Printable<'a>, Error> {
        Ok(self.names.get(self.word(offset)? as u32)?.into())
    }
}

fn u16_of(bytes: [u8; 2], big: bool) -> u16 {
    if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

/// `Elf_Verdef` and the first `Elf_Verdaux` of each, which has the version's own name.
fn definitions<'a>(records: &Records<'a>, count: u32, names: &mut Names<'a>) -> Result<(), Error> {
    let mut at = 0u64;
    for _ in 0..count {
        let (flags, index) =
            (records.half(at.saturating_add(2))?, records.half(at.saturating_add(4))?);
        let auxiliary = at.saturating_add(records.word(at.saturating_add(12))?);
        if flags & VER_FLG_BASE == 0 {
            names.insert(index & VERSYM_VERSION, (records.name(auxiliary)?, true));
        }
        match records.word(at.saturating_add(16))? {
            0 => break,
            next => at = at.saturating_add(next),
        }
    }
    Ok(())
}

/// `Elf_Verneed`, a file each, and their `Elf_Vernaux`, a version each.
fn requirements<'a>(records: &Records<'a>, count: u32, names: &mut Names<'a>) -> Result<(), Error> {
    let mut at = 0u64;
    for _ in 0..count {
        let versions = records.half(at.saturating_add(2))?;
        let mut auxiliary = at.saturating_add(records.word(at.saturating_add(8))?);
        for _ in 0..versions {
            let index = records.half(auxiliary.saturating_add(6))?;
            names.insert(
                index & VERSYM_VERSION,
                (records.name(auxiliary.saturating_add(8))?, false),
            );
            match records.word(auxiliary.saturating_add(12))? {
                0 => break,
                next => auxiliary = auxiliary.saturating_add(next),
            }
        }
        match records.word(at.saturating_add(12))? {
            0 => break,
            next => at = at.saturating_add(next),
        }
    }
    Ok(())
}
