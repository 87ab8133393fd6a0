//! What a program asks a library for by name, as `dlsym` and `dlvsym` have it: what the library shows itself, else one that it needs, breadth first.

use super::definition::Definition;
use super::handle::{self, Handle};
use super::loaded::{Held, Member};
use crate::copy_relocations;
use elf_core::names::STT_GNU_IFUNC;
use elf_image::SymbolReference;
use std::sync::Arc;

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

/// The same, else of the first that has it of those that the library needs, that they need, and so on.
pub(super) fn find(library: &Held, reference: SymbolReference<'_>) -> Option<Meaning> {
    if let Some(found) = own(library, reference) {
        return Some(found);
    }
    let (mut level, mut known) = (library.needed(), Vec::<Member>::new());
    // indirect functions lead to others
    let mut elsewhere = None;
    while !level.is_empty() {
        let mut deeper = Vec::new();
        for member in level {
            if known.iter().any(|known| known.is(&member)) {
                continue;
            }
            match &member {
                Member::Loaded(held) => {
                    if let Some(found) = own(held, reference) {
                        return Some(found);
                    }
                    deeper.extend(held.needed());
                }
                Member::Process(handle) => {
                    match of_process(handle, reference) {
                        Some((found, true)) => return Some(found),
                        Some((found, false)) => elsewhere = elsewhere.or(Some(found)),
                        None => {}
                    }
                    deeper.extend(handle.needed().into_iter().map(Arc::new).map(Member::Process));
                }
            }
            known.push(member);
        }
        level = deeper;
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
