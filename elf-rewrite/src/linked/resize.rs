//! Ranges of the file that become longer or shorter, and where everything behind them is then.

use std::ops::Range;

use elf_core::names::{EM_X86_64, PT_LOAD, SHF_ALLOC, SHT_NOBITS};
use elf_core::raw64::Phdr;
use zerocopy::byteorder::LE;

use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};

/// Alignments from here on are taken for damage.
const LARGEST_ALIGNMENT: u64 = 1 << 30;

/// The offset behind what the file has of a segment.
pub(super) const fn end(segment: &Phdr<LE>) -> u64 {
    segment.p_offset.get().saturating_add(segment.p_filesz.get())
}

/// The segments that are loaded.
pub(super) fn loads<'e>(elf: &'e Elf<'_>) -> impl Iterator<Item = &'e Phdr<LE>> + Clone {
    elf.segments.iter().filter(|segment| segment.p_type == PT_LOAD)
}

/// Where the file becomes longer: behind all that is loaded, or at its end if nothing says what is there.
pub(super) fn insertion(elf: &Elf<'_>) -> u64 {
    if elf.sections.is_empty() {
        return elf.size();
    }
    loads(elf).map(end).max().unwrap_or(0).min(elf.size())
}

/// By what offsets and addresses of a segment have to agree: no page of any system is larger, or the file is not for it.
///
/// # Errors
/// If a segment is aligned to what is no power of two.
pub(super) fn page(elf: &Elf<'_>) -> Result<u64> {
    const SMALLEST: u64 = 0x1000;
    // AArch64 may have pages of 64 KiB
    let largest = if elf.header.e_machine == EM_X86_64 { SMALLEST } else { 0x1_0000 };
    let mut page = SMALLEST;
    for load in loads(elf) {
        let unit = load.p_align.get().max(1);
        if !unit.is_power_of_two() || unit > LARGEST_ALIGNMENT {
            let at = elf.header.e_phoff.get();
            return Err(Error::new(at, ErrorKind::Alignment(unit)));
        }
        page = page.max(unit);
    }
    Ok(page.min(largest))
}

/// By multiples of what everything behind an offset may move in the file, and the offset itself.
///
/// # Errors
/// If a section is aligned to what is no power of two.
pub(super) fn unit(elf: &Elf<'_>, offset: u64) -> Result<u64> {
    // what has no bytes is where those before it end
    let ends = |load: &Phdr<LE>| end(load) == offset && load.p_memsz.get() > load.p_filesz.get();
    if loads(elf).any(ends) { page(elf) } else { unit_behind(elf, offset) }
}

/// The same where what stands before the offset stays.
///
/// # Errors
/// As [`unit`].
pub(super) fn unit_behind(elf: &Elf<'_>, offset: u64) -> Result<u64> {
    const LEAST: u64 = 16;
    if loads(elf).any(|load| load.p_offset.get() >= offset || end(load) > offset) {
        return page(elf);
    }
    let behind = elf.sections.iter().filter(|section| {
        section.sh_type != SHT_NOBITS
            && section.sh_flags.get() & SHF_ALLOC == 0
            && section.sh_offset.get() >= offset
    });
    let unit = behind.map(|section| section.sh_addralign.get()).max().unwrap_or(0).max(LEAST);
    if !unit.is_power_of_two() || unit > LARGEST_ALIGNMENT {
        return Err(Error::new(elf.header.e_shoff.get(), ErrorKind::Alignment(unit)));
    }
    Ok(unit)
}

/// A range that takes another number of bytes. An empty one is a place where bytes come in.
#[derive(Clone, Debug)]
pub(super) struct Resize {
    pub(super) range: Range<u64>,
    /// Bytes that it takes in the new file.
    pub(super) size: u64,
}

/// All of them, in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub(super) struct Resizes(Vec<Resize>);

impl Resizes {
    /// Adds one that overlaps none of those that there are.
    pub(super) fn add(&mut self, range: Range<u64>, size: u64) {
        let at = self.0.partition_point(|one| one.range.start <= range.start);
        self.0.insert(at, Resize { range, size });
    }

    /// Where what is at an offset is in the new file. Nothing of any size may stand inside what becomes shorter.
    pub(super) fn shifted(&self, offset: u64) -> u64 {
        Self::shift(self.0.iter(), offset)
    }

    /// Where the end of what stands before an offset is: bytes that come in there are behind it.
    pub(super) fn end_shifted(&self, offset: u64) -> u64 {
        let comes_in = |one: &&Resize| one.range.is_empty() && one.range.start == offset;
        Self::shift(self.0.iter().filter(|one| !comes_in(one)), offset)
    }

    fn shift<'r>(all: impl Iterator<Item = &'r Resize>, offset: u64) -> u64 {
        all.fold(offset, |new, Resize { range, size }| {
            let old = range.end.saturating_sub(range.start);
            if offset >= range.end {
                new.saturating_add(*size).saturating_sub(old)
            } else {
                let inside = offset.saturating_sub(range.start);
                new.saturating_sub(inside.saturating_sub(*size))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_moves() {
        let mut resizes = Resizes::default();
        resizes.add(100..100, 8);
        resizes.add(20..50, 10);
        let new = [0, 20, 25, 40, 50, 99, 100, 120].map(|offset| resizes.shifted(offset));
        assert_eq!(new, [0, 20, 25, 30, 30, 79, 88, 108]);
        assert_eq!([50, 100, 101].map(|offset| resizes.end_shifted(offset)), [30, 80, 89]);
    }
}
