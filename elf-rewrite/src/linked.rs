//! Executables and shared libraries: nothing that is loaded moves but regions, and tables that make room for program headers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use elf_core::names::{PT_NOTE, SHT_NOBITS};

use crate::change::{Change, Known};
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Draft, Remark};
use code::Checker;
use header_placement::Tables;
use layout::{Cuts, Task};
use packed::Packed;

mod code;
mod content;
mod gap;
mod header_placement;
mod layout;
mod moves;
mod packed;
mod place;
mod pointers;
mod relaid;
mod resize;
mod sections;
mod segments;

/// How to make changes to a linked file.
pub(crate) fn plan(elf: &Elf<'_>, changes: &[Change], known: &Known) -> Result<Draft> {
    if elf.header.e_phnum.get() >= 0xff00 || elf.header.e_shnum.get() >= 0xfe00 {
        return Err(Error::new(0, ErrorKind::TooManyHeaders));
    }
    pointers::check_places(elf, changes)?;
    let (changes, left) = movable(elf, changes, known)?;
    let changes = &*changes;
    let page = resize::page(elf)?;
    let packed = packed::sections(elf, changes, known, page);
    let grows: Vec<_> = packed.iter().filter(|one| one.grows()).cloned().collect();
    // What is best comes first: sections of regions laid out anew, so that nothing is free between regions and there is one section
    // of a name, as tools want. Where something stands against that, fewer of them; and then regions where they are.
    // Tables move to make room for program headers if they can.
    let mut attempts: Vec<(&[Packed], Cuts, Tables)> = Vec::new();
    for tables in [&[Tables::InOrder, Tables::Fewest][..], &[Tables::None]] {
        let some = [(&*packed, Cuts::All), (&*grows, Cuts::All), (&*grows, Cuts::Tails)];
        for (packed, cuts) in some.into_iter().chain([(&[][..], Cuts::All), (&[], Cuts::Tails)]) {
            for &tables in tables {
                let is_same = |one: &(&[Packed], Cuts, Tables)| {
                    (one.0.len(), one.1, one.2) == (packed.len(), cuts, tables)
                };
                if !attempts.iter().any(is_same) {
                    attempts.push((packed, cuts, tables));
                }
            }
        }
    }
    let code = Checker::new(elf);
    let mut draft = Err(Error::new(0, ErrorKind::Unreferenced));
    for (packed, cuts, tables) in attempts {
        let (alone, fit) = apart(elf, changes, packed);
        let task = Task { packed, fit, alone, cuts, tables };
        let new = relaid::plan(elf, &task, known, &code);
        if new.is_ok() || tables != Tables::None {
            draft = new;
        }
        if draft.is_ok() {
            break;
        }
    }
    let mut draft = draft?;
    if !left.is_empty() {
        draft.remarks.push(Remark::Left(left.len() as u64));
        draft.left = left;
    }
    remarks(elf, &mut draft);
    Ok(draft)
}

/// The changes that can be made, and the offsets of regions that are left as they are: they grow, and nothing would lead to them
/// elsewhere.
fn movable<'c>(
    elf: &Elf<'_>,
    changes: &'c [Change],
    known: &Known,
) -> Result<(Cow<'c, [Change]>, Vec<u64>)> {
    if !known.leaves_unreferenced {
        return Ok((Cow::Borrowed(changes), Vec::new()));
    }
    let growing = changes.iter().filter(|change| change.new_size() > change.size);
    let growing: HashMap<u64, u64> =
        growing.filter_map(|change| Some((elf.address(change.at).ok()?, change.at))).collect();
    let addresses = growing.keys().copied().collect();
    let referenced = pointers::referenced(elf, &addresses, &known.pointers)?;
    let left = growing.iter().filter(|(address, _)| !referenced.contains(address));
    let mut left: Vec<u64> = left.map(|(_, at)| *at).collect();
    left.sort_unstable();
    let stays = |change: &&Change| left.binary_search(&change.at).is_err();
    Ok((changes.iter().filter(stays).cloned().collect(), left))
}

/// Changes in sections that are not laid out anew: those of regions that grow, and others.
fn apart<'c>(
    elf: &Elf<'_>,
    changes: &'c [Change],
    packed: &[Packed],
) -> (Vec<&'c Change>, Vec<&'c Change>) {
    let whole: HashSet<usize> = packed.iter().map(|one| one.section).collect();
    let is_whole =
        |change: &&Change| elf.section_at(change.at).is_some_and(|at| whole.contains(&at));
    let rest = changes.iter().filter(|change| !is_whole(change));
    rest.partition(|change| change.new_size() > change.size)
}

/// What else in the file depends on its bytes.
fn remarks(elf: &Elf<'_>, plan: &mut Draft) {
    let is_note = |segment: &elf_core::ProgramHeader| segment.r#type == PT_NOTE;
    let has_id = elf.file.segments().iter().filter(is_note).any(|segment| {
        elf.file
            .segment_data(&segment)
            .is_ok_and(|data| data.windows(4).any(|name| name == b"GNU\0"))
            && elf.sections.iter().any(|section| elf.name(section) == ".note.gnu.build-id")
    });
    if has_id {
        plan.remarks.push(Remark::BuildIdKept);
    }
    let end = known_end(elf);
    if elf.header.e_shoff.get() != 0 && elf.size() > end {
        plan.remarks.push(Remark::TailKept(elf.size().saturating_sub(end)));
    }
}

/// Offset behind all that the headers tell of: patchelf puts sections behind the section headers.
fn known_end(elf: &Elf<'_>) -> u64 {
    let sections = elf.sections.iter().filter(|section| section.sh_type != SHT_NOBITS);
    let sections = sections.map(|section| (section.sh_offset.get(), section.sh_size.get()));
    let segments = elf.segments.iter();
    let segments = segments.map(|segment| (segment.p_offset.get(), segment.p_filesz.get()));
    let ends = sections.chain(segments).map(|(start, size)| start.saturating_add(size));
    ends.fold(elf.sections_end(), u64::max)
}
