//! Objects that use the variables of an earlier load instead of their own.

use crate::Module;
use crate::error::Error;
use crate::word::raw::Sym;
use crate::word::{self, bytes};
use core::mem::offset_of;
use elf_core::names::{SHN_UNDEF, STT_COMMON, STT_NOTYPE, STT_OBJECT};
use elf_core::{Definition, File, Name, SectionFlags, Symbol, SymbolTable};

/// A copy of `object` without the variables that `old` has under the same names: loaded with `old` as its first
/// [source](super::Symbols), it uses them, where they are and as they are. For a function that was compiled anew and
/// [replaces](Module::replace) one whose data shall stay.
///
/// Variables are writable, and known by name to other objects. What is `static` in C, constant, or thread-local is the object's own.
/// A compiler that reaches variables by way of others beside them (GCC's section anchors on AArch64) needs `-fPIC` or
/// `-fno-section-anchors`.
///
/// # Errors
/// [`Error::Elf`] if the object is damaged; [`Error::SizeDiffers`] if a variable has another size than it had.
pub fn keep_data<B: AsRef<[u8]>>(object: &[u8], old: &Module<B>) -> Result<Vec<u8>, Error> {
    let elf = |error| Error::Elf { object: 0, error };
    let file = File::parse(object).map_err(elf)?;
    let mut copy = object.to_vec();
    let encoding = file.encoding();
    let Some(table) = file.symbol_table().map_err(elf)? else { return Ok(copy) };
    if encoding.is_64() != word::IS_64 || encoding.is_big_endian() {
        return Ok(copy);
    }
    let rows = file.section(table.section()).map_err(elf)?.offset;
    let globals = (0u32..).zip(table.symbols().iter()).skip(table.first_global());
    for (index, symbol) in globals {
        if !is_variable(&file, &table, index, &symbol).map_err(elf)? {
            continue;
        }
        let name = table.name_of(&symbol).map_err(elf)?;
        let Some(size) = size_in(old, name).filter(|_| old.exports().get(name).is_some()) else {
            continue;
        };
        if size != symbol.size {
            return Err(Error::SizeDiffers { name: name.to_string(), old: size, new: symbol.size });
        }
        let row = usize::try_from(rows)
            .ok()
            .and_then(|rows| rows.checked_add((index as usize).checked_mul(size_of::<Sym>())?));
        let row = row.and_then(|row| copy.get_mut(row..)?.get_mut(..size_of::<Sym>()));
        let Some(row) = row else { continue };
        for (field, value) in [
            (offset_of!(Sym, st_shndx), SHN_UNDEF.to_le_bytes().as_slice()),
            (offset_of!(Sym, st_value), &bytes(0)),
        ] {
            if let Some(place) = row.get_mut(field..).and_then(|rest| rest.get_mut(..value.len())) {
                place.copy_from_slice(value);
            }
        }
    }
    Ok(copy)
}

/// Whether a symbol is that of a variable which the object defines.
fn is_variable(
    file: &File<'_>,
    table: &SymbolTable<'_>,
    index: u32,
    symbol: &Symbol,
) -> Result<bool, elf_core::Error> {
    if !matches!(symbol.r#type(), STT_OBJECT | STT_COMMON | STT_NOTYPE) {
        return Ok(false);
    }
    let section = match table.section_of(index, symbol)? {
        Definition::Common => return Ok(true),
        Definition::Section(section) => file.section(section)?,
        _ => return Ok(false),
    };
    let name = file.section_name(&section)?;
    let is_relocated_constant = name.as_bytes().starts_with(b".data.rel.ro");
    let flags = section.flags & (SectionFlags::ALLOC | SectionFlags::WRITE | SectionFlags::TLS);
    Ok(flags == SectionFlags::ALLOC | SectionFlags::WRITE && !is_relocated_constant)
}

/// The size of a symbol that a module defines.
fn size_in<B: AsRef<[u8]>>(module: &Module<B>, name: Name<'_>) -> Option<u64> {
    module.bytes().find_map(|object| {
        let table = File::parse(object).ok()?.symbol_table().ok()??;
        let mut globals = table.symbols().iter().skip(table.first_global());
        let found = globals.find(|symbol| {
            !symbol.is_undefined() && table.name_of(symbol).is_ok_and(|found| found == name)
        });
        found.map(|symbol| symbol.size)
    })
}
