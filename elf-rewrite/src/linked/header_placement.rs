//! Where more program headers are placed: behind those that there are, or where small tables stand that can move.

use std::ops::Range;

use elf_core::names::{
    PT_INTERP, PT_LOAD, PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_DYNSYM, SHT_GNU_HASH,
    SHT_GNU_verdef, SHT_GNU_verneed, SHT_GNU_versym, SHT_HASH, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS,
    SHT_RELA, SHT_RELR, SHT_STRTAB,
};
use elf_core::raw64::{Phdr, Shdr};
use zerocopy::byteorder::LE;

use super::resize::end;
use crate::elf::Elf;

/// Size of a program header.
pub(super) const PHDR: u64 = size_of::<Phdr<LE>>() as u64;
/// What is found by the dynamic section or program headers only.
const MOVABLE: [u32; 10] = [
    SHT_NOTE,
    SHT_HASH,
    SHT_GNU_HASH,
    SHT_DYNSYM,
    SHT_STRTAB,
    SHT_GNU_versym,
    SHT_GNU_verdef,
    SHT_GNU_verneed,
    SHT_RELA,
    SHT_RELR,
];
/// More than this is not moved for a few headers.
const LARGEST: u64 = 64 << 20;

/// Where so many program headers can stand.
#[derive(Debug)]
pub(super) enum HeaderPlacement {
    /// Where they are.
    InPlace,
    /// Where they are, if this is elsewhere.
    InPlaceWithout(Block),
    /// In another place only.
    Elsewhere,
}

/// Which tables move where program headers need their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// With a table of symbols its names, and relocations that name it: they stay behind it. BFD reads a table of symbols before these, so
    /// that `strip` would put it there among the sections, whose numbers symbols would have no more.
    InOrder,
    /// No more than are in the way.
    Fewest,
    /// None.
    None,
}

/// Tables behind the program headers, which move together.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Their bytes in the file.
    pub(super) range: Range<u64>,
    /// The address of the first.
    pub(super) address: u64,
    /// By what the new address has to agree with the old one.
    pub(super) alignment: u64,
}

