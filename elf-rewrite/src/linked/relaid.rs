//! A layout as changes to the file: contents, headers, and all that points to what moved.

use zerocopy::IntoBytes as _;

use super::code::Checker;
use super::layout::{Layout, Task, layout};
use super::pointers;
use super::resize::page;
use super::sections::{Table, table};
use crate::change::Known;
use crate::edits::{Edits, With};
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result, index};
use crate::plan::{Draft, Remark};

/// How to do a task.
pub(super) fn plan(
    elf: &Elf<'_>,
    task: &Task<'_>,
    known: &Known,
    code: &Checker<'_, '_>,
) -> Result<Draft> {
    let layout = layout(elf, task)?;
    let sections = table(elf, &layout.sections, layout.fresh, &layout.resizes, &known.names)?;
    let mut patches = Edits::default();
    if !layout.moves.is_empty() {
        pointers::check_forms(elf)?;
        code.check(&layout.moves)?;
    }
    if !layout.moves.is_empty() || sections.is_other() {
        pointers::retarget(elf, &layout.moves, &known.pointers, &sections, &mut patches)?;
    }
    let page = page(elf)?;
    let moved: usize =
        task.packed.iter().filter(|one| !one.stays(elf, page)).map(|one| one.regions.len()).sum();
    let all: usize = task.packed.iter().map(|one| one.regions.len()).sum();
    let mut draft = Draft {
        in_place: task.fit.len().saturating_add(all).saturating_sub(moved),
        moved: task.alone.len().saturating_add(moved),
        holes: layout.zeros,
        ..Draft::default()
    };
    write(elf, layout, sections, patches, &mut draft)?;
    Ok(draft)
}

fn write(
    elf: &Elf<'_>,
    layout: Layout,
    sections: Table,
    mut patches: Edits,
    draft: &mut Draft,
) -> Result<()> {
    let Layout { resizes, replaced, inserted, segments, block, headers, .. } = layout;
    let edits = &mut draft.edits;
    let tables = block.map(|block| {
        let range = block.range;
        patched(elf, range.start, range.end, patches.take(&range)).map(|bytes| (range, bytes))
    });
    let tables = tables.transpose()?;
    let kept = tables.as_ref().map(|(range, bytes)| (range, &**bytes));
    for one in replaced {
        if one.content.size() > 0 || one.range.start < one.range.end {
            edits.replace(one.range, one.content.into_parts(kept))?;
        }
    }
    let mut header = elf.header;
    header.e_phnum =
        u16::try_from(segments.len()).map_err(|_| Error::new(0, ErrorKind::TooManyHeaders))?.into();
    // program headers, and zeros where tables were or headers are no more
    let start = elf.header.e_phoff.get();
    let mut program = With::Made(segments.as_bytes().to_vec());
    let old_end = start.saturating_add(elf.segments.as_bytes().len() as u64);
    let mut insert = inserted.map(|one| (one.range, one.content.into_parts(kept)));
    if let Some(offset) = headers {
        header.e_phoff = offset.into();
        draft.remarks.push(Remark::HeadersMoved);
        let (_, parts) = insert.as_mut().ok_or(Error::outside(start, "program headers"))?;
        let place = parts
            .iter_mut()
            .find(|part| matches!(part, With::Zeros(size) if *size == program.size()));
        core::mem::swap(place.ok_or(Error::outside(start, "program headers"))?, &mut program);
    } else {
        let end = start.saturating_add(program.size()).max(old_end);
        let end = kept.map_or(end, |(range, _)| end.max(range.end));
        let zeros = end.saturating_sub(start).saturating_sub(program.size());
        let is_same = segments.as_bytes() == elf.segments.as_bytes() && kept.is_none();
        if !is_same {
            edits.replace(start..end, vec![program, With::Zeros(zeros)])?;
        }
    }
    header.e_shoff = resizes.shifted(elf.header.e_shoff.get()).into();
    if let Some((_, name)) = &sections.fresh {
        draft.remarks.push(Remark::NewSection(name.clone()));
    }
    if !elf.sections.is_empty() {
        section_headers(elf, &resizes, sections, edits, &mut header)?;
    }
    if header.as_bytes() != elf.header.as_bytes() {
        edits.put(0, header.as_bytes())?;
    }
    edits.include(0, patches)?;
    if let Some((range, parts)) = insert {
        if range.is_empty() {
            edits.insert(range.start, parts)?;
        } else {
            edits.replace(range, parts)?;
        }
    }
    Ok(())
}

/// The section headers: where they are, or at the end of the file if they are more.
fn section_headers(
    elf: &Elf<'_>,
    resizes: &super::resize::Resizes,
    mut sections: Table,
    edits: &mut Edits,
    header: &mut elf_core::raw64::Ehdr<zerocopy::byteorder::LE>,
) -> Result<()> {
    let count = u16::try_from(sections.rows.len());
    header.e_shnum = count.map_err(|_| Error::new(0, ErrorKind::TooManyHeaders))?.into();
    header.e_shstrndx = sections.index(elf.header.e_shstrndx.get()).into();
    let start = elf.header.e_shoff.get();
    let is_last = elf.sections_end() == elf.size();
    if sections.rows.len() == elf.sections.len() && sections.names.is_none() {
        let is_same = sections.rows.as_bytes() == elf.sections.as_bytes();
        return if is_same { Ok(()) } else { edits.put(start, sections.rows.as_bytes()) };
    }
    // names, and then headers, behind all other bytes
    let at = if is_last { start } else { elf.size() };
    let mut new = resizes.shifted(at);
    let mut parts = Vec::new();
    if let Some((row, names)) = sections.names.take()
        && let Some(row) = sections.rows.get_mut(row)
    {
        (row.sh_offset, row.sh_size) = (new.into(), (names.len() as u64).into());
        new = new.saturating_add(names.len() as u64);
        parts.push(With::Made(names));
    }
    let aligned = new.next_multiple_of(8);
    parts.push(With::Zeros(aligned.saturating_sub(new)));
    parts.push(With::Made(sections.rows.as_bytes().to_vec()));
    header.e_shoff = aligned.into();
    if is_last { edits.replace(start..elf.size(), parts) } else { edits.insert(elf.size(), parts) }
}

/// Bytes of the file with changes to some of them.
fn patched(elf: &Elf<'_>, start: u64, end: u64, patches: Vec<(u64, Vec<u8>)>) -> Result<Vec<u8>> {
    let outside = Error::outside(start, "a table");
    let bytes = elf.bytes().get(index(start)?..index(end)?);
    let mut bytes = bytes.ok_or(outside.clone())?.to_vec();
    for (at, new) in patches {
        let from = index(at.saturating_sub(start))?;
        let range = from..from.saturating_add(new.len());
        bytes.get_mut(range).ok_or(outside.clone())?.copy_from_slice(&new);
    }
    Ok(bytes)
}
