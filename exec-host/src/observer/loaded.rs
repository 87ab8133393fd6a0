//! A load as observers see it.

use crate::Host;
use crate::memory::Mapping;
use elf_core::names::{STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use elf_core::{Definition, File, Name, SectionFlags, SymbolTable};
use elf_layout::Layout;

/// A load that is in place.
#[derive(Debug)]
pub struct Loaded<'l> {
    pub(super) layout: &'l Layout<'l, 'l, Host>,
    pub(super) memory: &'l Mapping,
}

/// A function in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedFunction<'l> {
    /// The object that defines it; for a stub, the first that asks for it.
    pub object: usize,
    /// Its name, mangled if it was so.
    pub name: Name<'l>,
    /// Its address.
    pub address: u64,
    /// Its size in bytes; where the object does not tell, up to the next function or the section's end.
    pub size: u64,
    /// Whether it is only a jump to the function of this name.
    pub is_stub: bool,
}

impl<'l> Loaded<'l> {
    pub(crate) const fn new(layout: &'l Layout<'l, 'l, Host>, memory: &'l Mapping) -> Self {
        Self { layout, memory }
    }

    /// The objects.
    #[must_use]
    pub const fn files(&self) -> &'l [File<'l>] {
        self.layout.files()
    }

    /// Address of the image.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// The image as it is in memory.
    #[must_use]
    pub(crate) fn bytes(&self, address: u64, size: u64) -> Option<&'l [u8]> {
        let offset = address.checked_sub(self.address())?;
        // SAFETY: observers are told after everything is protected, and before any code runs that could write.
        unsafe { self.memory.bytes(offset, size) }?.get(..usize::try_from(size).ok()?)
    }

    /// Address of a section of an object, if it is loaded.
    #[must_use]
    pub fn section(&self, object: usize, section: u32) -> Option<u64> {
        Some(self.address().wrapping_add(self.layout.section(object, section)?))
    }

    /// Address of a symbol of an object, if it is loaded.
    #[must_use]
    pub fn symbol(&self, object: usize, symbol: u32) -> Option<u64> {
        Some(self.layout.symbol(object, symbol)?.at(self.address()))
    }

    /// Address of what is at `offset` of a section of an object in the file.
    pub(super) fn place(&self, object: usize, section: u32, offset: u64) -> Option<u64> {
        Some(self.address().wrapping_add(self.layout.place(object, section, offset)?))
    }

    /// All functions and stubs, by rising address.
    #[must_use]
    pub fn functions(&self) -> Vec<LoadedFunction<'l>> {
        let mut found = Vec::new();
        for (object, file) in self.files().iter().enumerate() {
            if let Ok(Some(table)) = file.symbol_table() {
                self.functions_of(object, file, &table, &mut found);
            }
        }
        let stubs = self.layout.stubs().filter_map(|stub| {
            let table = self.files().get(stub.object)?.symbol_table().ok()??;
            let name = table.name_of(&table.get(stub.symbol).ok()?).ok()?;
            let address = self.address().wrapping_add(stub.offset);
            let function = LoadedFunction {
                object: stub.object,
                name,
                address,
                size: stub.size,
                is_stub: true,
            };
            Some((function, 0))
        });
        found.extend(stubs);
        sized(found)
    }

    /// Adds the functions that an object defines, each with the end of its section.
    fn functions_of(
        &self,
        object: usize,
        file: &File<'l>,
        table: &SymbolTable<'l>,
        found: &mut Vec<(LoadedFunction<'l>, u64)>,
    ) {
        for (index, symbol) in (0u32..).zip(table.symbols().iter()) {
            let may_be_code = match symbol.r#type() {
                STT_FUNC | STT_GNU_IFUNC => true,
                // a label of assembly; local ones are of no interest, or marks ($x)
                STT_NOTYPE => symbol.binding() != STB_LOCAL,
                _ => false,
            };
            if !may_be_code {
                continue;
            }
            let Ok(Definition::Section(section)) = table.section_of(index, &symbol) else {
                continue;
            };
            let (Ok(header), Ok(name)) = (file.section(section), table.name_of(&symbol)) else {
                continue;
            };
            let Some(start) = self.section(object, section) else { continue };
            if name.is_empty() || !header.flags.contains(SectionFlags::EXECINSTR) {
                continue;
            }
            let Some(address) = self.place(object, section, symbol.value) else { continue };
            let size = self.layout.section_size(object, section).unwrap_or(header.size);
            let end = start.wrapping_add(size);
            let size = self.layout.symbol_size(object, index).unwrap_or(symbol.size);
            let size = size.min(end.saturating_sub(address));
            found.push((LoadedFunction { object, name, address, size, is_stub: false }, end));
        }
    }
}

/// Functions by rising address, each given with the end of what it is in: those without a size reach up to the next one, or there.
pub(super) fn sized<'l>(mut found: Vec<(LoadedFunction<'l>, u64)>) -> Vec<LoadedFunction<'l>> {
    found.sort_by_key(|(function, end)| (function.address, end.wrapping_sub(function.address)));
    let starts: Vec<u64> = found.iter().map(|(function, _)| function.address).collect();
    let sized = found.into_iter().map(|(function, end)| {
        let next = starts.get(starts.partition_point(|start| *start <= function.address));
        let rest = next.copied().unwrap_or(u64::MAX).min(end).saturating_sub(function.address);
        LoadedFunction { size: if function.size == 0 { rest } else { function.size }, ..function }
    });
    sized.collect()
}
