//! Regions that do not fit where they are: they go into a segment of their own at the file's end. Nothing else that is loaded
//! moves, but for the program headers where there is no room for one more.

use anyhow::{Context as _, Result, ensure};
use elf_core::names::{ET_EXEC, PF_R, PT_INTERP, PT_LOAD, PT_PHDR, SHT_DYNSYM, SHT_NOBITS};
use elf_core::raw64::Phdr;
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use super::elf::Elf;
use super::pointers::{self, Move};
use super::{Blob, Change, Plan, code};

mod sections;

/// What regions are aligned to.
const ALIGNMENT: u64 = 16;
/// `DF_1_PIE` of `DT_FLAGS_1`.
const DF_1_PIE: u64 = 0x0800_0000;
const DT_FLAGS_1: u64 = 0x6fff_fffb;

const PHDR: u64 = size_of::<Phdr<LE>>() as u64;

/// Where the new segment goes.
struct Place {
    offset: u64,
    address: u64,
    alignment: u64,
}

/// Moves regions into a new segment.
pub(super) fn plan(elf: &Elf<'_>, grow: &[&Change], plan: &mut Plan) -> Result<()> {
    ensure!(
        elf.header.e_phnum.get() < 0xfffe && elf.header.e_shnum.get() < 0xfeff,
        "too many headers"
    );
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
    let mut content: Vec<(u64, Blob)> = Vec::new();
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
            size = size.checked_add(change.new_size()).context("too many bytes")?;
        }
        moved.push((group.section, start..size));
    }
    moves.sort_by_key(|one| one.old);
    code::check(elf, &moves)?;
    pointers::retarget(elf, &moves, plan)?;
    let segments = segments(elf, &place, size, in_place)?;
    if !in_place {
        content.insert(0, (0, segments.as_bytes().to_vec().into()));
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
    for (offset, bytes) in content {
        let start = place.offset.saturating_add(offset);
        plan.edits.append(end, start.saturating_sub(at), bytes.clone());
        at = start.saturating_add(bytes.len() as u64);
    }
    if !elf.sections.is_empty() {
        let (at, count) = sections::write(elf, &moved, &place, end, size, plan)?;
        header.e_shoff = at.into();
        header.e_shnum = count.into();
    }
    plan.edits.put(0, header.as_bytes())?;
    plan.moved = grow.len();
    Ok(())
}

/// Whether the file is a program, not a library.
fn is_program(elf: &Elf<'_>) -> bool {
    let flags = elf.file.dynamic().ok().flatten().and_then(|dynamic| dynamic.value(DT_FLAGS_1));
    elf.header.e_type == ET_EXEC
        || elf.segments.iter().any(|segment| segment.p_type == PT_INTERP)
        || flags.is_some_and(|flags| flags & DF_1_PIE != 0)
}

/// The place for a segment behind all others, in the file and in memory.
fn place(elf: &Elf<'_>, end: u64) -> Result<Place> {
    let loads = || elf.segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    let alignment =
        loads().map(|load| load.p_align.get()).max().context("loads nothing")?.max(0x1000);
    ensure!(
        alignment.is_power_of_two() && alignment <= 1 << 30,
        "a segment is aligned to {alignment:#x}"
    );
    let top = |load: &Phdr<LE>| {
        load.p_vaddr.get().checked_add(load.p_memsz.get())?.checked_next_multiple_of(alignment)
    };
    let top = loads().map(top).max().flatten().context("is loaded to the end of memory")?;
    let first = loads().min_by_key(|load| load.p_vaddr.get()).context("loads nothing")?;
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
        let top = top.context("is loaded to the end of memory")?;
        // what the last page holds before is mapped along, as linkers do
        return Ok(Place { offset: end, address: top.saturating_add(end % alignment), alignment });
    }
    // Kernels before 5.18 tell a program where its headers are by their offset from the first segment: it has to be the same in
    // memory. What lies between is a hole.
    let bias =
        first.p_vaddr.get().checked_sub(first.p_offset.get()).context("an odd first segment")?;
    let offset = end.max(top.saturating_sub(bias));
    ensure!(
        offset.saturating_sub(end) < 1 << 36,
        "has {:#x} bytes without content",
        offset.saturating_sub(end)
    );
    Ok(Place { offset, address: offset.saturating_add(bias), alignment })
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
fn segments(elf: &Elf<'_>, place: &Place, size: u64, in_place: bool) -> Result<Vec<Phdr<LE>>> {
    let mut segments = elf.segments.clone();
    let last =
        segments.iter().rposition(|segment| segment.p_type == PT_LOAD).context("loads nothing")?;
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
    Ok(segments)
}
