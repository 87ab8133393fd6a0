//! Relocatable objects: nothing in them has an address, so that sections can grow and shrink; offsets, symbols and addends follow.

use std::ops::Range;

use elf_core::names::{SHT_CREL, SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SHT_SYMTAB, STT_SECTION};
use elf_core::raw64::{Rela, Shdr, Sym};
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use crate::change::Change;
use crate::edits::With;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Referrer, Result};
use crate::plan::Draft;

/// What is aligned to multiples of this, or of what its section is aligned to, still is.
const ALIGNMENT: u64 = 8;

/// A section whose content changes.
struct Section {
    index: usize,
    /// Its bytes in the file.
    range: Range<u64>,
    content: Vec<With>,
    /// Size of the content in bytes.
    size: u64,
    /// Old ranges, from the section's start, and where their bytes start now; a range that changed has no inside.
    runs: Vec<(Range<u64>, u64, bool)>,
    /// By multiples of what bytes move in it.
    unit: u64,
    /// Bytes that follow the content, so that what comes behind keeps its alignment.
    padding: u64,
}

impl Section {
    /// Where what was at `offset` is now.
    fn map(&self, offset: u64) -> Result<u64> {
        if offset == self.range.end.saturating_sub(self.range.start) {
            return Ok(self.size);
        }
        let run = self.runs.iter().find(|(old, ..)| old.contains(&offset));
        match run {
            Some((old, new, false)) => Ok(offset.saturating_sub(old.start).saturating_add(*new)),
            Some((old, new, true)) if old.start == offset && !self.is_gone(*new) => Ok(*new),
            _ => {
                let (referrer, place) = (Referrer::Section, self.index as u64);
                let inside = ErrorKind::PointsInside { referrer, place, target: offset };
                let region = run.map_or(0, |(old, ..)| old.start);
                Err(Error::new(self.range.start.saturating_add(region), inside))
            }
        }
    }

    /// Whether nothing is left of what changed and would start at `new`.
    fn is_gone(&self, new: u64) -> bool {
        let others = self.runs.iter().filter(|(_, start, _)| *start == new).count();
        others > 1 || new == self.size
    }

    /// Adds what the file has in a range.
    fn keep(&mut self, range: Range<u64>) {
        if range.start < range.end {
            self.add(range.clone(), With::Kept(range), false);
        }
    }

    /// Adds what a range of the file becomes.
    fn add(&mut self, range: Range<u64>, new: With, changed: bool) {
        let behind = |at: u64| at.saturating_sub(self.range.start);
        let less = self.size.wrapping_sub(behind(range.start)).checked_rem(self.unit).unwrap_or(0);
        let zeros = if less == 0 { 0 } else { self.unit.saturating_sub(less) };
        let start = self.size.saturating_add(zeros);
        if zeros > 0 {
            self.content.push(With::Zeros(zeros));
        }
        self.runs.push((behind(range.start)..behind(range.end), start, changed));
        self.size = start.saturating_add(new.size());
        self.content.push(new);
    }

    /// Bytes that come in, less bytes that go.
    fn growth(&self) -> i64 {
        let old = self.range.end.saturating_sub(self.range.start);
        let new = self.size.saturating_add(self.padding);
        0_i64.saturating_add_unsigned(new).saturating_sub_unsigned(old)
    }
}

/// How to make changes to an object.
pub(crate) fn plan(elf: &Elf<'_>, changes: &[Change]) -> Result<Draft> {
    let mut plan = Draft { in_place: changes.len(), ..Draft::default() };
    let mut sections: Vec<Section> = Vec::new();
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort_by_key(|change| change.at);
    for group in sorted.chunk_by(|one, other| elf.section_at(one.at) == elf.section_at(other.at)) {
        let at = group.first().map_or(0, |change| change.at);
        let index = elf.section_at(at).ok_or(Error::outside(at, "a region without a section"))?;
        sections.push(section(elf, index, group)?);
    }
    for section in &sections {
        let padding = (section.padding > 0).then_some(With::Zeros(section.padding));
        let new = section.content.iter().cloned().chain(padding).collect();
        plan.edits.replace(section.range.clone(), new)?;
        relocations(elf, section, &mut plan)?;
        symbols(elf, section, &mut plan)?;
    }
    headers(elf, &sections, &mut plan)?;
    Ok(plan)
}

