//! Executables and shared libraries: nothing that is loaded moves but regions that do not fit.

use std::collections::HashSet;
use std::ops::Range;

use anyhow::Result;
use elf_core::names::PT_NOTE;
use fatbin::{Container, FoundContainer, Search, Span, walk};

use super::elf::Elf;
use super::{Change, Plan, grown, trimmed};

/// How to make changes to a linked file.
pub(super) fn plan(elf: &Elf<'_>, changes: &[Change]) -> Result<Plan> {
    let grows = |change: &Change| change.new_size() > change.size;
    let growing = changes.iter().filter(|change| grows(change));
    let sections: HashSet<_> = growing.filter_map(|change| elf.section_at(change.at)).collect();
    let is_in = |change: &Change| {
        elf.section_at(change.at).is_some_and(|section| sections.contains(&section))
    };
    // A section of regions moves as a whole, so that there is still one of its name: tools look no further. Where that cannot be,
    // what does not grow stays.
    let others = if sections.is_empty() { Vec::new() } else { unchanged(elf, changes, is_in) };
    let whole = [changes, &others].concat();
    with(elf, &whole, |change| grows(change) || is_in(change))
        .or_else(|_| with(elf, changes, grows))
}

/// Regions of sections that tools make for regions, where they stay as they are.
fn unchanged(elf: &Elf<'_>, changes: &[Change], wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
    let changed: HashSet<u64> = changes.iter().map(|change| change.at).collect();
    let region = |found: FoundContainer<'_>| match found.container {
        Container::Region(region) if !changed.contains(&region.at()) => Some(Change {
            at: region.at(),
            size: region.size(),
            new: region.bytes().to_vec().into(),
        }),
        _ => None,
    };
    let all = walk(elf.bytes(), Search::Never).filter_map(Result::ok).filter_map(region);
    all.filter(wanted).collect()
}

/// Makes changes; regions move if `moves` says so.
fn with(elf: &Elf<'_>, changes: &[Change], moves: impl Fn(&Change) -> bool) -> Result<Plan> {
    let mut plan = Plan::default();
    let (mut moving, fit): (Vec<_>, Vec<_>) = changes.iter().partition(|change| moves(change));
    moving.sort_by_key(|change| change.at);
    let mut freed: Vec<Range<u64>> = Vec::new();
    for change in &fit {
        plan.edits
            .replace(change.at..change.at.saturating_add(change.new_size()), change.new.clone())?;
        let end = change.at.saturating_add(change.new_size());
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
        grown::plan(elf, &moving, &mut plan)?;
    }
    notes(elf, &mut plan);
    Ok(plan)
}

/// What else in the file depends on its bytes.
fn notes(elf: &Elf<'_>, plan: &mut Plan) {
    let is_note = |segment: &elf_core::ProgramHeader| segment.r#type == PT_NOTE;
    let has_id = elf.file.segments().iter().filter(is_note).any(|segment| {
        elf.file
            .segment_data(&segment)
            .is_ok_and(|data| data.windows(4).any(|name| name == b"GNU\0"))
            && elf.sections.iter().any(|section| elf.name(section) == ".note.gnu.build-id")
    });
    if has_id {
        plan.notes.push(String::from(
            "the build-id is kept: it is that of the original file, and debug information is still found by it",
        ));
    }
    let end = elf.sections_end();
    if elf.header.e_shoff.get() != 0 && elf.size() > end {
        let behind = Span::new(elf.bytes(), 0).tail(end).map_or(0, Span::size);
        let loaded = elf
            .segments
            .iter()
            .any(|segment| segment.p_filesz.get() != 0 && segment.p_offset.get() >= end);
        if !loaded {
            plan.notes.push(format!(
                "{behind} bytes behind the section headers are kept: a signature among them does not hold any more",
            ));
        }
    }
}
