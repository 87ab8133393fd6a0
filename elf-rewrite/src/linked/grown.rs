//! Regions that do not fit where they are: they go into a segment of their own at the file's end. Nothing else that is loaded
//! moves, but for the program headers where there is no room for one more.

use elf_core::names::{PF_R, PT_LOAD, PT_PHDR, SHT_NOBITS};
use elf_core::raw64::Phdr;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use super::moves::Move;
use super::place::{ALIGNMENT, Place, place};
use super::{code, pointers, sections};
use crate::change::{Change, Known};
use crate::edits::With;
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Draft;

const PHDR: u64 = size_of::<Phdr<LE>>() as u64;

/// Moves regions into a new segment.
pub(super) fn plan(elf: &Elf<'_>, grow: &[&Change], known: &Known, plan: &mut Draft) -> Result<()> {
    if elf.header.e_phnum.get() >= 0xfffe || elf.header.e_shnum.get() >= 0xfeff {
        return Err(Error::new(0, ErrorKind::TooManyHeaders));
    }
    // The section headers are written anew behind the segment; where they were the file's end, they go.
    let end = if elf.sections_end() == elf.size() && !elf.sections.is_empty() {
        elf.header.e_shoff.get()
    } else {
        elf.size()
    };
    let place = place(elf, end)?;
    let in_place = has_room(elf);
    let table = elf.segments.len().saturating_add(1).saturating_mul(size_of::<Phdr<LE>>());
    let mut size = if in_place { 0 } else { table as u64 };
    // offsets in the new segment, and what is there
    let mut content: Vec<(u64, With)> = Vec::new();
    let mut moves = Vec::new();
    let groups = sections::groups(elf, grow);
    let mut moved = Vec::new();
    for group in &groups {
        let start = size.next_multiple_of(ALIGNMENT);
        for change in &group.changes {
            size = size.next_multiple_of(ALIGNMENT);
            moves.push(Move {
                old: elf.address(change.at)?,
                size: change.size,
                new: place.address.saturating_add(size),
                new_size: change.new_size(),
                offset: change.at,
                section: group.section.unwrap_or(elf.sections.len()),
            });
            content.push((size, change.new.clone()));
            size = size.saturating_add(change.new_size());
        }
        moved.push((group.section, start..size));
    }
    moves.sort_by_key(|one| one.old);
    code::check(elf, &moves)?;
    pointers::retarget(elf, &moves, &known.pointers, plan)?;
    let segments = segments(elf, &place, size, in_place);
    if !in_place {
        content.insert(0, (0, With::Made(segments.as_bytes().to_vec())));
    }
    let mut header = elf.header;
    header.e_phnum = (header.e_phnum.get().saturating_add(1)).into();
    if in_place {
        plan.edits.put(header.e_phoff.get(), segments.as_bytes())?;
    } else {
        header.e_phoff = place.offset.into();
    }
    plan.edits.replace(end..elf.size(), Vec::new())?;
    let mut at = end;
    for (offset, with) in content {
        let start = place.offset.saturating_add(offset);
        let zeros = start.saturating_sub(at);
        at = start.saturating_add(with.size());
        plan.edits.append(end, zeros, with);
    }
    if !elf.sections.is_empty() {
        let (at, count) = sections::write(elf, &moved, &place, (end, size), &known.names, plan)?;
        header.e_shoff = at.into();
        header.e_shnum = count.into();
    }
    plan.edits.put(0, header.as_bytes())?;
    plan.moved = grow.len();
    Ok(())
}

/// Whether there is room for a program header behind those that there are.
fn has_room(elf: &Elf<'_>) -> bool {
    let start = elf.header.e_phoff.get();
    let end = start.saturating_add((elf.segments.len() as u64).saturating_mul(PHDR));
    let free = end..end.saturating_add(PHDR);
    let sections = elf
        .sections
        .iter()
        .filter(|section| section.sh_type != SHT_NOBITS && section.sh_size.get() != 0);
    let sections = sections.map(|section| (section.sh_offset.get(), section.sh_size.get()));
    let segments = elf
        .segments
        .iter()
        .filter(|segment| segment.p_type != PT_LOAD && segment.p_type != PT_PHDR);
    let segments = segments.map(|segment| (segment.p_offset.get(), segment.p_filesz.get()));
    let headers = [(elf.header.e_shoff.get(), 1)];
    let loaded = elf.segments.iter().any(|segment| {
        segment.p_type == PT_LOAD
            && segment.p_offset.get() <= start
            && segment.p_offset.get().saturating_add(segment.p_filesz.get()) >= free.end
    });
    let taken = sections
        .chain(segments)
        .chain(headers)
        .any(|(at, size)| size != 0 && at < free.end && at.saturating_add(size) > free.start);
    let range = usize::try_from(free.start).unwrap_or(usize::MAX)
        ..usize::try_from(free.end).unwrap_or(usize::MAX);
    let zero = elf.bytes().get(range).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
    loaded && !taken && zero && !elf.sections.is_empty()
}

/// The program headers with one more, behind the last that is loaded.
fn segments(elf: &Elf<'_>, place: &Place, size: u64, in_place: bool) -> Vec<Phdr<LE>> {
    let mut segments = elf.segments.clone();
    let last = segments.iter().rposition(|segment| segment.p_type == PT_LOAD).unwrap_or_default();
    let new = Phdr {
        p_type: PT_LOAD.into(),
        p_flags: PF_R.into(),
        p_offset: place.offset.into(),
        p_vaddr: place.address.into(),
        p_paddr: place.address.into(),
        p_filesz: size.into(),
        p_memsz: size.into(),
        p_align: place.alignment.into(),
    };
    segments.insert(last.saturating_add(1), new);
    let table = (segments.len() as u64).saturating_mul(PHDR);
    for segment in segments.iter_mut().filter(|segment| segment.p_type == PT_PHDR) {
        if !in_place {
            (segment.p_offset, segment.p_vaddr, segment.p_paddr) =
                (place.offset.into(), place.address.into(), place.address.into());
        }
        (segment.p_filesz, segment.p_memsz) = (table.into(), table.into());
    }
    segments
}
