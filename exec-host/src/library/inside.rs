//! What code of a library finds by `dlsym` and `dlvsym`, as the dynamic loader has it: in the program and what was opened for all, then in
//! the library that was opened for it and what that needs (`RTLD_DEFAULT`); of these, in those behind it (`RTLD_NEXT`); and in a library
//! out of bytes that code has opened.

use super::by_name;
use super::definition::Definition;
use super::handle::Handle;
use super::loaded::Held;
use super::plug_ins;
use crate::Host;
use crate::copy_relocations;
use crate::dlsym::names::Place;
use crate::threads::dynamic;
use crate::threads::exit;
use crate::unwind;
use elf_core::Arch as _;
use elf_image::SymbolReference;

/// The address of what a reference of the code at `caller` means, of a thread-local variable that of this thread's, if it is anywhere.
/// `None` if the code is not a library's, or the handle not one of a library out of bytes.
pub(super) fn find(
    place: Place,
    reference: SymbolReference<'_>,
    caller: u64,
) -> Option<Option<u64>> {
    if let Place::Opened(handle) = place {
        let opened = plug_ins::of_handle(handle)?;
        let found = by_name::find(&opened, reference, None);
        return Some(found.and_then(|found| address(found.definition)));
    }
    let library = Held::of_code(caller)?;
    Some(match place {
        Place::Opened(_) => None,
        Place::Default => of_all(reference).or_else(|| {
            let mut scopes = library.scopes().into_iter();
            scopes.find_map(|scope| address(by_name::find(&scope, reference, None)?.definition))
        }),
        Place::Next => {
            let scope = library.scopes().into_iter().next().unwrap_or_else(|| library.clone());
            let found = by_name::find(&scope, reference, Some(&library));
            found.and_then(|found| address(found.definition))
        }
    })
}

/// What the program has, or what was opened for all.
fn of_all(reference: SymbolReference<'_>) -> Option<u64> {
    let own = exit::stands_for(reference.name).or_else(|| unwind::stands_for(reference.name));
    if let Some(own) = own {
        return Some(own.address());
    }
    let version = reference.version.map(|version| version.as_bytes());
    let found = Handle::of_process()?.find_default(reference.name.as_bytes(), version);
    found.map(copy_relocations::current)
}

fn address(definition: Definition) -> Option<u64> {
    match definition {
        Definition::Address(address) => (address != 0).then_some(address),
        Definition::ThreadLocal { module, offset, .. } => {
            let offset = offset.wrapping_add_signed(Host::TLS?.dtp_bias);
            // SAFETY: the block is that of a library that is there: code of one that keeps it asks.
            let variable = unsafe { dynamic::address(module, offset) };
            variable.map(|variable| variable.expose_provenance() as u64)
        }
        Definition::Indirect(_) => None,
    }
}
