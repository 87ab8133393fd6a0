//! A library as debuggers want it: its sections and symbols at the addresses where they are loaded.

use super::LoadedLibrary;
use super::debug_object::write;
use crate::word::bytes;
use crate::word::raw::{Ehdr, Shdr, Sym};
use core::mem::offset_of;
use elf_core::names::{SHN_ABS, SHT_DYNSYM, SHT_NOTE, SHT_NULL, SHT_STRTAB, SHT_SYMTAB, STT_TLS};
use elf_core::{File, SectionFlags, SectionHeader};

/// A copy of the file with `sh_addr` and `st_value` as they are in memory. What else has addresses, debugging information and the names of
/// files with more of it, is no section any more, so that nobody is told anything wrong: there are names and frames.
///
/// Nothing if the file has no sections.
pub(super) fn debug_library(library: &LoadedLibrary<'_>) -> Option<Vec<u8>> {
    let file = File::parse(library.file()).ok()?;
    let mut copy = Copy { bytes: library.file().to_vec(), file, bias: library.bias() };
    if file.sections().len() < 2 {
        return None;
    }
    // segments speak of other addresses
    write(&mut copy.bytes, Some(offset_of!(Ehdr, e_phoff)), &bytes(0));
    write(&mut copy.bytes, Some(offset_of!(Ehdr, e_phnum)), &[0; 2]);
    for (index, header) in (0u32..).zip(file.sections()) {
        copy.section(index, &header);
    }
    Some(copy.bytes)
}

struct Copy<'f> {
    bytes: Vec<u8>,
    file: File<'f>,
    bias: u64,
}

impl Copy<'_> {
    fn section(&mut self, index: u32, header: &SectionHeader) {
        let is_loaded = header.flags.contains(SectionFlags::ALLOC);
        let is_known = match header.r#type {
            // a build ID leads to a file with addresses of its own
            SHT_NOTE => false,
            SHT_SYMTAB | SHT_STRTAB | SHT_NULL => true,
            _ => is_loaded,
        };
        if !is_known {
            self.put(index, offset_of!(Shdr, sh_type), &SHT_NULL.to_le_bytes());
        } else if is_loaded {
            let address = header.address.wrapping_add(self.bias);
            self.put(index, offset_of!(Shdr, sh_addr), &bytes(address));
        }
        if matches!(header.r#type, SHT_SYMTAB | SHT_DYNSYM) {
            self.symbols(index, header);
        }
    }

    /// Changes a field of a section's header.
    fn put(&mut self, index: u32, field: usize, value: &[u8]) {
        let start = (index as usize).checked_mul(size_of::<Shdr>());
        let start = start.and_then(|start| start.checked_add(field));
        let start =
            start.and_then(|start| start.checked_add(self.file.header().section_headers as usize));
        write(&mut self.bytes, start, value);
    }

    /// Adds the bias to the values of symbols.
    fn symbols(&mut self, index: u32, header: &SectionHeader) {
        let Ok(table) = self.file.symbol_table_at(index) else { return };
        let start = usize::try_from(header.offset).ok();
        for (number, symbol) in table.symbols().iter().enumerate() {
            let has_address = !symbol.is_undefined() && symbol.shndx != SHN_ABS;
            if !has_address || symbol.r#type() == STT_TLS {
                continue;
            }
            let row = number.checked_mul(size_of::<Sym>());
            let row = row.and_then(|row| row.checked_add(offset_of!(Sym, st_value)));
            let at = start.zip(row).and_then(|(start, row)| start.checked_add(row));
            let value = symbol.value.wrapping_add(self.bias);
            write(&mut self.bytes, at, &bytes(value));
        }
    }
}
