//! A source of symbols, as the loader asks it.

use crate::error::c_string;
use core::ffi::{c_char, c_void};
use elf_core::Name;
use elf_layout::ExternalSymbol;
use exec_host::library::Library;
use exec_host::symbols::{ArchiveSource, Found, SharedBytes, Symbols};
use exec_host::{External, Module, Process};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Sources of symbols, in the order in which they are asked. Free them with `hoist_symbols_free`.
#[derive(Default)]
pub struct SymbolSources(pub(crate) Mutex<Vec<Source>>);

/// `hoist_definition.kind`: nothing but the address is known.
pub const HOIST_DEFINITION_UNKNOWN: u32 = 0;
/// `hoist_definition.kind`: a function. Code that does not reach it gets a stub, even where its address is taken.
pub const HOIST_DEFINITION_FUNCTION: u32 = 1;

/// Where a symbol is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Definition {
    /// Its address: of this process, or, if an image is linked for elsewhere, of there.
    pub address: u64,
    /// `HOIST_DEFINITION_...`
    pub kind: u32,
    /// 0.
    pub reserved: u32,
}

/// Asked for the symbol `name`: writes where it is to `definition`, which holds zeros, and returns `true`; or returns `false`. It is
/// called during loads and links that were given the source, on their thread, possibly several times for one name. It must not use
/// the same list of sources (that is answered `BUSY`), must not throw, and must not jump out (`longjmp`).
pub type SymbolCallback = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        name: *const c_char,
        definition: *mut Definition,
    ) -> bool,
>;

/// Where symbols come from.
pub(crate) enum Source {
    Process(Process),
    Callback(Callback),
    Defined(HashMap<Box<[u8]>, Definition>),
    Module(Arc<Module<SharedBytes>>),
    Library(Library),
    Archive(ArchiveSource),
}

/// A function of C, and what it is given.
pub(crate) struct Callback {
    function: SymbolCallback,
    context: *mut c_void,
}

// SAFETY: the context is passed on and not looked at; the header says which thread calls.
unsafe impl Send for Callback {}

impl Callback {
    pub(crate) const fn new(function: SymbolCallback, context: *mut c_void) -> Self {
        Self { function, context }
    }

    fn ask(&self, name: Name<'_>) -> Option<Definition> {
        let function = self.function?;
        let name = c_string(name.as_bytes());
        let mut definition = Definition::default();
        // SAFETY: who gave the function says that it can be called so: with its context, a text and a place for the answer.
        let is_found = unsafe { function(self.context, name.as_ptr(), &raw mut definition) };
        is_found.then_some(definition)
    }
}

impl Source {
    /// What is known by an address alone.
    fn definition(&self, name: Name<'_>) -> Option<Definition> {
        match self {
            Self::Callback(callback) => callback.ask(name),
            Self::Defined(defined) => defined.get(name.as_bytes()).copied(),
            _ => None,
        }
    }

    /// The same for an image that runs elsewhere: no object and no member of an archive is taken for it.
    pub(crate) fn elsewhere(&mut self, name: Name<'_>) -> Option<ExternalSymbol> {
        if let Self::Callback(_) | Self::Defined(_) = self {
            return self.definition(name).map(|definition| match definition.kind {
                HOIST_DEFINITION_FUNCTION => ExternalSymbol::function(definition.address),
                _ => ExternalSymbol::new(definition.address),
            });
        }
        match self.find(name)? {
            Found::At(external) | Found::Kept(external, _) => {
                Some(ExternalSymbol::new(external.address()))
            }
            _ => None,
        }
    }
}

impl Symbols for Source {
    fn find(&mut self, name: Name<'_>) -> Option<Found> {
        match self {
            Self::Process(process) => Symbols::find(process, name),
            Self::Module(module) => module.find(name),
            Self::Library(library) => library.find(name),
            Self::Archive(archive) => archive.find(name),
            Self::Callback(_) | Self::Defined(_) => {
                let Definition { address, kind, .. } = self.definition(name)?;
                let is_function = kind == HOIST_DEFINITION_FUNCTION;
                let external =
                    if is_function { External::function(address) } else { External::new(address) };
                Some(Found::At(external))
            }
        }
    }

    fn find_weak(&mut self, name: Name<'_>) -> Option<Found> {
        match self {
            Self::Archive(archive) => archive.find_weak(name),
            _ => self.find(name),
        }
    }

    fn find_data(&mut self, name: Name<'_>) -> Option<Found> {
        match self {
            Self::Archive(archive) => archive.find_data(name),
            _ => None,
        }
    }

    fn has_objects(&self) -> bool {
        matches!(self, Self::Archive(_))
    }

    fn copy_relocate(&mut self, name: Name<'_>, limit: Option<u64>) -> bool {
        match self {
            Self::Process(process) => process.copy_relocate(name, limit),
            _ => false,
        }
    }
}
