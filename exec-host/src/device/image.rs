//! Loaded images, and which function an address is in.

use exec_core::sync::Mutex;
use std::string::String;
use std::sync::Arc;

use elf_core::names::STT_FUNC;

use crate::{Error, Loader, Module, Process};

/// An object in executable memory, shared by its functions.
#[derive(Debug)]
pub struct HostImage {
    module: Module<Arc<[u8]>>,
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
        let mut symbols = process.lock();
        let module = loader.load([bytes], &mut *symbols)?;
        Ok(Self { module, _process: Arc::clone(process) })
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
        // SAFETY: the caller guarantees the constructors.
        unsafe { self.module.initialize() };
    }

    /// The function that an address is in, and bytes from its start; nothing if it is in none.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<(String, u64)> {
        let (start, size) = self.module.extent();
        if address.wrapping_sub(start) >= size {
            return None;
        }
        let functions = self.module.symbols().filter(|symbol| symbol.r#type == STT_FUNC);
        let found = functions.filter_map(|symbol| {
            let offset = address.checked_sub(symbol.address)?;
            (offset < symbol.size.max(1)).then_some((symbol, offset))
        });
        let (symbol, offset) = found.min_by_key(|(_, offset)| *offset)?;
        Some((symbol.name.to_string(), offset))
    }
}
