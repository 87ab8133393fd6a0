//! Whose a symbol is, and whose a section.

use crate::model::features::INDIRECT_FUNCTIONS;
use crate::model::storage::{Needs, ObjectSlot, SectionSlot, SymbolSlot, SymbolState};
use core::num::NonZeroU32;
use elf_core::names::{STT_FUNC, STT_GNU_IFUNC};
use elf_core::{Arch, File, Name, SectionFlags, SectionHeader, SymbolAttributes};

/// The object that symbol `id` belongs to, and its index there.
pub(crate) fn owner(objects: &[ObjectSlot<'_>], id: u32) -> Option<(usize, u32)> {
    let number =
        objects.partition_point(|object| object.first_symbol <= id as usize).checked_sub(1)?;
    let index = (id as usize).checked_sub(objects.get(number)?.first_symbol)?;
    Some((number, index as u32))
}

/// What is known of a branch's target, by the slot and number of its definition, for an architecture that asks.
pub(crate) fn attributes<A: Arch>(
    objects: &[ObjectSlot<'_>],
    definition: u32,
    slot: &SymbolSlot,
    processor: u32,
) -> SymbolAttributes {
    if !A::HAS_STATES {
        return SymbolAttributes::default();
    }
    let symbol = owner(objects, definition)
        .and_then(|(number, index)| objects.get(number)?.symbols.as_ref()?.get(index).ok());
    let (r#type, other) = symbol.map_or((0, 0), |symbol| (symbol.r#type(), symbol.other));
    let (is_thumb, is_function) = match slot.state {
        // T is part of the caller's addresses, and without it nobody knows what is there
        SymbolState::External => (slot.value & 1 != 0, false),
        SymbolState::ExternalFunction | SymbolState::UndefinedWeak => {
            (slot.needs.has(Needs::THUMB), true)
        }
        // the address is the first stub's
        SymbolState::Indirect | SymbolState::Replaceable if INDIRECT_FUNCTIONS => {
            (A::STUBS.first().is_some_and(|stub| stub.is_thumb), true)
        }
        _ => (slot.needs.has(Needs::THUMB), matches!(r#type, STT_FUNC | STT_GNU_IFUNC)),
    };
    SymbolAttributes::new(is_thumb, other).function(is_function).on(processor)
}

/// The name of symbol `id`.
pub(crate) fn name_of<'a>(objects: &[ObjectSlot<'a>], id: u32) -> Option<Name<'a>> {
    let (number, index) = owner(objects, id)?;
    let table = objects.get(number)?.symbols.as_ref()?;
    table.name_of(&table.get(index).ok()?).ok()
}

/// Whether symbol `id` has this name, which is another one's.
pub(crate) fn has_name(objects: &[ObjectSlot<'_>], id: u32, name: Name<'_>) -> bool {
    let found = owner(objects, id).and_then(|(number, index)| {
        let table = objects.get(number)?.symbols.as_ref()?;
        Some(table.names().is(table.get(index).ok()?.name, name))
    });
    found.unwrap_or(false)
}

/// Section `number` of all: its object, its index there, and its header.
pub(crate) fn section_of(
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    number: NonZeroU32,
) -> Option<(usize, u32, SectionHeader)> {
    let at = number.get() as usize;
    let behind = objects.partition_point(|object| object.first_section <= at);
    let object = behind.checked_sub(1)?;
    let index = at.checked_sub(objects.get(object)?.first_section)? as u32;
    Some((object, index, files.get(object)?.section(index).ok()?))
}

/// The slot of the section that section `number` of all follows (`SHF_LINK_ORDER`); `None` if it follows none.
pub(crate) fn followed<'s>(
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &'s [SectionSlot],
    number: NonZeroU32,
) -> Option<&'s SectionSlot> {
    let (object, _, header) = section_of(files, objects, number)?;
    let object = objects.get(object)?;
    let is_linked = header.flags.contains(SectionFlags::LINK_ORDER);
    let link = Some(header.link).filter(|link| is_linked && *link < object.section_count)?;
    sections.get(object.first_section.checked_add(link as usize)?)
}
