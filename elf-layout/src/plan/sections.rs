//! Every section to its group, or to the address it carries.

use crate::error::{Error, ErrorKind};
use crate::model::edits::{Edit, EditRange};
use crate::model::features::{LINKER_DEFINED, START_FILES, THREAD_LOCAL};
use crate::model::fixed::Fixed;
use crate::model::options::Options;
use crate::model::spans::{Group, Spans, alignment_of, group_of};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState};
use crate::plan::runs::Runs;
use crate::plan::runs::key::Gathers;
use elf_core::{File, SectionFlags, SectionHeader};

/// How sections are placed.
#[derive(Clone, Copy)]
pub(crate) struct How<'e> {
    /// Whether members of COMDAT groups may be discarded.
    pub(crate) grouped: bool,
    /// Which sections of one name stand together.
    pub(crate) gathers: Gathers,
    /// Bytes that go.
    pub(crate) edits: &'e [Edit],
}

/// Gives every section of all objects its place, where none has any; with those that stand together, if any do.
pub(crate) fn place_all<'p, 'a>(
    files: &'p [File<'a>],
    objects: &'p [ObjectSlot<'a>],
    sections: &mut [SectionSlot],
    options: &Options,
    how: How<'_>,
    (spans, fixed): (&mut Spans, &mut Fixed),
) -> Result<Option<Runs<'p, 'a>>, Error> {
    let mut runs = (LINKER_DEFINED && how.gathers != Gathers::Nothing)
        .then(|| Runs::new(files, objects, how.gathers));
    for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects)) {
        let placed = (&mut *spans, &mut *fixed);
        place(number, file, object, sections, options, placed, (how, runs.as_mut()))?;
    }
    if LINKER_DEFINED && let Some(runs) = &mut runs {
        runs.place(sections, spans, options)?;
    }
    Ok(runs)
}

/// Appends every section of one object that occupies memory to its group; those that are discarded already stay so, those that
/// `runs` enters are placed later.
// its frame is not to stand below those of the steps behind it
#[inline(never)]
fn place(
    number: usize,
    file: &File<'_>,
    object: &ObjectSlot<'_>,
    sections: &mut [SectionSlot],
    options: &Options,
    (spans, fixed): (&mut Spans, &mut Fixed),
    (how, mut runs): (How<'_>, Option<&mut Runs<'_, '_>>),
) -> Result<(), Error> {
    let first = object.first_section;
    let mut next = 0u32;
    file.sections().try_for_each(|header| {
        let index = next;
        next = index.wrapping_add(1);
        let at = first.saturating_add(index as usize);
        let Some(slot) = sections.get_mut(at) else { return Ok(()) };
        if how.grouped && slot.state == SectionState::Discarded {
            return Ok(());
        }
        let is_edited = cfg!(feature = "edits") && !how.edits.is_empty();
        let range = if is_edited { slot.edits } else { EditRange::default() };
        let gone = if is_edited { range.of(how.edits).deleted() } else { 0 };
        let size = header.size.wrapping_sub(gone);
        *slot = SectionSlot { size, edits: range, ..SectionSlot::default() };
        let Some(group) = group_of(&header, options) else { return Ok(()) };
        let error = |kind| Error { object: number, section: index, kind };
        let off = |feature| {
            let kind = elf_core::ErrorKind::FeatureOff(feature);
            Error::elf(number, index)(elf_core::Error { at: header.offset, kind })
        };
        if !THREAD_LOCAL && header.flags.contains(SectionFlags::TLS) {
            return Err(off("thread-local"));
        }
        if LINKER_DEFINED
            && let Some(runs) = &mut runs
            && runs.enter(at, (file, &header), sections)
        {
            if START_FILES && let Some(slot) = sections.get_mut(at) {
                slot.unwinding = is_unwinding(file, &header);
            }
            return Ok(());
        }
        let Some(slot) = sections.get_mut(at) else { return Ok(()) };
        let alignment = alignment_of(&header, options);
        let alignment = alignment.map_err(|found| error(ErrorKind::Alignment(found)))?;
        if header.address == 0 {
            slot.unwinding = is_unwinding(file, &header);
            let room = room(file, &header, slot);
            let offset = spans.append(group, room, alignment);
            slot.offset = offset.ok_or_else(|| error(ErrorKind::TooLarge))?;
            slot.state = SectionState::Placed(group);
        } else if !cfg!(feature = "addresses") {
            return Err(off("addresses"));
        } else {
            let overlap = error(ErrorKind::Overlap { address: header.address });
            slot.offset = header.address.checked_sub(options.base.unwrap_or(0)).ok_or(overlap)?;
            slot.state = SectionState::Placed(Group::Fixed);
            let end = slot.offset.checked_add(header.size).ok_or(error(ErrorKind::TooLarge))?;
            spans.fixed_end = spans.fixed_end.max(end);
            fixed.append(at, sections).ok_or(overlap)?;
        }
        Ok(())
    })
}

/// Bytes that a section takes with what is put behind it.
pub(crate) fn room(file: &File<'_>, header: &SectionHeader, slot: &SectionSlot) -> u64 {
    let behind = match slot.unwinding {
        // a length of 0 ends unwinding tables (LSB, "Exception Frames"): linkers add it
        true => 4,
        false if is_fragment(file, header) => FRAGMENT_ROOM,
        false => 0,
    };
    slot.size.saturating_add(behind)
}

/// Whether a section tells how to unwind.
fn is_unwinding(file: &File<'_>, header: &SectionHeader) -> bool {
    let constant = header.flags & (ALLOC | WRITE | EXECINSTR) == ALLOC;
    constant && file.section_names().is(header.name, ".eh_frame".into())
}

/// Bytes behind each section of code that is named `.init` or `.fini`: who wants to run these fragments of functions, which the start
/// files of a program make whole, ends each there.
pub const FRAGMENT_ROOM: u64 = 8;

/// Whether a section is such a fragment.
fn is_fragment(file: &File<'_>, header: &SectionHeader) -> bool {
    let name = usize::try_from(header.name).unwrap_or(usize::MAX);
    let name = file.section_names().as_bytes().get(name..).unwrap_or_default();
    header.flags.contains(EXECINSTR)
        && (name.starts_with(b".init\0") || name.starts_with(b".fini\0"))
}

const ALLOC: SectionFlags = SectionFlags::ALLOC;
const WRITE: SectionFlags = SectionFlags::WRITE;
const EXECINSTR: SectionFlags = SectionFlags::EXECINSTR;
