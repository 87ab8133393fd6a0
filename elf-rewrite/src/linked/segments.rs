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
    /// Bytes by which a segment becomes longer, and the offset at which it ends.
    pub(super) longer: Option<(u64, u64)>,
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
    all
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
        if let Some((offset, more)) = loaded.longer
            && offset == range.end
        {
            file = file.saturating_add(more);
        }
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
