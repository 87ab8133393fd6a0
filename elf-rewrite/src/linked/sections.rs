//! Section headers of regions that moved: a section whose regions all move goes along, others share a new one.

use std::ops::Range;

use elf_core::SectionFlags;
use elf_core::names::{SHF_ALLOC, SHT_PROGBITS};
use elf_core::raw64::Shdr;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use super::place::{ALIGNMENT, Place};
use crate::change::Change;
use crate::edits::With;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Draft, Remark};

/// The name of a new section, if none was given.
const NAME: &str = ".moved";

/// Regions that lie in one section from now on.
pub(super) struct Group<'c> {
    /// The section, if nothing but zeros is left where it was; else a new one.
    pub(super) section: Option<usize>,
    pub(super) changes: Vec<&'c Change>,
}

/// Puts regions that move, in the order of their offsets, into sections; the new one is the last.
pub(super) fn groups<'c>(elf: &Elf<'_>, grow: &[&'c Change]) -> Vec<Group<'c>> {
    let mut rest = Group { section: None, changes: Vec::new() };
    let mut all = Vec::new();
    for changes in grow.chunk_by(|one, other| elf.section_at(one.at) == elf.section_at(other.at)) {
        match emptied(elf, changes) {
            None => rest.changes.extend(changes),
            section => all.push(Group { section, changes: changes.to_vec() }),
        }
    }
    all.extend((!rest.changes.is_empty()).then_some(rest));
    all
}

/// The section of these regions, if nothing but zeros is left of it when they are gone.
fn emptied(elf: &Elf<'_>, changes: &[&Change]) -> Option<usize> {
    let index = elf.section_at(changes.first()?.at)?;
    let row = elf.sections.get(index)?;
    let mut at = row.sh_offset.get();
    let end = at.saturating_add(row.sh_size.get());
    let zero = |from: u64, to: u64| {
        let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
        Some(elf.bytes().get(range)?.iter().all(|&byte| byte == 0))
    };
    for change in changes {
        if zero(at, change.at) != Some(true) {
            return None;
        }
        at = change.end();
    }
    (zero(at, end) == Some(true)).then_some(index)
}

/// Adds the section headers behind the segment, whose content is `size` bytes, in a file that ended at `end`. `moved` are the sections
/// of regions, and where in the content each lies. Gives the offset of the headers, and their number.
pub(super) fn write(
    elf: &Elf<'_>,
    moved: &[(Option<usize>, Range<u64>)],
    place: &Place,
    (end, size): (u64, u64),
    names: &[String],
    plan: &mut Draft,
) -> Result<(u64, u16)> {
    let mut table = elf.sections.clone();
    let mut at = place.offset.saturating_add(size);
    for (section, range) in moved {
        let row = Shdr {
            sh_name: 0.into(),
            sh_type: SHT_PROGBITS.into(),
            sh_flags: SHF_ALLOC.into(),
            sh_addr: place.address.saturating_add(range.start).into(),
            sh_offset: place.offset.saturating_add(range.start).into(),
            sh_size: range.end.saturating_sub(range.start).into(),
            sh_link: 0.into(),
            sh_info: 0.into(),
            sh_addralign: ALIGNMENT.into(),
            sh_entsize: 0.into(),
        };
        match section {
            Some(index) => {
                let old = table.get_mut(*index).ok_or(Error::outside(0, "a section"))?;
                *old = Shdr { sh_name: old.sh_name, sh_flags: old.sh_flags, ..row };
            }
            None => at = one_more(elf, row, &mut table, (end, at), names, plan)?,
        }
    }
    let start = at.next_multiple_of(8);
    plan.edits.append(end, start.saturating_sub(at), With::Made(table.as_bytes().to_vec()));
    let count = u16::try_from(table.len());
    Ok((start, count.map_err(|_| Error::new(0, ErrorKind::TooManyHeaders))?))
}

/// Adds a header, and its name at the offset `at` of the new file if there is none of it; gives the offset of what follows.
fn one_more(
    elf: &Elf<'_>,
    mut row: Shdr<LE>,
    table: &mut Vec<Shdr<LE>>,
    (end, mut at): (u64, u64),
    names: &[String],
    plan: &mut Draft,
) -> Result<u64> {
    let is_free = |name: &&String| elf.sections.iter().all(|section| elf.name(section) != **name);
    let name = names.iter().find(is_free).or(names.last()).map_or(NAME, String::as_str);
    let index = u32::from(elf.header.e_shstrndx.get());
    let strings = usize::try_from(index).ok().and_then(|index| table.get_mut(index));
    let strings = strings.ok_or(Error::outside(0, "the section of section names"))?;
    let old = elf.file.section(index).and_then(|section| elf.file.section_data(&section))?;
    let found = old
        .windows(name.len().saturating_add(1))
        .position(|bytes| bytes.strip_suffix(&[0]) == Some(name.as_bytes()));
    let offset = u32::try_from(found.unwrap_or(old.len()));
    row.sh_name = offset.map_err(|_| Error::outside(strings.sh_offset.get(), "a name"))?.into();
    if found.is_none() {
        if SectionFlags::from_bits_retain(strings.sh_flags.get()).contains(SectionFlags::ALLOC) {
            return Err(Error::new(strings.sh_offset.get(), ErrorKind::LoadedNames));
        }
        let new = [old, name.as_bytes(), &[0]].concat();
        strings.sh_offset = at.into();
        strings.sh_size = (new.len() as u64).into();
        at = at.saturating_add(new.len() as u64);
        plan.edits.append(end, 0, With::Made(new));
    }
    table.push(row);
    plan.remarks.push(Remark::NewSection(name.to_owned()));
    Ok(at)
}
