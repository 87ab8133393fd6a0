//! The place for a segment behind all others, in the file and in memory.

use elf_core::names::{ET_EXEC, PT_INTERP, PT_LOAD, SHT_DYNSYM};
use elf_core::raw64::Phdr;
use zerocopy::byteorder::LE;

use super::resize::loads;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};

/// `DF_1_PIE` of `DT_FLAGS_1`.
const DF_1_PIE: u64 = 0x0800_0000;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
/// Holes from this size on are refused.
const LARGEST_GAP: u64 = 1 << 36;
/// Why there is no place.
const NOTHING: &str = "it loads nothing";
const FULL: &str = "it is loaded to the end of memory";

/// Where the new segment goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) address: u64,
}

/// Whether the file is a program, not a library.
fn is_program(elf: &Elf<'_>) -> bool {
    let flags = elf.file.dynamic().ok().flatten().and_then(|dynamic| dynamic.value(DT_FLAGS_1));
    elf.header.e_type == ET_EXEC
        || elf.segments.iter().any(|segment| segment.p_type == PT_INTERP)
        || flags.is_some_and(|flags| flags & DF_1_PIE != 0)
}

/// The place for a segment behind `segments`, at `offset` of the file or behind it. `headers` says whether program headers go there.
pub(super) fn place(
    elf: &Elf<'_>,
    segments: &[Phdr<LE>],
    (offset, page): (u64, u64),
    headers: bool,
) -> Result<Place> {
    let at = elf.header.e_phoff.get();
    let no_room = |why| Error::new(at, ErrorKind::NoRoom(why));
    let alignment = loads(elf).map(|load| load.p_align.get()).max().unwrap_or(page).max(page);
    let top = |load: &Phdr<LE>| {
        load.p_vaddr.get().checked_add(load.p_memsz.get())?.checked_next_multiple_of(alignment)
    };
    let loaded = || segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    let first = loaded().min_by_key(|load| load.p_vaddr.get()).ok_or(no_room(NOTHING))?;
    let tops: Option<Vec<u64>> = loaded().map(top).collect();
    let top = tops.and_then(|tops| tops.into_iter().max()).ok_or(no_room(FULL))?;
    if headers && is_program(elf) {
        // Kernels before 5.18 tell a program where its headers are by their offset from the first segment: it has to be the same
        // in memory. What lies between is a hole.
        let bias = first.p_vaddr.get().checked_sub(first.p_offset.get());
        let bias = bias.ok_or(no_room("the first segment stands before its offset"))?;
        let new = offset.max(top.saturating_sub(bias));
        let gap = new.saturating_sub(offset);
        if gap >= LARGEST_GAP {
            return Err(Error::new(offset, ErrorKind::Gap(gap)));
        }
        return Ok(Place { offset: new, address: new.saturating_add(bias) });
    }
    // eu-elflint takes a relocation to write as many bytes as its symbol has: none may seem to reach into the segment
    let mut largest = 0;
    for table in elf.tables.iter().filter(|section| section.sh_type == SHT_DYNSYM) {
        let sizes = elf.symbols(table)?.iter().map(|symbol| symbol.st_size.get());
        largest = sizes.filter(|size| *size < 1 << 26).max().unwrap_or(0).max(largest);
    }
    let top = top.checked_add(largest).and_then(|top| top.checked_next_multiple_of(page));
    let address = top.and_then(|top| top.checked_add(offset % page)).ok_or(no_room(FULL))?;
    if address > u64::MAX >> 1 {
        return Err(no_room(FULL));
    }
    Ok(Place { offset, address })
}
