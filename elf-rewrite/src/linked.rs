//! Executables and shared libraries: nothing that is loaded moves but regions that do not fit.

use std::collections::HashSet;
use std::ops::Range;

use elf_core::names::PT_NOTE;

use crate::change::{Change, Known};
use crate::edits::With;
use crate::elf::Elf;
use crate::error::Result;
use crate::plan::{Draft, Remark};

mod code;
mod grown;
mod moves;
mod place;
mod pointers;
mod sections;
mod trimmed;

/// How to make changes to a linked file.
pub(crate) fn plan(elf: &Elf<'_>, changes: &[Change], known: &Known) -> Result<Draft> {
    let grows = |change: &Change| change.new_size() > change.size;
    let growing = changes.iter().filter(|change| grows(change));
    let sections: HashSet<_> = growing.filter_map(|change| elf.section_at(change.at)).collect();
    let is_in = |change: &Change| {
        let section = elf.section_at(change.at);
        change.new_size() > 0 && section.is_some_and(|section| sections.contains(&section))
    };
    // A section of regions moves as a whole, so that there is still one of its name: tools look no further. Where that cannot be,
    // what does not grow stays.
    let others = if sections.is_empty() { Vec::new() } else { unchanged(changes, known, is_in) };
    let whole = [changes, &others].concat();
    with(elf, &whole, known, |change| grows(change) || is_in(change))
        .or_else(|_| with(elf, changes, known, grows))
}

/// Regions that stay as they are.
fn unchanged(changes: &[Change], known: &Known, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
    let changed: HashSet<u64> = changes.iter().map(|change| change.at).collect();
    let others = known.regions.iter().filter(|region| !changed.contains(&region.start));
    let same = |region: &Range<u64>| Change {
        at: region.start,
        size: region.end.saturating_sub(region.start),
        new: With::Kept(region.clone()),
    };
    others.map(same).filter(wanted).collect()
}

/// Makes changes; regions move if `moves` says so.
fn with(
    elf: &Elf<'_>,
    changes: &[Change],
    known: &Known,
    moves: impl Fn(&Change) -> bool,
) -> Result<Draft> {
    let mut plan = Draft::default();
    let (mut moving, fit): (Vec<_>, Vec<_>) = changes.iter().partition(|change| moves(change));
    moving.sort_by_key(|change| change.at);
    let mut freed: Vec<Range<u64>> = Vec::new();
    for change in &fit {
        let end = change.at.saturating_add(change.new_size());
        if change.at < end {
            plan.edits.replace(change.at..end, vec![change.new.clone()])?;
        }
        freed.push(end..change.end());
    }
    freed.retain(|range| !range.is_empty());
    plan.in_place = fit.len();
    if moving.is_empty() {
        trimmed::plan(elf, &freed, &mut plan)?;
    } else {
        freed.extend(moving.iter().map(|change| change.at..change.end()));
        for range in freed {
            plan.holes = plan.holes.saturating_add(range.end.saturating_sub(range.start));
            plan.edits.zeros(range)?;
        }
        grown::plan(elf, &moving, known, &mut plan)?;
    }
    remarks(elf, &mut plan);
    Ok(plan)
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
