//! A library out of bytes as observers see it.

use super::loaded::{LoadedFunction, sized};
use crate::Host;
use crate::memory::Mapping;
use core::ops::Range;
use elf_core::names::{SHN_ABS, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use elf_core::{Arch as _, File, Name, SymbolTable};

/// A library that is in place: relocated, and nothing of it has run.
pub struct LoadedLibrary<'l> {
    bytes: &'l [u8],
    name: Name<'l>,
    bias: u64,
    code: &'l [Range<u64>],
    memory: &'l Mapping,
    /// Its dynamic symbols.
    shown: Option<SymbolTable<'l>>,
}

impl core::fmt::Debug for LoadedLibrary<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LoadedLibrary")
            .field("name", &self.name)
            .field("bias", &self.bias)
            .finish_non_exhaustive()
    }
}

impl<'l> LoadedLibrary<'l> {
    pub(crate) const fn new(
        bytes: &'l [u8],
        name: Name<'l>,
        bias: u64,
        code: &'l [Range<u64>],
        memory: &'l Mapping,
        shown: Option<SymbolTable<'l>>,
    ) -> Self {
        Self { bytes, name, bias, code, memory, shown }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &'l [u8] {
        self.bytes
    }

    /// Its name (`DT_SONAME`); empty if it has none.
    #[must_use]
    pub const fn name(&self) -> Name<'l> {
        self.name
    }

    /// What is added to addresses of the file.
    #[must_use]
    pub const fn bias(&self) -> u64 {
        self.bias
    }

    /// `size` bytes of code as they are in memory.
    #[must_use]
    pub fn code(&self, address: u64, size: u64) -> Option<&'l [u8]> {
        self.code_end(address).filter(|end| size <= end.saturating_sub(address))?;
        let offset = address.checked_sub(self.memory.address())?;
        // SAFETY: it is code, which nobody writes to as long as the library is there.
        unsafe { self.memory.bytes(offset, size) }?.get(..usize::try_from(size).ok()?)
    }

    /// All functions that the file names, by rising address: those of its symbol table, or, if that was taken out, of the dynamic one.
    #[must_use]
    pub fn functions(&self) -> Vec<LoadedFunction<'l>> {
        let Some(table) = self.symbols() else { return Vec::new() };
        let mut found = Vec::new();
        for symbol in table.symbols() {
            let may_be_code = match symbol.r#type() {
                STT_FUNC | STT_GNU_IFUNC => true,
                STT_NOTYPE => symbol.binding() != STB_LOCAL,
                _ => false,
            };
            if !may_be_code || symbol.is_undefined() || symbol.shndx == SHN_ABS {
                continue;
            }
            // where its instructions are: pointers to Thumb code have one bit more
            let address = Host::symbol(&symbol).0.wrapping_add(self.bias);
            let (Some(end), Ok(name)) = (self.code_end(address), table.name_of(&symbol)) else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let size = symbol.size.min(end.saturating_sub(address));
            found.push((LoadedFunction { object: 0, name, address, size, is_stub: false }, end));
        }
        sized(found)
    }

    /// The symbols that say most.
    fn symbols(&self) -> Option<SymbolTable<'l>> {
        let by_section = || {
            let file = File::parse(self.bytes).ok()?;
            file.symbol_table().ok().flatten()
        };
        by_section().or(self.shown)
    }

    /// The end of the code that an address is in.
    fn code_end(&self, address: u64) -> Option<u64> {
        self.code.iter().find(|range| range.contains(&address)).map(|range| range.end)
    }
}
