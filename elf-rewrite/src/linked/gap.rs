//! What is free behind a section or a segment: zeros in the file that nothing has, and addresses up to the next segment. What became smaller left them;
//! they are counted with it, so that it grows to the same bytes.

use elf_core::names::{SHF_ALLOC, SHT_NOBITS};
use elf_core::raw64::Phdr;
use zerocopy::byteorder::LE;

use super::header_placement::taken;
use super::resize::{end, loads, page};
use crate::elf::Elf;

/// The offset behind zeros from `at` on that no segment, no section and no header has, if a segment ends at `at`. What has no bytes in the
/// file is counted by its offset; at `at` itself only unless it stays there.
pub(super) fn gap_end(elf: &Elf<'_>, at: u64, absent_stays: bool) -> u64 {
    let ends = loads(elf).any(|load| load.p_filesz.get() != 0 && end(load) == at);
    let goes_on = loads(elf).any(|load| load.p_offset.get() <= at && end(load) > at);
    if !ends || goes_on || elf.sections.is_empty() {
        return at;
    }
    let absent = elf
        .sections
        .iter()
        .filter(|section| section.sh_type == SHT_NOBITS && section.sh_flags.get() & SHF_ALLOC != 0);
    let absent = absent.map(|section| section.sh_offset.get());
    let absent = absent.filter(|offset| !absent_stays || *offset != at);
    let starts = taken(elf).into_iter().map(|one| one.start);
    let all = starts.chain(absent).chain(loads(elf).map(|load| load.p_offset.get()));
    let next = all.filter(|offset| *offset >= at).min();
    let last = || Some(elf.size()).filter(|last| last.saturating_sub(at) < page(elf).unwrap_or(0));
    let gap = next.or_else(last).filter(|next| elf.is_zero(at..*next));
    gap.unwrap_or(at)
}

/// Up to where zeros that nothing has follow in the same segment.
pub(super) fn free_until(elf: &Elf<'_>, at: u64) -> u64 {
    let load = loads(elf).find(|load| load.p_offset.get() < at && end(load) >= at);
    let next = taken(elf).into_iter().filter(|one| one.end > at).map(|one| one.start.max(at)).min();
    let until = load.map_or(at, end).min(next.unwrap_or(u64::MAX));
    if elf.is_zero(at..until) { until } else { at }
}

/// Whether a segment can be loaded up to this address: it has all its bytes in the file, and no other is there. The two may share a page
/// if nothing else is between them in the file: then they stand there as they do in memory.
pub(super) fn has_room(elf: &Elf<'_>, load: &Phdr<LE>, address: u64, page: u64) -> bool {
    let above = loads(elf).filter(|other| other.p_vaddr.get() > load.p_vaddr.get());
    let Some(next) = above.min_by_key(|other| other.p_vaddr.get()) else { return false };
    let start = next.p_vaddr.get();
    let is_apart = address
        .checked_next_multiple_of(page)
        .is_some_and(|top| top <= start.saturating_sub(start % page));
    let is_joined = address <= start
        && next.p_flags == load.p_flags
        && gap_end(elf, end(load), false) == next.p_offset.get();
    load.p_filesz == load.p_memsz && (is_apart || is_joined)
}
