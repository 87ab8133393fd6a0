//! Freed bytes: cut from the file where they are the tail of their segment, else zeros.

use std::ops::Range;

use elf_core::names::{PT_LOAD, SHT_NOBITS};
use elf_core::raw64::Phdr;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use crate::elf::Elf;
use crate::error::Result;
use crate::plan::Draft;

/// A segment that becomes shorter.
struct Tail {
    /// Its index.
    segment: usize,
    /// The section whose tail it is, too.
    section: usize,
    /// The bytes that go.
    freed: Range<u64>,
    /// The bytes that go from the file: in whole pages, so that what follows keeps its place in its page.
    cut: Range<u64>,
}

/// What becomes of freed ranges.
pub(super) fn plan(elf: &Elf<'_>, freed: &[Range<u64>], plan: &mut Draft) -> Result<()> {
    let mut tails = Vec::new();
    for range in freed {
        match tail(elf, range) {
            Some(tail) => {
                plan.edits.zeros(range.start..tail.cut.start)?;
                plan.edits.replace(tail.cut.clone(), Vec::new())?;
                plan.holes = plan.holes.saturating_add(tail.cut.start.saturating_sub(range.start));
                tails.push(tail);
            }
            None => {
                plan.holes = plan.holes.saturating_add(range.end.saturating_sub(range.start));
                plan.edits.zeros(range.clone())?;
            }
        }
    }
    if tails.is_empty() { Ok(()) } else { tables(elf, &tails, plan) }
}

/// The tail of a segment, if the range is one that can be cut.
fn tail(elf: &Elf<'_>, freed: &Range<u64>) -> Option<Tail> {
    let end = |segment: &Phdr<LE>| segment.p_offset.get().saturating_add(segment.p_filesz.get());
    let segment = elf.segments.iter().position(|segment| {
        segment.p_type == PT_LOAD
            && end(segment) == freed.end
            && segment.p_filesz == segment.p_memsz
            && segment.p_offset.get() < freed.start
    })?;
    let section = elf.section_at(freed.start)?;
    let row = elf.sections.get(section)?;
    if row.sh_offset.get().checked_add(row.sh_size.get())? != freed.end {
        return None;
    }
    let overlaps = |start: u64, size: u64| {
        size != 0 && start < freed.end && start.saturating_add(size) > freed.start
    };
    let shared = elf.segments.iter().enumerate().any(|(index, other)| {
        index != segment && overlaps(other.p_offset.get(), other.p_filesz.get())
    }) || elf.sections.iter().enumerate().any(|(index, other)| {
        index != section
            && other.sh_type != SHT_NOBITS
            && overlaps(other.sh_offset.get(), other.sh_size.get())
    });
    if shared {
        return None;
    }
    let sections = elf
        .sections
        .iter()
        .filter(|section| section.sh_type != SHT_NOBITS && section.sh_size.get() != 0);
    let starts = (sections.clone().map(|section| section.sh_offset.get()))
        .chain(
            elf.segments
                .iter()
                .filter(|segment| segment.p_filesz.get() != 0)
                .map(|segment| segment.p_offset.get()),
        )
        .chain([elf.header.e_shoff.get(), elf.header.e_phoff.get(), elf.size()]);
    let next = starts.filter(|start| *start >= freed.end).min()?;
    let later =
        elf.segments.iter().filter(|later| later.p_type == PT_LOAD && later.p_offset.get() >= next);
    let aligned = sections
        .filter(|section| section.sh_offset.get() >= next)
        .map(|section| section.sh_addralign.get());
    let unit = later.map(|later| later.p_align.get()).chain(aligned).max().unwrap_or(1).max(16);
    let size = next.checked_sub(freed.start)?.checked_div(unit)?.checked_mul(unit)?;
    (size != 0).then(|| Tail {
        segment,
        section,
        freed: freed.clone(),
        cut: next.saturating_sub(size)..next,
    })
}

/// Headers with smaller sizes, and offsets of what follows the cuts.
fn tables(elf: &Elf<'_>, tails: &[Tail], plan: &mut Draft) -> Result<()> {
    let new = |offset: u64| {
        let gone =
            |tail: &Tail| offset.clamp(tail.cut.start, tail.cut.end).saturating_sub(tail.cut.start);
        offset.saturating_sub(tails.iter().map(gone).sum())
    };
    let (mut header, mut segments, mut sections) =
        (elf.header, elf.segments.clone(), elf.sections.clone());
    for tail in tails {
        let size = tail.freed.end.saturating_sub(tail.freed.start);
        if let Some(segment) = segments.get_mut(tail.segment) {
            segment.p_filesz = segment.p_filesz.get().saturating_sub(size).into();
            segment.p_memsz = segment.p_filesz;
        }
        if let Some(section) = sections.get_mut(tail.section) {
            section.sh_size = section.sh_size.get().saturating_sub(size).into();
        }
    }
    for segment in &mut segments {
        segment.p_offset = new(segment.p_offset.get()).into();
    }
    for section in &mut sections {
        section.sh_offset = new(section.sh_offset.get()).into();
    }
    header.e_phoff = new(header.e_phoff.get()).into();
    header.e_shoff = new(header.e_shoff.get()).into();
    plan.edits.put(0, header.as_bytes())?;
    plan.edits.put(elf.header.e_phoff.get(), segments.as_bytes())?;
    if !sections.is_empty() {
        plan.edits.put(elf.header.e_shoff.get(), sections.as_bytes())?;
    }
    Ok(())
}
