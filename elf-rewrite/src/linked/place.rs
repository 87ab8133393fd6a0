//! The place for a segment behind all others, in the file and in memory.

use elf_core::names::{ET_EXEC, PT_INTERP, PT_LOAD, SHT_DYNSYM};
use elf_core::raw64::Phdr;
use zerocopy::byteorder::LE;

use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};

/// What regions are aligned to.
pub(super) const ALIGNMENT: u64 = 16;
/// `DF_1_PIE` of `DT_FLAGS_1`.
const DF_1_PIE: u64 = 0x0800_0000;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
/// Holes from this size on are refused.
const LARGEST_GAP: u64 = 1 << 36;
/// Why there is no place.
const NOTHING: &str = "it loads nothing";
const FULL: &str = "it is loaded to the end of memory";

/// Where the new segment goes.
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) alignment: u64,
}

/// Whether the file is a program, not a library.
fn is_program(elf: &Elf<'_>) -> bool {
    let flags = elf.file.dynamic().ok().flatten().and_then(|dynamic| dynamic.value(DT_FLAGS_1));
    elf.header.e_type == ET_EXEC
        || elf.segments.iter().any(|segment| segment.p_type == PT_INTERP)
        || flags.is_some_and(|flags| flags & DF_1_PIE != 0)
}

/// The place for a segment behind all others, in the file and in memory.
pub(super) fn place(elf: &Elf<'_>, end: u64) -> Result<Place> {
    let loads = || elf.segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    let headers = elf.header.e_phoff.get();
    let no_room = |why| Error::new(headers, ErrorKind::NoRoom(why));
    let alignment = loads().map(|load| load.p_align.get()).max().ok_or(no_room(NOTHING))?;
    let alignment = alignment.max(0x1000);
    if !alignment.is_power_of_two() || alignment > 1 << 30 {
        return Err(Error::new(headers, ErrorKind::Alignment(alignment)));
    }
    let top = |load: &Phdr<LE>| {
        load.p_vaddr.get().checked_add(load.p_memsz.get())?.checked_next_multiple_of(alignment)
    };
    let top = loads().map(top).max().flatten().ok_or(no_room(FULL))?;
    let first = loads().min_by_key(|load| load.p_vaddr.get()).ok_or(no_room(NOTHING))?;
    let end = end.next_multiple_of(ALIGNMENT);
    if !is_program(elf) {
        // eu-elflint takes a relocation to write as many bytes as its symbol has: none may seem to reach into the segment
        let dynamic = elf.tables.iter().filter(|section| section.sh_type == SHT_DYNSYM);
        let mut largest = 0;
        for table in dynamic {
            let sizes = elf.symbols(table)?.iter().map(|symbol| symbol.st_size.get());
            largest = sizes.filter(|size| *size < 1 << 26).max().unwrap_or(0).max(largest);
        }
        let top = top.checked_add(largest).and_then(|top| top.checked_next_multiple_of(alignment));
        let top = top.ok_or(no_room(FULL))?;
        // what the last page holds before is mapped along, as linkers do
        return Ok(Place { offset: end, address: top.saturating_add(end % alignment), alignment });
    }
    // Kernels before 5.18 tell a program where its headers are by their offset from the first segment: it has to be the same in
    // memory. What lies between is a hole.
    let bias = first.p_vaddr.get().checked_sub(first.p_offset.get());
    let bias = bias.ok_or(no_room("the first segment stands before its offset"))?;
    let offset = end.max(top.saturating_sub(bias));
    let gap = offset.saturating_sub(end);
    if gap >= LARGEST_GAP {
        return Err(Error::new(end, ErrorKind::Gap(gap)));
    }
    Ok(Place { offset, address: offset.saturating_add(bias), alignment })
}
