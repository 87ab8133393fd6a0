//! Section headers of regions that moved: a section whose regions all move goes along, others share a new one.

use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use elf_core::SectionFlags;
use elf_core::names::{SHF_ALLOC, SHT_PROGBITS};
use elf_core::raw64::Shdr;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use super::super::elf::Elf;
use super::super::{Change, Plan};
use super::{ALIGNMENT, Place};

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

/// Adds the section headers behind the segment, whose content is `size` bytes. `moved` are the sections of regions, and where in the
/// content each lies. Gives the offset of the headers, and their number.
pub(super) fn write(
    elf: &Elf<'_>,
    moved: &[(Option<usize>, Range<u64>)],
    place: &Place,
    end: u64,
    size: u64,
    plan: &mut Plan,
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
                let old = table.get_mut(*index).context("no section")?;
                *old = Shdr { sh_name: old.sh_name, sh_flags: old.sh_flags, ..row };
            }
            None => at = one_more(elf, row, &mut table, end, at, plan)?,
        }
    }
    let start = at.next_multiple_of(8);
    plan.edits.append(end, start.saturating_sub(at), table.as_bytes().to_vec());
    Ok((start, u16::try_from(table.len())?))
}

/// Adds a header, and its name at the offset `at` of the new file if there is none of it; gives the offset of what follows.
fn one_more(
    elf: &Elf<'_>,
    mut row: Shdr<LE>,
    table: &mut Vec<Shdr<LE>>,
    end: u64,
    mut at: u64,
    plan: &mut Plan,
) -> Result<u64> {
    let is = |name: &str| elf.sections.iter().position(|section| elf.name(section) == name);
    // cuobjdump looks into one section of each of these names
    let name = if is("__nv_relfatbin").is_none() { "__nv_relfatbin" } else { ".nv_fatbin" };
    let names = usize::from(elf.header.e_shstrndx.get());
    let strings = table.get_mut(names).context("no section names")?;
    let old = elf
        .file
        .section(u32::try_from(names)?)
        .and_then(|section| elf.file.section_data(&section))?;
    let found = old
        .windows(name.len().saturating_add(1))
        .position(|bytes| bytes.strip_suffix(&[0]) == Some(name.as_bytes()));
    match found {
        Some(found) => row.sh_name = u32::try_from(found)?.into(),
        None => {
            ensure!(
                !SectionFlags::from_bits_retain(strings.sh_flags.get())
                    .contains(SectionFlags::ALLOC),
                "section names that are loaded cannot grow"
            );
            row.sh_name = u32::try_from(old.len())?.into();
            let new = [old, name.as_bytes(), &[0]].concat();
            strings.sh_offset = at.into();
            strings.sh_size = (new.len() as u64).into();
            at = at.saturating_add(new.len() as u64);
            plan.edits.append(end, 0, new);
        }
    }
    table.push(row);
    plan.notes.push(format!(
        "the new section is called {name}{}",
        if name == ".nv_fatbin" {
            ", and of two of this name cuobjdump sees the first"
        } else {
            ": cuobjdump shows it with -all"
        }
    ));
    Ok(at)
}