impl Block {
    pub(super) const fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// Where `count` program headers can stand, if these tables may move.
pub(super) fn header_placement(elf: &Elf<'_>, count: usize, tables: Tables) -> HeaderPlacement {
    if count <= elf.segments.len() {
        return HeaderPlacement::InPlace;
    }
    let start = elf.header.e_phoff.get();
    let size = |count: usize| (count as u64).saturating_mul(PHDR);
    let free = start.saturating_add(size(elf.segments.len()))..start.saturating_add(size(count));
    let is_around = |load: &&Phdr<LE>| load.p_offset.get() <= start && end(load) >= free.end;
    let load = elf.segments.iter().find(|load| load.p_type == PT_LOAD && is_around(load));
    let Some(load) = load.filter(|_| !elf.sections.is_empty()) else {
        return HeaderPlacement::Elsewhere;
    };
    let taken = taken(elf);
    let is_clear = !taken.iter().any(|one| one.start < free.end && one.end > free.start);
    if is_clear && !is_free(elf, free.clone()) {
        return HeaderPlacement::Elsewhere;
    }
    let otherwise = if is_clear { HeaderPlacement::InPlace } else { HeaderPlacement::Elsewhere };
    let end_for = match tables {
        Tables::InOrder => behind_patchelf(elf, free.end),
        Tables::Fewest => free.end,
        Tables::None => return otherwise,
    };
    let first = taken.iter().filter(|one| one.start < end_for && one.end > free.start);
    let Some(first) = first.min_by_key(|one| one.start) else { return otherwise };
    let until = |end: u64| whole(&taken, first.start..first.end.max(end));
    let ranges = match tables {
        Tables::InOrder => {
            let orders = [end_for, free.end].map(until);
            let ordered = orders.map(|range| whole(&taken, with_users(elf, range)));
            ordered.into_iter().chain((!is_clear).then(|| until(free.end))).collect()
        }
        Tables::Fewest | Tables::None => vec![until(free.end)],
    };
    let fits = |range: &Range<u64>| {
        range.start >= free.start && range.end <= end(load) && is_free(elf, free.start..range.start)
    };
    let found = ranges.into_iter().filter(fits).find_map(|range| block(elf, range));
    found.map_or(otherwise, HeaderPlacement::InPlaceWithout)
}

/// Behind the table of symbols that patchelf would take away from behind these program headers: it wants one more, and one for each section of
/// notes. What it takes goes to the end of the file, where the table would stand behind its relocations. Otherwise the headers' end.
fn behind_patchelf(elf: &Elf<'_>, headers_end: u64) -> u64 {
    let notes = elf.sections.iter().filter(|section| section.sh_type == SHT_NOTE).count();
    let room = (notes as u64).saturating_add(1).saturating_mul(PHDR);
    let symbols = elf.sections.iter().find(|section| section.sh_type == SHT_DYNSYM);
    let at = symbols.map_or(u64::MAX, |symbols| symbols.sh_offset.get());
    if (headers_end..=headers_end.saturating_add(room)).contains(&at) {
        at.saturating_add(1)
    } else {
        headers_end
    }
}

/// A range, and all of what is in it in part.
fn whole(taken: &[Range<u64>], mut range: Range<u64>) -> Range<u64> {
    while let Some(more) = taken.iter().find(|one| {
        one.start < range.end
            && one.end > range.start
            && (one.start < range.start || one.end > range.end)
    }) {
        range = range.start.min(more.start)..range.end.max(more.end);
    }
    range
}

/// A range, and relocations behind it that name a table of symbols in it, or the names of that.
fn with_users(elf: &Elf<'_>, range: Range<u64>) -> Range<u64> {
    let is_there = |section: &Shdr<LE>| range.contains(&section.sh_offset.get());
    let symbols = elf
        .sections
        .iter()
        .zip(0_u32..)
        .filter(|(section, _)| section.sh_type == SHT_DYNSYM && is_there(section));
    let mut end = range.end;
    for (table, index) in symbols {
        for (section, number) in elf.sections.iter().zip(0_u32..) {
            let are_relocations = [SHT_RELA, SHT_RELR].contains(&section.sh_type.get());
            let is_user = are_relocations && section.sh_link == index || table.sh_link == number;
            let is_loaded = section.sh_flags.get() & SHF_ALLOC != 0;
            if is_user && is_loaded && section.sh_offset.get() >= range.start {
                end = end.max(section.sh_offset.get().saturating_add(section.sh_size.get()));
            }
        }
    }
    range.start..end
}

/// Whether nothing is left in a range that no section has: zeros, or what patchelf writes where sections were that it moved.
fn is_free(elf: &Elf<'_>, range: Range<u64>) -> bool {
    const FREE: [u8; 3] = [0, b'X', b'Z'];
    elf.bytes_of(range).is_some_and(|bytes| bytes.iter().all(|byte| FREE.contains(byte)))
}

/// Ranges of the file that something is said to be in, besides segments that are loaded.
pub(super) fn taken(elf: &Elf<'_>) -> Vec<Range<u64>> {
    let sections = elf
        .sections
        .iter()
        .filter(|section| section.sh_type != SHT_NOBITS && section.sh_size.get() != 0);
    let sections = sections.map(|section| (section.sh_offset.get(), section.sh_size.get()));
    let segments = elf.segments.iter().filter(|segment| {
        segment.p_type != PT_LOAD && segment.p_type != PT_PHDR && segment.p_filesz.get() != 0
    });
    let segments = segments.map(|segment| (segment.p_offset.get(), segment.p_filesz.get()));
    let headers =
        [(elf.header.e_shoff.get(), elf.sections_end().saturating_sub(elf.header.e_shoff.get()))];
    let all = sections.chain(segments).chain(headers);
    all.map(|(at, size)| at..at.saturating_add(size)).collect()
}

/// The tables in a range, if all of them can move.
fn block(elf: &Elf<'_>, range: Range<u64>) -> Option<Block> {
    let interpreter = elf.segments.iter().find(|segment| segment.p_type == PT_INTERP);
    let mut alignment = 8_u64;
    for section in elf.sections.iter().filter(|section| section.sh_type != SHT_NOBITS) {
        let at = section.sh_offset.get();
        if section.sh_size.get() == 0 || !range.contains(&at) {
            continue;
        }
        let is_interpreter = section.sh_type == SHT_PROGBITS
            && interpreter.is_some_and(|interpreter| interpreter.p_offset == section.sh_offset);
        let is_movable = MOVABLE.contains(&section.sh_type.get()) || is_interpreter;
        let flags = section.sh_flags.get() & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR);
        if !is_movable || flags != SHF_ALLOC || elf.address(at).ok()? != section.sh_addr.get() {
            return None;
        }
        alignment = alignment.max(section.sh_addralign.get());
    }
    let address = elf.address(range.start).ok()?;
    let fits = alignment.is_power_of_two() && alignment <= 0x1000;
    let block = Block { range, address, alignment };
    (fits && block.size() <= LARGEST).then_some(block)
}
