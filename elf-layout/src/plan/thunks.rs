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
use crate::plan::runs::key::{self, Gathers};
use crate::plan::sections;
use elf_core::{Arch, Check, Definition, File, Record, SectionHeader};

/// Whether there is more code than every branch spans that may go by way of a stub.
pub(crate) fn is_large<A: Arch>(spans: &Spans) -> bool {
    if !const { has_thunks::<A>() } {
        return false;
    }
    let shortest = A::STUBS.iter().filter_map(|stub| stub.reach).min();
    shortest.is_some_and(|reach| spans.group(Group::Text).size > reach / 2)
}

/// How far a branch goes from a place in the code that spans what `check` holds; else `None`.
pub(crate) fn span(check: Check, place: &SectionSlot) -> Option<u64> {
    let is_code = place.state == SectionState::Placed(Group::Text);
    let Check::Signed(bits) = check else { return None };
    is_code.then(|| 1u64.unbounded_shl(bits.saturating_sub(1).into()))
}

/// Whether a branch that spans `span` bytes either way from a place in the code may come to need a stub on its way to a symbol in it, wherever
/// thunks will be.
pub(crate) fn is_far(span: u64, record: &Record, place: &SectionSlot, target: &SymbolSlot) -> bool {
    if target.group != Group::Text {
        return false;
    }
    let place = place.offset.wrapping_add(record.offset);
    let target = target.value.wrapping_add_signed(record.addend.unwrap_or(0));
    // thunks between them may take as much
    target.abs_diff(place) >= span / 2
}

/// How far apart thunk sections of `size` bytes each stand in so much code: what the shortest branches span, if there is room for them.
/// If not, as near as that comes, and what does not reach any is refused when it is written.
fn spacing<A: Arch>(size: u64, shortest: u64, code: u64) -> Option<u64> {
    let widest = A::STUBS.iter().filter_map(|stub| stub.reach).max()?;
    let mut reach = shortest;
    // of all that there may be, one in three: a section that is next may be almost as large as the spacing
    while reach < widest && (size > reach / 8 || code / 20 > reach) {
        reach = reach.saturating_mul(2);
    }
    (size <= reach / 8).then(|| reach.wrapping_sub(reach / 4))
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
    (size, reach, gathers): (u64, u64, Gathers),
) -> Result<ThunkSections, Error> {
    let old = *spans.group(Group::Text);
    let Some(spacing) = spacing::<A>(size, reach, old.size) else {
        return Err(Error::object(0, ErrorKind::TooLarge));
    };
    let alignment = stubs::alignment::<A>();
    let mut text = Text { span: Span::EMPTY, thunks: ThunkSections::NONE, last: None };
    let mut gathered = old.size;
    each(files, objects, sections, |number, section, (file, header), slot| {
        if key::is_gathered(file, header, gathers) {
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
            if key::is_gathered(file, header, gathers) {
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
        if is_due && !is_beside {
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