/// The new content of a section.
fn section(elf: &Elf<'_>, index: usize, changes: &[&Change]) -> Result<Section> {
    let row = elf.sections.get(index).ok_or(Error::outside(0, "a section"))?;
    let range = row.sh_offset.get()..row.sh_offset.get().saturating_add(row.sh_size.get());
    if range.end > elf.size() {
        return Err(Error::outside(range.start, "a section"));
    }
    let unit = row.sh_addralign.get().max(ALIGNMENT);
    let (padding, runs, content) = (0, Vec::new(), Vec::new());
    let mut new = Section { index, range: range.clone(), content, size: 0, runs, unit, padding };
    let mut at = range.start;
    for change in changes {
        if change.end() > range.end || change.at < at {
            return Err(Error::outside(change.at, "a region"));
        }
        new.keep(at..change.at);
        new.add(change.at..change.end(), change.new.clone(), true);
        at = change.end();
    }
    new.keep(at..range.end);
    // what follows moves by a multiple of the strictest alignment
    let later = elf.sections.iter().filter(|section| section.sh_offset.get() >= range.end);
    let unit = later.map(|section| section.sh_addralign.get()).max().unwrap_or(1).max(unit);
    if !unit.is_power_of_two() || unit > 1 << 30 {
        return Err(Error::new(elf.header.e_shoff.get(), ErrorKind::Alignment(unit)));
    }
    let old = range.end.saturating_sub(range.start);
    new.padding = (unit.saturating_sub(new.size % unit)).saturating_add(old % unit) % unit;
    Ok(new)
}

/// Addends of relocations against the section, and places in it.
fn relocations(elf: &Elf<'_>, changed: &Section, plan: &mut Draft) -> Result<()> {
    const ROW: u64 = size_of::<Rela<LE>>() as u64;
    for table in &elf.sections {
        let form = match table.sh_type.get() {
            SHT_REL => Some("relocations without addends"),
            SHT_CREL => Some("compact relocations (CREL)"),
            _ => None,
        };
        if let Some(form) = form {
            return Err(Error::new(table.sh_offset.get(), ErrorKind::Relocations(form)));
        }
        if table.sh_type != SHT_RELA {
            continue;
        }
        let link =
            usize::try_from(table.sh_link.get()).ok().and_then(|link| elf.sections.get(link));
        let symbols = link.map_or(Ok(&[][..]), |link| elf.symbols(link))?;
        let applies = usize::try_from(table.sh_info.get()) == Ok(changed.index);
        for (row, record) in (0_u64..).zip(elf.relocations(table)?) {
            let mut new = *record;
            if applies {
                new.r_offset = changed.map(record.r_offset.get())?.into();
            }
            let symbol = usize::try_from(record.r_info.get() >> 32)
                .ok()
                .and_then(|index| symbols.get(index));
            let against =
                symbol.filter(|symbol| usize::from(symbol.st_shndx.get()) == changed.index);
            if let Some(symbol) = against {
                let (value, addend) = (symbol.st_value.get(), record.r_addend.get());
                let place = changed.map(value.wrapping_add_signed(addend))?;
                let base =
                    if symbol.st_info & 15 == STT_SECTION { value } else { changed.map(value)? };
                new.r_addend = place.wrapping_sub(base).cast_signed().into();
            }
            if new.as_bytes() != record.as_bytes() {
                let at = table.sh_offset.get().saturating_add(row.saturating_mul(ROW));
                plan.edits.put(at, new.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Symbols in the section.
fn symbols(elf: &Elf<'_>, changed: &Section, plan: &mut Draft) -> Result<()> {
    const ROW: u64 = size_of::<Sym<LE>>() as u64;
    for table in elf.sections.iter().filter(|section| section.sh_type == SHT_SYMTAB) {
        for (row, symbol) in (0_u64..).zip(elf.symbols(table)?) {
            let there = usize::from(symbol.st_shndx.get()) == changed.index;
            if !there || symbol.st_info & 15 == STT_SECTION {
                continue;
            }
            let start = symbol.st_value.get();
            let end = start.saturating_add(symbol.st_size.get());
            let mut new = *symbol;
            new.st_value = changed.map(start)?.into();
            // a size that ends where a region ends follows it; one that ends inside says something else
            if let Ok(end) =
                changed.map(end).or_else(|_| changed.map(end.next_multiple_of(ALIGNMENT)))
                && symbol.st_size.get() != 0
            {
                new.st_size = end.saturating_sub(new.st_value.get()).into();
            }
            if new.as_bytes() != symbol.as_bytes() {
                let at = table.sh_offset.get().saturating_add(row.saturating_mul(ROW));
                plan.edits.put(at, new.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Sizes of the sections, and offsets of all that follows them.
fn headers(elf: &Elf<'_>, changed: &[Section], plan: &mut Draft) -> Result<()> {
    let moved = |offset: u64| {
        let before = changed.iter().filter(|section| section.range.end <= offset);
        before.fold(offset, |offset, section| offset.saturating_add_signed(section.growth()))
    };
    let mut sections = elf.sections.clone();
    for section in &mut sections {
        if section.sh_type != SHT_NULL {
            section.sh_offset = moved(section.sh_offset.get()).into();
        }
    }
    for one in changed {
        let row: Option<&mut Shdr<LE>> = sections.get_mut(one.index);
        let row = row.filter(|row| row.sh_type != SHT_NOBITS);
        let row =
            row.ok_or(Error::outside(one.range.start, "a region in a section without bytes"))?;
        row.sh_size = one.size.into();
    }
    let mut header = elf.header;
    header.e_shoff = moved(header.e_shoff.get()).into();
    plan.edits.put(0, header.as_bytes())?;
    plan.edits.put(elf.header.e_shoff.get(), sections.as_bytes())
}
