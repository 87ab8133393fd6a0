//! Whose a symbol is.

use crate::model::storage::{Needs, ObjectSlot, SymbolSlot};
use elf_core::{Arch, Name, SymbolAttributes};

/// The object that symbol `id` belongs to, and its index there.
pub(crate) fn owner(objects: &[ObjectSlot<'_>], id: u32) -> Option<(usize, u32)> {
    let number =
        objects.partition_point(|object| object.first_symbol <= id as usize).checked_sub(1)?;
    let index = (id as usize).checked_sub(objects.get(number)?.first_symbol)?;
    Some((number, index as u32))
}

/// What is known of a symbol beside its address, by the slot and number of its definition, for an architecture that asks.
pub(crate) fn attributes<A: Arch>(
    objects: &[ObjectSlot<'_>],
    definition: u32,
    slot: &SymbolSlot,
) -> SymbolAttributes {
    if !A::HAS_STATES {
        return SymbolAttributes::default();
    }
    let symbol = owner(objects, definition)
        .and_then(|(number, index)| objects.get(number)?.symbols.as_ref()?.get(index).ok());
    SymbolAttributes::new(slot.needs.has(Needs::THUMB), symbol.map_or(0, |symbol| symbol.other))
}

/// The name of symbol `id`.
pub(crate) fn name_of<'a>(objects: &[ObjectSlot<'a>], id: u32) -> Option<Name<'a>> {
    let (number, index) = owner(objects, id)?;
    let table = objects.get(number)?.symbols.as_ref()?;
    table.name_of(&table.get(index).ok()?).ok()
}
