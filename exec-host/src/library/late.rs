//! Functions that are looked for when they are called first, as the dynamic loader does with `RTLD_LAZY`: those that nobody had when the library
//! was loaded. Somebody may have been opened for all since.

use super::handle::Handle;
use super::scope::stands_for;
use crate::copy_relocations;
use crate::error::Error;
use crate::lazy::{LazyFunctions, LazyTarget};
use crate::symbols::Keeper;
use elf_core::Name;
use elf_image::SymbolReference;
use std::io::Write as _;
use std::sync::Arc;

/// Those of a library.
#[derive(Debug, Default)]
pub(crate) struct LateFunctions {
    functions: LazyFunctions,
    is_used: core::cell::Cell<bool>,
}

impl LateFunctions {
    /// The address of a stub that leads to the function when it is called, for the library that is called so.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn add(
        &self,
        reference: SymbolReference<'_>,
        library: Name<'_>,
    ) -> Result<u64, Error> {
        let name: Box<[u8]> = reference.name.as_bytes().into();
        let version: Option<Box<[u8]>> = reference.version.map(|it| it.as_bytes().into());
        let library: Box<[u8]> = library.as_bytes().into();
        self.is_used.set(true);
        self.functions.define(&reference.name.to_string(), move || {
            find(&name, version.as_deref())
                .unwrap_or_else(|| end(&name, version.as_deref(), &library))
        })
    }

    /// What keeps the stubs, if there are any.
    pub(crate) fn into_keeper(self) -> Option<Keeper> {
        self.is_used.get().then(|| Arc::new(self.functions) as Keeper)
    }
}

/// The function of this name that the process has now.
fn find(name: &[u8], version: Option<&[u8]>) -> Option<LazyTarget> {
    if let Some(function) = stands_for(Name(name)) {
        return Some(LazyTarget::at(function.address()));
    }
    let address = Handle::of_process()?.find(name, version)?;
    let keeper = Handle::of_closable(address).map(|(_, handle)| Arc::new(handle) as Keeper);
    Some(LazyTarget::kept(copy_relocations::current(address), keeper))
}

/// Ends the process, as the dynamic loader does: who has called the function has no other way.
fn end(name: &[u8], version: Option<&[u8]>, library: &[u8]) -> ! {
    let version = version.map(|version| format!(", version {}", Name(version)));
    let library = if library.is_empty() { &b"a library without a name"[..] } else { library };
    let words = format!(
        "{}: symbol lookup error: undefined symbol: {}{}\n",
        Name(library),
        Name(name),
        version.unwrap_or_default()
    );
    let _ = std::io::stderr().write_all(words.as_bytes());
    /// What the dynamic loader ends with.
    const STATUS: i32 = 127;
    // SAFETY: ends the process; no destructor may run in the midst of a call.
    unsafe { libc::_exit(STATUS) }
}
