//! Range-extension thunks (AAELF64 5.7.9 calls them veneers): where stubs stand between sections of code, if that is more than a
//! branch spans.
//!
//! Every thunk section holds all stubs, so that a stub has one number. Sections are not cut: of one that alone is too large the ends
//! reach a thunk section.

use crate::error::{Error, ErrorKind};
use crate::model::spans::{Group, Span, Spans};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState, SymbolSlot};
use crate::model::stubs;
use crate::model::thunks::ThunkSections;
use elf_core::{Arch, Check, Definition, File, Kind, Record, SectionHeader};

/// How far branches go whose targets may be out of reach, if there is so much code; else `None`.
pub(crate) fn reach<A: Arch>(spans: &Spans) -> Option<u64> {
    if !cfg!(feature = "thunks") {
        return None;
    }
    let reach = A::STUBS.iter().filter_map(|stub| stub.reach).min()?;
    (spans.group(Group::Text).size > reach / 2).then_some(reach)
}

/// Whether a branch from a place in the code to a symbol in it may come to need a stub, wherever thunks will be.
pub(crate) fn is_far(
    kind: &Kind,
    record: &Record,
    place: &SectionSlot,
    target: &SymbolSlot,
    reach: u64,
) -> bool {
    if place.state != SectionState::Placed(Group::Text) || target.group != Group::Text {
        return false;
    }
    let place = place.offset.wrapping_add(record.offset);
    let target = target.value.wrapping_add_signed(record.addend.unwrap_or(0));
    let distance = target.wrapping_sub(place);
    // thunks between them may take as much
    let margin = reach / 2;
    kind.check != Check::Any
        && !(kind.check.holds(distance.wrapping_add(margin))
            && kind.check.holds(distance.wrapping_sub(margin)))
}

/// Places the code anew, with thunks of `size` bytes each.
///
/// # Errors
/// [`ErrorKind::TooLarge`] if there are more thunks, or larger ones, than branches reach.
pub(crate) fn insert<A: Arch>(
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    symbols: &mut [SymbolSlot],
    spans: &mut Spans,
    (size, reach): (u64, u64),
) -> Result<ThunkSections, Error> {
    let alignment = stubs::alignment::<A>();
    if size > reach / 8 {
        return Err(Error::object(0, ErrorKind::TooLarge));
    }
    let spacing = reach.wrapping_sub(reach / 4);
    let (mut thunks, mut span, mut last) = (ThunkSections::NONE, Span::EMPTY, None);
    for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects)) {
        let slots = sections.get_mut(object.first_section..).unwrap_or_default().iter_mut();
        let mut slots = (0..u32::MAX).zip(slots);
        file.sections().try_for_each(|header: SectionHeader| {
            let Some((section, slot)) = slots.next() else { return Ok(()) };
            if slot.state != SectionState::Placed(Group::Text) {
                return Ok(());
            }
            let too_large = Error { object: number, section, kind: ErrorKind::TooLarge };
            let since = span.size.wrapping_sub(last.unwrap_or(0));
            let is_beside = last == Some(span.size);
            let is_due = since.saturating_add(slot.size) > spacing;
            if is_due && !is_beside && (since > 0 || slot.size > spacing) {
                let offset = span.append(size, alignment).ok_or(too_large)?;
                thunks.push(offset).ok_or(too_large)?;
                last = Some(span.size);
            }
            slot.offset = span.append(slot.size, header.alignment.max(1)).ok_or(too_large)?;
            Ok(())
        })?;
    }
    spans.replace(Group::Text, span);
    for (number, object) in (0..usize::MAX).zip(objects) {
        move_symbols::<A>(number, object, sections, symbols)?;
    }
    Ok(thunks)
}

/// Brings the symbols of one object to where their sections are now.
fn move_symbols<A: Arch>(
    number: usize,
    object: &ObjectSlot<'_>,
    sections: &[SectionSlot],
    symbols: &mut [SymbolSlot],
) -> Result<(), Error> {
    let Some(table) = &object.symbols else { return Ok(()) };
    let slots = symbols.get_mut(object.first_symbol..).unwrap_or_default();
    for ((index, symbol), slot) in (0..u32::MAX).zip(table.symbols()).zip(slots) {
        if slot.group != Group::Text {
            continue;
        }
        let elf = Error::elf(number, object.symbol_table);
        let Definition::Section(section) = table.section_of(index, &symbol).map_err(elf)? else {
            continue;
        };
        let at = object.first_section.checked_add(section as usize);
        if let Some(section) = at.and_then(|at| sections.get(at)) {
            slot.value = A::symbol(&symbol).0.wrapping_add(section.offset);
        }
    }
    Ok(())
}
