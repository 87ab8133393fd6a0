//! Sections of nothing but regions, which are laid out anew: one region behind the other.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use elf_core::names::{PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_PROGBITS};

use super::gap::{free_until, has_room};
use super::resize::{end, insertion, loads};
use crate::change::{Change, Known};
use crate::edits::With;
use crate::elf::Elf;

/// A section whose regions are laid out anew.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// Its index.
    pub(super) section: usize,
    /// Its bytes in the file.
    pub(super) range: Range<u64>,
    /// Its address.
    pub(super) address: u64,
    pub(super) writable: bool,
    /// What its regions become, in the order of their offsets.
    pub(super) regions: Vec<Change>,
    /// What each is aligned to.
    pub(super) alignment: u64,
}

impl Packed {
    /// Bytes that its regions take from an address on.
    pub(super) fn size_at(&self, address: u64) -> u64 {
        let end = self.regions.iter().fold(address, |at, region| {
            at.next_multiple_of(self.alignment).saturating_add(region.new_size())
        });
        end.saturating_sub(address)
    }

    /// Whether a region becomes larger.
    pub(super) fn grows(&self) -> bool {
        self.regions.iter().any(|region| region.new_size() > region.size)
    }

    /// Whether it has room where it is.
    pub(super) fn stays(&self, elf: &Elf<'_>, page: u64) -> bool {
        let size = self.size_at(self.address);
        size <= self.range.end.saturating_sub(self.range.start)
            || self.is_last(elf)
            || loads(elf).any(|load| {
                end(load) == self.range.end
                    && load.p_offset.get() <= self.range.start
                    && has_room(elf, load, self.address.saturating_add(size), page)
            })
    }

    /// Whether nothing that is loaded is behind it, in the file or in memory.
    fn is_last(&self, elf: &Elf<'_>) -> bool {
        let insertion = insertion(elf);
        let top = loads(elf).max_by_key(|load| load.p_vaddr.get());
        self.range.end == insertion
            && top.is_some_and(|load| {
                end(load) == insertion
                    && load.p_filesz == load.p_memsz
                    && load.p_offset.get() <= self.range.start
            })
    }
}

/// The sections that can be laid out anew, and have to be, or become smaller by a page or more.
pub(super) fn sections(elf: &Elf<'_>, changes: &[Change], known: &Known, page: u64) -> Vec<Packed> {
    let mut by_section: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
    for change in changes {
        if let Some(section) = elf.section_at(change.at) {
            by_section.entry(section).or_default().push(change.clone());
        }
    }
    let changed: HashSet<u64> = changes.iter().map(|change| change.at).collect();
    for region in known.regions.iter().filter(|region| !changed.contains(&region.start)) {
        let Some(regions) =
            elf.section_at(region.start).and_then(|section| by_section.get_mut(&section))
        else {
            continue;
        };
        let size = region.end.saturating_sub(region.start);
        regions.push(Change { at: region.start, size, new: With::Kept(region.clone()) });
    }
    let all = by_section.into_iter().filter_map(|(section, regions)| packed(elf, section, regions));
    all.filter(|one| {
        let size = one.range.end.saturating_sub(one.range.start);
        one.grows() || size.saturating_sub(one.size_at(one.address)) >= page
    })
    .collect()
}

/// A section, if nothing but zeros is left of it without these regions, and it alone has its bytes.
fn packed(elf: &Elf<'_>, section: usize, mut regions: Vec<Change>) -> Option<Packed> {
    const STRICT: u64 = 16;
    const LOOSE: u64 = 8;
    let row = elf.sections.get(section)?;
    let range = row.sh_offset.get()..row.sh_offset.get().checked_add(row.sh_size.get())?;
    let flags = row.sh_flags.get();
    let is_data = row.sh_type == SHT_PROGBITS
        && flags & SHF_ALLOC != 0
        && flags & SHF_EXECINSTR == 0
        && elf.address(range.start).ok()? == row.sh_addr.get();
    // what is gone and still pointed to finds zeros, and nothing else in its place
    let all_stay = regions.iter().all(|region| region.new_size() > 0);
    if !is_data || !all_stay || is_shared(elf, section, &range) {
        return None;
    }
    regions.sort_by_key(|region| region.at);
    let mut at = range.start;
    for region in &regions {
        if !elf.is_zero(at..region.at) {
            return None;
        }
        at = region.end();
    }
    if !elf.is_zero(at..range.end) {
        return None;
    }
    let strict = regions
        .iter()
        .all(|region| elf.address(region.at).is_ok_and(|address| address.is_multiple_of(STRICT)));
    let alignment = if strict { STRICT } else { LOOSE };
    // what it lost by an earlier change, if nothing came there since
    let range = range.start..free_until(elf, range.end);
    let (address, writable) = (row.sh_addr.get(), flags & SHF_WRITE != 0);
    address.is_multiple_of(alignment).then_some(Packed {
        section,
        range,
        address,
        writable,
        regions,
        alignment,
    })
}

/// Whether bytes of a section belong to another one too, or not to exactly one segment that is loaded.
pub(super) fn is_shared(elf: &Elf<'_>, section: usize, range: &Range<u64>) -> bool {
    let overlaps = |start: u64, size: u64| {
        size != 0 && start < range.end && start.saturating_add(size) > range.start
    };
    let mut inside = 0_usize;
    for segment in &elf.segments {
        if !overlaps(segment.p_offset.get(), segment.p_filesz.get()) {
            continue;
        }
        let whole = segment.p_offset.get() <= range.start && range.end <= end(segment);
        if segment.p_type != PT_LOAD || !whole {
            return true;
        }
        inside = inside.saturating_add(1);
    }
    let others = elf.sections.iter().enumerate().any(|(index, other)| {
        index != section
            && other.sh_type != SHT_NOBITS
            && overlaps(other.sh_offset.get(), other.sh_size.get())
    });
    let headers = overlaps(elf.header.e_shoff.get(), u64::from(elf.header.e_shnum.get()))
        || overlaps(elf.header.e_phoff.get(), 1)
        || range.start < 64;
    inside != 1 || others || headers
}
