//! What a program asks a library for by name, as `dlsym` and `dlvsym` have it: what the library shows itself, else one that it needs, breadth first.

use super::definition::Definition;
use super::handle::{self, Handle};
use super::loaded::{Held, Member};
use super::members;
use crate::copy_relocations;
use elf_core::names::STT_GNU_IFUNC;
use elf_image::SymbolReference;

/// What a name means.
#[derive(Clone, Copy)]
pub(super) struct Meaning {
    pub(super) definition: Definition,
    pub(super) is_code: bool,
}

/// What the library shows itself: of the default version, if the reference states none.
pub(super) fn own(library: &Held, reference: SymbolReference<'_>) -> Option<Meaning> {
    let exports = library.exports()?;
    let found = match reference.version {
        None => exports.find_default(reference.name),
        Some(_) => exports.find(reference),
    };
    let (index, symbol) = found.ok()??;
    // one without a version answers a reference, and nobody who asks for a version
    if reference.version.is_some() && exports.reference(index).ok()? != reference {
        return None;
    }
    let definition = library.definition(&symbol);
    let is_code = match definition {
        // the function may be anybody's
        Definition::Address(address) => {
            library.is_code(address) || symbol.r#type() == STT_GNU_IFUNC
        }
        _ => false,
    };
    Some(Meaning { definition, is_code })
}

/// What the first has that has it of the library and those that it needs, that they need, and so on; behind one of them, if one is given.
pub(super) fn find(
    library: &Held,
    reference: SymbolReference<'_>,
    behind: Option<&Held>,
) -> Option<Meaning> {
    if behind.is_none()
        && library.is_first()
        && let Some(found) = own(library, reference)
    {
        return Some(found);
    }
    let mut all = members::of_held(library);
    if let Some(behind) = behind {
        let _ = all.find(|member| matches!(member, Member::Loaded(held) if held.is(behind)))?;
    }
    // indirect functions lead to others
    let mut elsewhere = None;
    for member in all {
        match &member {
            Member::Loaded(held) => {
                if let Some(found) = own(held, reference) {
                    return Some(found);
                }
            }
            Member::Process(handle) => match of_process(handle, reference) {
                Some((found, true)) => return Some(found),
                Some((found, false)) => elsewhere = elsewhere.or(Some(found)),
                None => {}
            },
        }
    }
    elsewhere
}

/// What a library of the dynamic loader finds, and whether that is in itself, not in one that it needs, whose turn comes.
fn of_process(library: &Handle, reference: SymbolReference<'_>) -> Option<(Meaning, bool)> {
    let version = reference.version.map(|version| version.as_bytes());
    let address = library.find_default(reference.name.as_bytes(), version)?;
    // copies of threads are nowhere
    let (bias, is_code) = handle::place_of(address)?;
    let definition = Definition::Address(copy_relocations::current(address));
    Some((Meaning { definition, is_code }, library.bias() == Some(bias)))
}
