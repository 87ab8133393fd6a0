//! The symbols of a module by name.

use crate::external::External;
use core::ops::Range;
use elf_core::names::{STV_DEFAULT, STV_PROTECTED};
use elf_core::{File, Name};
use std::collections::HashMap;

/// What a module shows to later loads.
#[derive(Debug, Default)]
pub(crate) struct Exports(HashMap<Box<[u8]>, External>);

impl Exports {
    /// Collects the global symbols of `objects` that are not hidden. `globals` are their addresses, 0 if there is none;
    /// `code` is where functions are, `variables` are those that are thread-local.
    pub(crate) fn collect<'a>(
        objects: impl Iterator<Item = &'a [u8]>,
        globals: &[Box<[u64]>],
        code: &[Range<u64>],
        variables: &[(Box<[u8]>, External)],
    ) -> Self {
        let mut exports: HashMap<_, _> = variables.iter().cloned().collect();
        for (bytes, addresses) in objects.zip(globals) {
            let Ok(Some(table)) = File::parse(bytes).and_then(|file| file.symbol_table()) else {
                continue;
            };
            let symbols = table.symbols().iter().skip(table.first_global());
            for (symbol, &address) in symbols.zip(addresses) {
                let is_visible = matches!(symbol.visibility(), STV_DEFAULT | STV_PROTECTED);
                if address == 0 || symbol.is_undefined() || !is_visible {
                    continue;
                }
                let Ok(name) = table.name_of(&symbol) else { continue };
                let external = if code.iter().any(|range| range.contains(&address)) {
                    External::function(address)
                } else {
                    External::new(address)
                };
                if let Some((base, version, true)) = name.version() {
                    let exact = [base.as_bytes(), b"@", version.as_bytes()].concat();
                    exports.entry(exact.into()).or_insert(external);
                    exports.entry(base.as_bytes().into()).or_insert(external);
                }
                exports.entry(name.as_bytes().into()).or_insert(external);
            }
        }
        Self(exports)
    }

    /// The symbol of this name.
    pub(crate) fn get(&self, name: Name<'_>) -> Option<External> {
        self.0.get(name.as_bytes()).copied()
    }
}
