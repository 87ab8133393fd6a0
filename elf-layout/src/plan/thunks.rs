//! Range-extension thunks (AAELF64 5.7.9 calls them veneers): where stubs stand between sections of code, if that is more than a
//! branch spans.
//!
//! Every thunk section holds all stubs, so that a stub has one number. Sections are not cut: of one that alone is too large the ends
//! reach a thunk section.

use crate::error::{Error, ErrorKind};
use crate::model::spans::{Group, Span, Spans};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState, SymbolSlot};
use crate::model::stubs;
use crate::model::thunks::{ThunkSections, has_thunks};
use crate::plan::runs::key;
use crate::plan::sections;
use elf_core::{Arch, Check, Definition, File, Kind, Record, SectionHeader};

/// How far branches go whose targets may be out of reach, if there is so much code; else `None`.
pub(crate) fn reach<A: Arch>(spans: &Spans) -> Option<u64> {
    if !has_thunks::<A>() {
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

/// Places the code anew, with thunks of `size` bytes each. Sections that `gathers` has behind all others stay there, as they stand to
/// each other; symbols that mean where they start and end are to be defined anew.
///
/// # Errors
/// [`ErrorKind::TooLarge`] if there are more thunks, or larger ones, than branches reach.
pub(crate) fn insert<A: Arch>(
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    symbols: &mut [SymbolSlot],
    spans: &mut Spans,
    (size, reach, gathers): (u64, u64, bool),
) -> Result<ThunkSections, Error> {
    if size > reach / 8 {
        return Err(Error::object(0, ErrorKind::TooLarge));
    }
    let (alignment, spacing) = (stubs::alignment::<A>(), reach.wrapping_sub(reach / 4));
    let mut text = Text { span: Span::EMPTY, thunks: ThunkSections::NONE, last: None };
    let old = *spans.group(Group::Text);
    let mut gathered = old.size;
    each(files, objects, sections, |number, section, (file, header), slot| {
        if gathers && key::is_gathered(file, header) {
            gathered = gathered.min(slot.offset);
            return Ok(());
        }
        let room = sections::room(file, header, slot);
        let placed = text.append((room, header.alignment.max(1)), (size, alignment), spacing);
        let too_large = Error { object: number, section, kind: ErrorKind::TooLarge };
        slot.offset = placed.ok_or(too_large)?;
        Ok(())
    })?;
    if gathered < old.size {
        // what is between them is right for every alignment, from a multiple of the largest on
        let start = gathered & old.alignment.wrapping_neg();
        let room = (old.size.wrapping_sub(start), old.alignment);
        let too_large = Error::object(0, ErrorKind::TooLarge);
        let placed = text.append(room, (size, alignment), spacing).ok_or(too_large)?;
        each(files, objects, sections, |_, _, (file, header), slot| {
            if key::is_gathered(file, header) {
                slot.offset = slot.offset.wrapping_sub(start).wrapping_add(placed);
            }
            Ok(())
        })?;
    }
    spans.replace(Group::Text, text.span);
    for (number, object) in (0..usize::MAX).zip(objects) {
        move_symbols::<A>(number, object, sections, symbols)?;
    }
    Ok(text.thunks)
}

/// The code as it grows.
struct Text {
    span: Span,
    thunks: ThunkSections,
    /// Where the last thunk section ends.
    last: Option<u64>,
}

impl Text {
    /// Appends a section of this size and alignment, behind a thunk section if there is none near enough. Gives its offset; `None` if there
    /// are too many of them.
    fn append(
        &mut self,
        (size, alignment): (u64, u64),
        thunk: (u64, u64),
        spacing: u64,
    ) -> Option<u64> {
        let Self { span, thunks, last } = self;
        let since = span.size.wrapping_sub(last.unwrap_or(0));
        let is_beside = *last == Some(span.size);
        let is_due = since.saturating_add(size) > spacing;
        if is_due && !is_beside && (since > 0 || size > spacing) {
            thunks.push(span.append(thunk.0, thunk.1)?)?;
            *last = Some(span.size);
        }
        span.append(size, alignment)
    }
}

/// Goes over all sections of code: object, section, its file and header, and its slot.
fn each(
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    mut visit: impl FnMut(
        usize,
        u32,
        (&File<'_>, &SectionHeader),
        &mut SectionSlot,
    ) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, (file, object)) in (0..usize::MAX).zip(files.iter().zip(objects)) {
        let slots = sections.get_mut(object.first_section..).unwrap_or_default().iter_mut();
        let mut slots = (0..u32::MAX).zip(slots);
        file.sections().try_for_each(|header: SectionHeader| match slots.next() {
            Some((section, slot)) if slot.state == SectionState::Placed(Group::Text) => {
                visit(number, section, (file, &header), slot)
            }
            _ => Ok(()),
        })?;
    }
    Ok(())
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
