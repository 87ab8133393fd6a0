//! The symbols of a module by name.

use super::name_table::NameTable;
use crate::external::External;
use core::ffi::CStr;
use core::ops::Range;
use elf_core::names::{STV_DEFAULT, STV_PROTECTED};
use elf_core::{File, Name};

/// What a module shows to later loads.
#[derive(Debug, Default)]
pub(crate) struct Exports(NameTable<Export>);

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
struct Export {
    external: External,
    /// Bytes, if an object has a symbol of this name, the version included.
    size: Option<u64>,
}

impl Exports {
    /// Collects the global symbols of `objects` that are not hidden. `globals` are their addresses, 0 if there is none;
    /// `code` is where functions are, `variables` are those that are thread-local. Of a name that several objects define, all have the one address:
    /// it is enough to see the symbol that `is_taken`, by numbers of object and symbol, if somebody knows.
    pub(crate) fn collect<'a>(
        objects: impl Iterator<Item = Option<File<'a>>>,
        globals: &[Box<[u64]>],
        code: &[Range<u64>],
        variables: &[(Box<[u8]>, External)],
        is_taken: impl Fn(usize, u32) -> bool,
    ) -> Self {
        let mut exports = NameTable::default();
        let derived = |external| Export { external, size: None };
        for (name, variable) in variables {
            exports.entry(name, derived(*variable));
        }
        for (object, (file, addresses)) in objects.zip(globals).enumerate() {
            let Some(table) = file.and_then(|file| file.symbol_table().ok()?) else { continue };
            let first = table.first_global();
            let symbols = (first as u32..).zip(table.symbols().iter().skip(first));
            for ((index, symbol), &address) in symbols.zip(addresses) {
                let is_visible = matches!(symbol.visibility(), STV_DEFAULT | STV_PROTECTED);
                let is_defined = address != 0 && !symbol.is_undefined();
                if !is_defined || !is_visible || !is_taken(object, index) {
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
                    exports.entry(&exact, derived(external));
                    exports.entry(base.as_bytes(), derived(external));
                }
                if let Some(export) = exports.entry(name.as_bytes(), derived(external))
                    && export.external.address() == address
                {
                    export.size = export.size.or(Some(symbol.size));
                }
            }
        }
        Self(exports)
    }

    /// The symbol of this name.
    pub(crate) fn get(&self, name: Name<'_>) -> Option<External> {
        self.0.get(name.as_bytes()).map(|export| export.external)
    }

    /// Addresses, sizes and numbers of the names that objects have.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (u64, u64, usize)> {
        let symbol = |(number, export): (usize, &Export)| {
            Some((export.external.address(), export.size?, number))
        };
        self.0.values().enumerate().filter_map(symbol)
    }

    /// The name of this number.
    pub(crate) fn name(&self, number: usize) -> Option<&CStr> {
        self.0.name(number)
    }
}
