//! Objects that refer to one another, which come one after the other.

use crate::error::Error;
use crate::loader::Loader;
use crate::module::Module;
use crate::symbols::Symbols;
use core::fmt;
use elf_core::names::STB_WEAK;
use elf_core::{File, Foreign};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Objects that refer to one another and are known one after the other, as compilers finish them. They are resolved, and loaded as one
/// [`Module`], when all are there: code that calls in circles comes and goes together. Constructors of one priority run in the order in which the
/// objects were added, destructors the other way round, before any of the memory goes.
///
/// ```
/// use exec_host::{Loader, Process};
///
/// # #[cfg(target_arch = "x86_64")] {
/// let [a, b] = [
///     &include_bytes!("../../fixtures/x86_64/pair-a-gcc12-pic.o")[..],
///     &include_bytes!("../../fixtures/x86_64/pair-b-gcc12-pic.o")[..],
/// ];
/// let mut group = Loader::new().group();
/// group.add(b)?;
/// assert!(group.missing().count() > 0, "what is to be compiled next");
/// group.add(a)?;
/// let module = group.finish(Process::new())?;
/// # }
/// # Ok::<(), exec_host::Error>(())
/// ```
pub struct ModuleGroup<B> {
    loader: Loader,
    objects: Vec<B>,
    /// Global names, and whether an object defines them.
    names: BTreeMap<Box<[u8]>, bool>,
}

impl<B> fmt::Debug for ModuleGroup<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleGroup").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl Loader {
    /// Objects that come one after the other, and are loaded together.
    #[must_use]
    pub fn group<B: AsRef<[u8]>>(&self) -> ModuleGroup<B> {
        ModuleGroup { loader: self.clone(), objects: Vec::new(), names: BTreeMap::new() }
    }
}

impl<B: AsRef<[u8]>> ModuleGroup<B> {
    /// Adds an object.
    ///
    /// # Errors
    /// [`Error::Elf`] if it is damaged; the group is then as it was.
    pub fn add(&mut self, object: B) -> Result<(), Error> {
        let number = self.objects.len();
        let damaged = |error| Error::Elf { object: number, error };
        let bytes = object.as_ref();
        let file = File::parse(bytes).map_err(|error| damaged(Foreign::explain(bytes, error)))?;
        let mut names = Vec::new();
        if let Some(table) = file.symbol_table().map_err(damaged)? {
            for symbol in table.symbols().iter().skip(table.first_global()) {
                let name = table.name_of(&symbol).map_err(damaged)?;
                if !symbol.is_undefined() || symbol.binding() != STB_WEAK {
                    names.push((Box::from(name.as_bytes()), !symbol.is_undefined()));
                }
            }
        }
        for (name, is_defined) in names {
            *self.names.entry(name).or_default() |= is_defined;
        }
        self.objects.push(object);
        Ok(())
    }

    /// Whether an object of the group defines a global symbol of this name.
    #[must_use]
    pub fn defines(&self, name: &str) -> bool {
        self.names.get(name.as_bytes()).is_some_and(|is_defined| *is_defined)
    }

    /// The names that objects ask for and none defines so far, by the alphabet: what is to come, or to be had elsewhere.
    pub fn missing(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let missing = self.names.iter().filter(|(_, is_defined)| !**is_defined);
        missing.map(|(name, _)| String::from_utf8_lossy(name))
    }

    /// Loads the objects, with `symbols` for what none of them defines.
    ///
    /// # Errors
    /// As [`Loader::load`].
    pub fn finish(self, symbols: impl Symbols) -> Result<Module<B>, Error> {
        self.loader.load(self.objects, symbols)
    }
}
