//! Symbols with versions (`.symver`): what `NAME@@VERSION` defines answers `NAME` and `NAME@VERSION`, too.
//!
//! What `NAME@VERSION` defines answers nothing else, and is found by its whole name. Only where the names of some object have an `@`
//! does this do anything: definitions and undefined symbols are sorted, by name and version, and both lists gone through side by side.

use crate::model::features::SYMBOL_VERSIONS;
use crate::model::list::{List, Nodes, sort};
use crate::model::owner::{name_of, owner};
use crate::model::storage::{Needs, ObjectSlot, SymbolSlot, SymbolState};
use core::num::NonZeroU32;
#[cfg(feature = "alloc")]
use elf_core::File;
use elf_core::Name;
use elf_core::names::STB_LOCAL;

/// Lets undefined symbols mean definitions of a version: whether some do. The first symbol of a name must be known, and its best
/// definition, if there are several objects, which share names.
pub(crate) fn link(objects: &[ObjectSlot<'_>], symbols: &mut [SymbolSlot], shared: bool) -> bool {
    let tables = || objects.iter().filter_map(|object| object.symbols.as_ref());
    if !SYMBOL_VERSIONS || !tables().any(|table| table.names().as_bytes().contains(&b'@')) {
        return false;
    }
    let found = link_to(objects, symbols, shared, true);
    // an assembler that is asked for the version that it defines itself leaves both
    found | (!shared && link_to(objects, symbols, shared, false))
}

/// The same for definitions of default versions, or for others.
fn link_to(
    objects: &[ObjectSlot<'_>],
    symbols: &mut [SymbolSlot],
    shared: bool,
    default: bool,
) -> bool {
    let (mut defined, mut undefined) = (List::default(), List::default());
    for id in 1..u32::try_from(symbols.len()).unwrap_or(u32::MAX) {
        let (Some(number), Some(slot)) = (NonZeroU32::new(id), symbols.get_mut(id as usize)) else {
            break;
        };
        // of several symbols of one name the first speaks for all
        if shared && !slot.needs.has(Needs::FIRST) {
            continue;
        }
        slot.got = 0;
        let best = slot.definition;
        let state = symbols.get(best as usize).map(|slot| slot.state).unwrap_or_default();
        let Some(name) = name_of(objects, id) else { continue };
        let list = match (state, name.version()) {
            (SymbolState::Undefined, _) => &mut undefined,
            (_, Some((.., is_default))) if is_default == default && is_global(objects, id) => {
                &mut defined
            }
            _ => continue,
        };
        list.append(number, &mut ByVersion { objects, symbols });
    }
    let mut nodes = ByVersion { objects, symbols };
    let mut definition = sort(defined.first, &mut nodes);
    let mut next = sort(undefined.first, &mut nodes);
    let mut found = false;
    while let Some(number) = next {
        next = nodes.next(number);
        let Some(wanted) = nodes.key(number) else { continue };
        // a name without a version sorts before those with one, and takes the first
        while let Some(at) = definition
            && nodes.key(at).is_none_or(|key| key < wanted)
        {
            definition = nodes.next(at);
        }
        let Some(at) = definition else { break };
        let is_meant = nodes.key(at).is_some_and(|(name, version)| {
            name == wanted.0 && (version == wanted.1 || default && wanted.1.is_empty())
        });
        let best = nodes.symbols.get(at.get() as usize).map(|slot| slot.definition);
        if let (true, Some(best)) = (is_meant, best)
            && let Some(slot) = nodes.symbols.get_mut(number.get() as usize)
        {
            (slot.definition, found) = (best, true);
        }
    }
    found
}

/// Whether a file defines the version that a name means.
#[cfg(feature = "alloc")]
pub(crate) fn has_definition(name: Name<'_>, files: &[File<'_>]) -> bool {
    let (base, version) = name.version().map_or((name, None), |it| (it.0, Some(it.1)));
    let answers = |found: Name<'_>| {
        found.version().is_some_and(|(name, own, is_default)| {
            let is_version = version.is_none_or(|version| version == own);
            name == base && is_version && (is_default || version.is_some())
        })
    };
    let tables = files.iter().filter_map(|file| file.symbol_table().ok().flatten());
    let mut tables = tables.filter(|table| table.names().as_bytes().contains(&b'@'));
    tables.any(|table| {
        let mut symbols = table.symbols().iter();
        symbols.any(|symbol| !symbol.is_undefined() && table.name_of(&symbol).is_ok_and(answers))
    })
}

/// Whether other objects see a symbol.
fn is_global(objects: &[ObjectSlot<'_>], id: u32) -> bool {
    let symbol = owner(objects, id)
        .and_then(|(object, index)| objects.get(object)?.symbols.as_ref()?.get(index).ok());
    symbol.is_some_and(|symbol| symbol.binding() != STB_LOCAL)
}

/// Symbols by name and version. The next one is where the number of a GOT entry will be.
struct ByVersion<'s, 'a> {
    objects: &'s [ObjectSlot<'a>],
    symbols: &'s mut [SymbolSlot],
}

impl<'a> ByVersion<'_, 'a> {
    fn key(&self, number: NonZeroU32) -> Option<(Name<'a>, Name<'a>)> {
        let name = name_of(self.objects, number.get())?;
        Some(name.version().map_or((name, Name::default()), |(name, version, _)| (name, version)))
    }
}

impl Nodes for ByVersion<'_, '_> {
    fn next(&self, number: NonZeroU32) -> Option<NonZeroU32> {
        NonZeroU32::new(self.symbols.get(number.get() as usize)?.got)
    }

    fn set_next(&mut self, number: NonZeroU32, next: Option<NonZeroU32>) {
        if let Some(slot) = self.symbols.get_mut(number.get() as usize) {
            slot.got = next.map_or(0, NonZeroU32::get);
        }
    }

    fn is_before(&self, first: NonZeroU32, second: NonZeroU32) -> bool {
        self.key(first) < self.key(second)
    }
}
