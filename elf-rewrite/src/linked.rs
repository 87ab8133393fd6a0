//! Executables and shared libraries: nothing that is loaded moves but regions, and tables that make room for program headers.

use std::collections::HashSet;

use elf_core::names::PT_NOTE;

use crate::change::{Change, Known};
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Draft, Remark};
use layout::{Cuts, Task};
use packed::Packed;

mod code;
mod content;
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
    let page = resize::page(elf)?;
    let packed = packed::sections(elf, changes, known, page);
    let grows: Vec<_> = packed.iter().filter(|one| one.grows()).cloned().collect();
    // What is best comes first: sections of regions laid out anew, so that nothing is free between regions and there is one section
    // of a name, as tools want. Where something stands against that, fewer of them; and then regions where they are.
    // Tables move to make room for program headers if they can.
    let mut attempts: Vec<(&[Packed], Cuts, bool)> = Vec::new();
    for keeps in [false, true] {
        let some = [(&*packed, Cuts::All), (&*grows, Cuts::All), (&*grows, Cuts::Tails)];
        for (packed, cuts) in some.into_iter().chain([(&[][..], Cuts::All), (&[], Cuts::Tails)]) {
            let is_same = |one: &(&[Packed], Cuts, bool)| {
                (one.0.len(), one.1, one.2) == (packed.len(), cuts, keeps)
            };
            if !attempts.iter().any(is_same) {
                attempts.push((packed, cuts, keeps));
            }
        }
    }
    let mut draft = Err(Error::new(0, ErrorKind::Unreferenced));
    for (packed, cuts, keeps) in attempts {
        let new = with(elf, changes, packed, cuts, keeps, known);
        if new.is_ok() || !keeps {
            draft = new;
        }
        if draft.is_ok() {
            break;
        }
    }
    let mut draft = draft?;
    remarks(elf, &mut draft);
    Ok(draft)
}

/// Makes changes, where the regions of some sections are laid out anew.
fn with(
    elf: &Elf<'_>,
    changes: &[Change],
    packed: &[Packed],
    cuts: Cuts,
    keeps_tables: bool,
    known: &Known,
) -> Result<Draft> {
    let whole: HashSet<usize> = packed.iter().map(|one| one.section).collect();
    let is_whole =
        |change: &&Change| elf.section_at(change.at).is_some_and(|at| whole.contains(&at));
    let rest = changes.iter().filter(|change| !is_whole(change));
    let (alone, fit) = rest.partition(|change| change.new_size() > change.size);
    relaid::plan(elf, &Task { packed, fit, alone, cuts, keeps_tables }, known)
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
    let end = elf.sections_end();
    if elf.header.e_shoff.get() != 0 && elf.size() > end {
        let loaded = elf
            .segments
            .iter()
            .any(|segment| segment.p_filesz.get() != 0 && segment.p_offset.get() >= end);
        if !loaded {
            plan.remarks.push(Remark::TailKept(elf.size().saturating_sub(end)));
        }
    }
}
