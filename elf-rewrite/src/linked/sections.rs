//! Section headers of the new file, in the order of their addresses, and what counts them.

use std::collections::BTreeMap;

use elf_core::SectionFlags;
use elf_core::names::{SHF_ALLOC, SHF_INFO_LINK, SHT_NOBITS, SHT_PROGBITS, SHT_REL, SHT_RELA};
use elf_core::raw64::Shdr;
use zerocopy::byteorder::LE;

use super::resize::Resizes;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};

/// The name of a new section, if none was given.
const NAME: &str = ".moved";
/// What a new section is aligned to.
pub(super) const ALIGNMENT: u64 = 16;

/// Where a section is, and what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Span {
    /// Where nothing is known yet of the offset.
    pub(super) const fn new(address: u64, size: u64) -> Self {
        Self { address, offset: 0, size }
    }
}

/// The section headers of the new file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) rows: Vec<Shdr<LE>>,
    /// Section names with one more, and the row that says where they are.
    pub(super) names: Option<(usize, Vec<u8>)>,
    /// The name of the new section.
    pub(super) fresh: Option<(u16, String)>,
    /// The new index of each section.
    indexes: Vec<u16>,
    /// The new addresses of sections that move.
    addresses: BTreeMap<usize, u64>,
}

impl Table {
    /// The new index of a section.
    pub(super) fn index(&self, old: u16) -> u16 {
        self.indexes.get(usize::from(old)).copied().unwrap_or(old)
    }

    /// The new address of a section, if that is another one.
    pub(super) fn address(&self, old: u16) -> Option<u64> {
        self.addresses.get(&usize::from(old)).copied()
    }

    /// Whether symbols have other indexes of sections, or addresses, than before.
    pub(super) fn is_other(&self) -> bool {
        !self.addresses.is_empty() || self.fresh.is_some()
    }
}

/// The headers, where `moved` says of some sections where they are, and a fresh one has the regions that move without theirs.
pub(super) fn table(
    elf: &Elf<'_>,
    moved: &BTreeMap<usize, Span>,
    fresh: Option<Span>,
    resizes: &Resizes,
    names: &[String],
) -> Result<Table> {
    let mut rows: Vec<(Option<usize>, Shdr<LE>)> = Vec::new();
    let mut away = Vec::new();
    let mut addresses = BTreeMap::new();
    for (index, section) in elf.sections.iter().enumerate() {
        let mut row = *section;
        // the offset of what has no bytes in the file is where its segment's bytes end
        let is_absent = section.sh_flags.get() & SHF_ALLOC != 0
            && (section.sh_type == SHT_NOBITS || section.sh_size.get() == 0);
        let offset = section.sh_offset.get();
        let shifted = if is_absent { resizes.end_shifted(offset) } else { resizes.shifted(offset) };
        row.sh_offset = shifted.into();
        let Some(span) = moved.get(&index) else {
            rows.push((Some(index), row));
            continue;
        };
        (row.sh_offset, row.sh_size) = (span.offset.into(), span.size.into());
        if section.sh_addr == span.address {
            rows.push((Some(index), row));
        } else {
            row.sh_addr = span.address.into();
            addresses.insert(index, span.address);
            away.push((Some(index), row));
        }
    }
    let (mut strings, mut name) = (None, None);
    if let Some(span) = fresh {
        let (sh_name, text, grown) = named(elf, names)?;
        (strings, name) = (grown, Some(text));
        let row = Shdr {
            sh_name: sh_name.into(),
            sh_type: SHT_PROGBITS.into(),
            sh_flags: SHF_ALLOC.into(),
            sh_addr: span.address.into(),
            sh_offset: span.offset.into(),
            sh_size: span.size.into(),
            sh_link: 0.into(),
            sh_info: 0.into(),
            sh_addralign: ALIGNMENT.into(),
            sh_entsize: 0.into(),
        };
        away.push((None, row));
    }
    away.sort_by_key(|(_, row)| row.sh_addr.get());
    for (index, row) in away {
        let is_before = |(_, other): &(Option<usize>, Shdr<LE>)| {
            other.sh_flags.get() & SHF_ALLOC != 0 && other.sh_addr.get() < row.sh_addr.get()
        };
        // the first is no section
        let at = rows.iter().rposition(is_before).unwrap_or(0).saturating_add(1);
        rows.insert(at.min(rows.len()), (index, row));
    }
    numbered(elf, rows, addresses, name, strings)
}

/// Rows whose numbers of other sections are those of the new table.
fn numbered(
    elf: &Elf<'_>,
    rows: Vec<(Option<usize>, Shdr<LE>)>,
    addresses: BTreeMap<usize, u64>,
    name: Option<String>,
    strings: Option<Vec<u8>>,
) -> Result<Table> {
    let too_many = |_| Error::new(0, ErrorKind::TooManyHeaders);
    let mut indexes = vec![0_u16; elf.sections.len()];
    let mut fresh = None;
    for (new, (old, _)) in rows.iter().enumerate() {
        let new = u16::try_from(new).map_err(too_many)?;
        match old {
            Some(old) => indexes.get_mut(*old).into_iter().for_each(|index| *index = new),
            None => fresh = name.clone().map(|name| (new, name)),
        }
    }
    let index = |old: u32| {
        let new = usize::try_from(old).ok().and_then(|old| indexes.get(old));
        new.map_or(old, |new| u32::from(*new))
    };
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    for row in &mut rows {
        row.sh_link = index(row.sh_link.get()).into();
        let counts = row.sh_flags.get() & SHF_INFO_LINK != 0
            || [SHT_RELA, SHT_REL].contains(&row.sh_type.get());
        if counts {
            row.sh_info = index(row.sh_info.get()).into();
        }
    }
    let names = strings.map(|names| {
        let row = indexes.get(usize::from(elf.header.e_shstrndx.get())).copied();
        (row.map_or(0, usize::from), names)
    });
    Ok(Table { rows, names, fresh, indexes, addresses })
}

/// A name for the new section: its offset among the names, the name, and the names if they have to become more.
fn named(elf: &Elf<'_>, names: &[String]) -> Result<(u32, String, Option<Vec<u8>>)> {
    let is_free = |name: &&String| elf.sections.iter().all(|section| elf.name(section) != **name);
    let name = names.iter().find(is_free).or(names.last()).map_or(NAME, String::as_str);
    let index = u32::from(elf.header.e_shstrndx.get());
    let strings = usize::try_from(index).ok().and_then(|index| elf.sections.get(index));
    let strings = strings.filter(|strings| strings.sh_type != SHT_NOBITS);
    let strings = strings.ok_or(Error::outside(0, "the section of section names"))?;
    let old = elf.file.section(index).and_then(|section| elf.file.section_data(&section))?;
    let found = old
        .windows(name.len().saturating_add(1))
        .position(|bytes| bytes.strip_suffix(&[0]) == Some(name.as_bytes()));
    let at = strings.sh_offset.get();
    let offset = u32::try_from(found.unwrap_or(old.len()));
    let offset = offset.map_err(|_| Error::outside(at, "a name"))?;
    if found.is_some() {
        return Ok((offset, name.to_owned(), None));
    }
    if SectionFlags::from_bits_retain(strings.sh_flags.get()).contains(SectionFlags::ALLOC) {
        return Err(Error::new(at, ErrorKind::LoadedNames));
    }
    Ok((offset, name.to_owned(), Some([old, name.as_bytes(), &[0]].concat())))
}
