//! Loaded images, and which function an address is in.

use std::collections::HashMap;
use std::string::String;
use std::sync::{Arc, Mutex, PoisonError};

use elf_core::names::{STB_LOCAL, STT_FUNC};
use elf_core::{Definition, File};

use crate::{Error, Loader, Module, Process};

/// An object in executable memory, shared by its functions.
#[derive(Debug)]
pub struct HostImage {
    module: Module<Arc<[u8]>>,
    bytes: Arc<[u8]>,
    /// What the code may call stays open.
    _process: Arc<Mutex<Process>>,
}

impl HostImage {
    pub(super) fn load(
        bytes: &[u8],
        loader: &Loader,
        process: &Arc<Mutex<Process>>,
    ) -> Result<Self, Error> {
        let bytes: Arc<[u8]> = bytes.into();
        let mut symbols = process.lock().unwrap_or_else(PoisonError::into_inner);
        let module = loader.load([Arc::clone(&bytes)], &mut *symbols)?;
        Ok(Self { module, bytes, _process: Arc::clone(process) })
    }

    /// What was loaded.
    #[must_use]
    pub const fn module(&self) -> &Module<Arc<[u8]>> {
        &self.module
    }

    /// Runs constructors. Images without any need not be initialized.
    ///
    /// # Safety
    /// As [`Module::initialize`].
    pub unsafe fn initialize(&self) {
        // SAFETY: the caller vouches for the constructors.
        unsafe { self.module.initialize() };
    }

    /// The function that an address is in, and bytes from its start; nothing if it is in none.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<(String, u64)> {
        let (start, size) = self.module.extent();
        if address.wrapping_sub(start) >= size {
            return None;
        }
        let table = File::parse(&self.bytes).ok()?.symbol_table().ok()??;
        let defined =
            (0u32..).zip(table.symbols().iter()).filter_map(|(index, symbol)| {
                match table.section_of(index, &symbol).ok()? {
                    Definition::Section(section) => Some((symbol, section)),
                    _ => None,
                }
            });
        let defined: Vec<_> = defined.collect();
        // where sections are, by what is known of global symbols in them
        let mut sections = HashMap::new();
        for (symbol, section) in defined.iter().filter(|(symbol, _)| symbol.binding() != STB_LOCAL)
        {
            if sections.contains_key(section) {
                continue;
            }
            let name = table.name_of(symbol).ok().and_then(|name| name.to_str());
            if let Some(at) = name.and_then(|name| self.module.address(name)) {
                sections.insert(*section, at.wrapping_sub(symbol.value));
            }
        }
        let functions = defined.iter().filter(|(symbol, _)| symbol.r#type() == STT_FUNC);
        let found = functions.filter_map(|(symbol, section)| {
            let offset = address.checked_sub(sections.get(section)?.wrapping_add(symbol.value))?;
            (offset < symbol.size.max(1)).then_some((symbol, offset))
        });
        let (symbol, offset) = found.min_by_key(|(_, offset)| *offset)?;
        Some((table.name_of(symbol).ok()?.to_string(), offset))
    }
}
