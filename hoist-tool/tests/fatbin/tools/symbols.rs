//! Where the symbols of a linked file are: each in the section that it names, by the address of that.

use std::collections::BTreeSet;

use elf_core::names::{PT_TLS, SHF_ALLOC, SHT_DYNSYM, SHT_SYMTAB, STT_TLS};
use elf_core::{Definition, Error, File, SectionHeader, Symbol};

/// Sections whose contents are changed, and with them what is where in them.
const CHANGED: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];

/// What is known of symbols, one line for each.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Names, and those of their sections.
    pub(super) sections: BTreeSet<String>,
    /// The same with offsets and sizes in their sections, but for those whose contents are changed.
    pub(super) offsets: BTreeSet<String>,
    /// Those that are not inside of the section that they name, or reach out of it.
    pub(super) astray: BTreeSet<String>,
}

/// The symbols of all tables of a file.
///
/// # Errors
/// If a table is outside of the file, or names a section that is not there.
pub(super) fn symbols(bytes: &[u8]) -> Result<Symbols, Error> {
    let file = File::parse(bytes)?;
    let mut found = Symbols::default();
    for (number, table) in (0_u32..).zip(file.sections().iter()) {
        if ![SHT_SYMTAB, SHT_DYNSYM].contains(&table.r#type) {
            continue;
        }
        let symbols = file.symbol_table_at(number)?;
        for (index, symbol) in (0_u32..).zip(symbols.symbols().iter()) {
            let Definition::Section(section) = symbols.section_of(index, &symbol)? else {
                continue;
            };
            let section = file.section(section)?;
            let (name, of) = (symbols.name_of(&symbol)?, file.section_name(&section)?);
            let line = format!("{}: {name} in {of}", file.section_name(&table)?);
            let offset = symbol.value.wrapping_sub(start(&file, &section, &symbol));
            let is_inside = offset.checked_add(symbol.size).is_some_and(|end| end <= section.size);
            if !is_inside && section.flags.bits() & SHF_ALLOC != 0 {
                found.astray.insert(line.clone());
            }
            if !CHANGED.iter().any(|name| of == *name) {
                // what is elsewhere, as lld's `__dso_handle`, does not move with the section
                let at = if is_inside { offset } else { symbol.value };
                found.offsets.insert(format!("{line} at {at:#x}, {:#x} bytes", symbol.size));
            }
            found.sections.insert(line);
        }
    }
    Ok(found)
}

/// Where a section begins: the values of thread-local symbols count from the first one's begin.
fn start(file: &File<'_>, section: &SectionHeader, symbol: &Symbol) -> u64 {
    let block = file.segments().iter().find(|segment| segment.r#type == PT_TLS);
    let block = block.filter(|_| symbol.r#type() == STT_TLS);
    section.address.wrapping_sub(block.map_or(0, |block| block.address))
}
