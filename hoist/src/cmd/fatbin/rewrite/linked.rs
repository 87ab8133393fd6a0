//! Executables and shared libraries: nothing that is loaded moves but regions that do not fit.

use std::ops::Range;

use anyhow::Result;
use elf_core::names::PT_NOTE;
use fatbin::Span;

use super::elf::Elf;
use super::{Change, Plan, grown, trimmed};

/// How to make changes to a linked file.
pub(super) fn plan(elf: &Elf<'_>, changes: &[Change]) -> Result<Plan> {
    let mut plan = Plan::default();
    let (fit, grow): (Vec<_>, Vec<_>) =
        changes.iter().partition(|change| change.new_size() <= change.size);
    let mut freed: Vec<Range<u64>> = Vec::new();
    for change in &fit {
        plan.edits.put(change.at, &change.new)?;
        let end = change.at.saturating_add(change.new_size());
        freed.push(end..change.end());
    }
    freed.retain(|range| !range.is_empty());
    plan.in_place = fit.len();
    if grow.is_empty() {
        trimmed::plan(elf, &freed, &mut plan)?;
    } else {
        freed.extend(grow.iter().map(|change| change.at..change.end()));
        for range in freed {
            plan.holes = plan.holes.saturating_add(range.end.saturating_sub(range.start));
            plan.edits.zeros(range)?;
        }
        grown::plan(elf, &grow, &mut plan)?;
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
