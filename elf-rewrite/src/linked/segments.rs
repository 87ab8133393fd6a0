//! Program headers of the new file: segments without what is loaded no more, and one more.

use std::ops::Range;

use elf_core::names::{PF_X, PT_LOAD, SHF_EXECINSTR, SHT_NOBITS};
use elf_core::raw64::{Phdr, Shdr};
use zerocopy::byteorder::LE;

use super::resize::{Resizes, end};
use crate::elf::Elf;

/// What becomes of the ranges of the file that are loaded.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// What of the file is loaded no more, in the order of offsets.
    pub(super) holes: Vec<Range<u64>>,
    /// Offsets at which segments end that become longer, and the bytes by which they do.
    pub(super) longer: Vec<(u64, u64)>,
}

/// The program headers without the new segment. Where there is a hole, one becomes two.
pub(super) fn pieces(
    elf: &Elf<'_>,
    loaded: &Loaded,
    resizes: &Resizes,
    page: u64,
) -> Vec<Phdr<LE>> {
    let mut all = Vec::new();
    for segment in &elf.segments {
        if segment.p_type == PT_LOAD {
            split(elf, segment, (loaded, resizes, page), &mut all);
        } else {
            let mut new = *segment;
            new.p_offset = resizes.shifted(segment.p_offset.get()).into();
            all.push(new);
        }
    }
    if !loaded.longer.is_empty() {
        join(&mut all);
    }
    all
}

/// Makes one segment of two where the second goes on where the first ends, in the file and in memory: what was between them is back.
fn join(all: &mut Vec<Phdr<LE>>) {
    all.dedup_by(|next, one| {
        let goes_on = next.p_type == PT_LOAD
            && one.p_type == PT_LOAD
            && next.p_flags == one.p_flags
            && next.p_align == one.p_align
            && one.p_filesz == one.p_memsz
            && next.p_offset == end(one)
            && next.p_vaddr.get() == one.p_vaddr.get().saturating_add(one.p_memsz.get());
        if goes_on {
            let more = |one: u64, next: u64| one.saturating_add(next).into();
            one.p_memsz = more(one.p_memsz.get(), next.p_memsz.get());
            one.p_filesz = more(one.p_filesz.get(), next.p_filesz.get());
        }
        goes_on
    });
}

/// A segment without holes, in one piece or several.
fn split(
    elf: &Elf<'_>,
    segment: &Phdr<LE>,
    (loaded, resizes, page): (&Loaded, &Resizes, u64),
    all: &mut Vec<Phdr<LE>>,
) {
    let (start, end) = (segment.p_offset.get(), end(segment));
    let zeros = segment.p_memsz.get().saturating_sub(segment.p_filesz.get());
    let mut ranges = Vec::new();
    let mut at = start;
    for hole in &loaded.holes {
        if start <= hole.start && hole.end <= end && at <= hole.start {
            ranges.push(at..hole.start);
            at = hole.end;
        }
    }
    ranges.push(at..end);
    let last = ranges.len().saturating_sub(1);
    for (index, range) in ranges.into_iter().enumerate() {
        let mut file = range.end.saturating_sub(range.start);
        let more = loaded.longer.iter().find(|(offset, _)| *offset == range.end);
        file = file.saturating_add(more.map_or(0, |(_, more)| *more));
        let memory = if index == last { file.saturating_add(zeros) } else { file };
        if memory == 0 && segment.p_memsz.get() != 0 {
            continue;
        }
        let inside = range.start.saturating_sub(start);
        let mut new = *segment;
        new.p_offset = resizes.shifted(range.start).into();
        new.p_vaddr = segment.p_vaddr.get().saturating_add(inside).into();
        new.p_paddr = segment.p_paddr.get().saturating_add(inside).into();
        (new.p_filesz, new.p_memsz) = (file.into(), memory.into());
        if last > 0 && !has_code(elf, &range) {
            new.p_flags = (new.p_flags.get() & !PF_X).into();
        }
        let apart = new.p_offset.get() ^ new.p_vaddr.get();
        if apart & segment.p_align.get().saturating_sub(1) != 0 {
            new.p_align = page.into();
        }
        all.push(new);
    }
}

/// Whether a section with code has bytes in a range of the file, or nothing says so.
fn has_code(elf: &Elf<'_>, range: &Range<u64>) -> bool {
    let is_code = |section: &Shdr<LE>| {
        let start = section.sh_offset.get();
        section.sh_flags.get() & SHF_EXECINSTR != 0
            && section.sh_type != SHT_NOBITS
            && start < range.end
            && start.saturating_add(section.sh_size.get()) > range.start
    };
    elf.sections.is_empty() || elf.sections.iter().any(is_code)
}
