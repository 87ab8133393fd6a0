//! Symbols and relocations of ELF files.

use crate::border::{Text, fallible, handle, place};
use crate::error::{Error, Status};
use crate::file::{File, section_number};
use core::ffi::c_char;
use core::mem::MaybeUninit;
use elf_core::{Definition, Relocations, SymbolTable};

/// The symbol table of a file (`.symtab`).
pub const HOIST_SYMBOL_TABLE: u32 = 0;
/// The symbols for dynamic linking (`.dynsym`).
pub const HOIST_DYNAMIC_SYMBOL_TABLE: u32 = 1;

/// `hoist_file_symbol_row.definition`: another file has it.
pub const HOIST_SYMBOL_UNDEFINED: u32 = 0;
/// `hoist_file_symbol_row.definition`: it is in section `section`.
pub const HOIST_SYMBOL_IN_SECTION: u32 = 1;
/// `hoist_file_symbol_row.definition`: its value is what it is worth, wherever the file is (`SHN_ABS`).
pub const HOIST_SYMBOL_ABSOLUTE: u32 = 2;
/// `hoist_file_symbol_row.definition`: room that linkers give it (`SHN_COMMON`); `value` is its alignment.
pub const HOIST_SYMBOL_COMMON: u32 = 3;
/// `hoist_file_symbol_row.definition`: a number of the machine or the system, in `section`.
pub const HOIST_SYMBOL_RESERVED: u32 = 4;

/// A symbol of a file. Pointers are good as long as the file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FileSymbol {
    /// Its name, empty if it has none.
    pub name: *const c_char,
    /// Its address, in relocatable files its offset in the section.
    pub value: u64,
    /// Its size in bytes.
    pub size: u64,
    /// `HOIST_SYMBOL_...`
    pub definition: u32,
    /// The number of its section, if it is in one.
    pub section: u32,
    /// `STT_NOTYPE` (0), `STT_OBJECT` (1), `STT_FUNC` (2), `STT_SECTION` (3), `STT_FILE` (4), `STT_TLS` (6) ...
    pub kind: u8,
    /// `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2) ...
    pub binding: u8,
    /// `STV_DEFAULT` (0), `STV_INTERNAL` (1), `STV_HIDDEN` (2), `STV_PROTECTED` (3).
    pub visibility: u8,
    /// `st_other`.
    pub other: u8,
}

/// A relocation of a file. Pointers are good as long as the file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FileRelocation {
    /// Where: in relocatable files an offset in the section that `sh_info` of the relocations' section names, else an address.
    pub offset: u64,
    /// What is added; 0 if the place holds it.
    pub addend: i64,
    /// Whether the record has the addend (`RELA`), not the place (`REL`).
    pub has_addend: bool,
    /// Its type, as the machine numbers them.
    pub kind: u32,
    /// The symbol's number in the table that `sh_link` of the relocations' section names; 0 if there is none.
    pub symbol: u32,
    /// The name of its type (`"R_X86_64_PC32"`), empty if it is not known.
    pub type_name: *const c_char,
    /// The name of the symbol, or of the section that the symbol stands for; empty if there is none.
    pub symbol_name: *const c_char,
}

fn table(file: &File, table: u32) -> Result<Option<SymbolTable<'_>>, Error> {
    let found = match table {
        HOIST_SYMBOL_TABLE => file.parsed().symbol_table(),
        HOIST_DYNAMIC_SYMBOL_TABLE => file.parsed().dynamic_symbol_table(),
        _ => return Err(Error::argument(format_args!("there is no symbol table {table}"))),
    };
    found.map_err(|error| file.damaged(error))
}

fn row(file: &File, table: &SymbolTable<'_>, index: u32) -> Result<FileSymbol, Error> {
    let damaged = |error| file.damaged(error);
    let symbol = table.get(index).map_err(damaged)?;
    let (definition, section) = match table.section_of(index, &symbol).map_err(damaged)? {
        Definition::Undefined => (HOIST_SYMBOL_UNDEFINED, 0),
        Definition::Section(section) => (HOIST_SYMBOL_IN_SECTION, section),
        Definition::Absolute => (HOIST_SYMBOL_ABSOLUTE, 0),
        Definition::Common => (HOIST_SYMBOL_COMMON, 0),
        Definition::Reserved(number) => (HOIST_SYMBOL_RESERVED, number.into()),
    };
    Ok(FileSymbol {
        name: file.text(table.name_of(&symbol).map_err(damaged)?),
        value: symbol.value,
        size: symbol.size,
        definition,
        section,
        kind: symbol.r#type(),
        binding: symbol.binding(),
        visibility: symbol.visibility(),
        other: symbol.other,
    })
}

/// How many symbols a table has (`HOIST_SYMBOL_TABLE`, `HOIST_DYNAMIC_SYMBOL_TABLE`), the null symbol (0) included; 0 if there is no
/// such table.
///
/// Errors: `BAD_FILE`; `INVALID_ARGUMENT` for another table.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_symbol_count(
    file: Option<&File>,
    table_kind: u32,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let count = place(count, "count")?;
        *count = table(handle(file, "file")?, table_kind)?.map_or(0, |table| table.len());
        Ok(())
    })
}

/// Symbol `index` of a table, as it is numbered in the file: 0 is the null symbol.
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE`; `INVALID_ARGUMENT` for another table.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_symbol(
    file: Option<&File>,
    table_kind: u32,
    index: usize,
    symbol: Option<&mut MaybeUninit<FileSymbol>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let symbol = place(symbol, "symbol")?;
        let file = handle(file, "file")?;
        let table = table(file, table_kind)?;
        let count = table.map_or(0, |table| table.len());
        let number = u32::try_from(index).ok().filter(|_| index < count).zip(table);
        let (number, table) = number.ok_or_else(|| Error::out_of_range("symbol", index, count))?;
        *symbol = row(file, &table, number)?;
        Ok(())
    })
}

/// The number of the symbol of this name: a definition rather than a reference, if there are both.
///
/// Errors: `NOT_FOUND`; `BAD_FILE`; `INVALID_ARGUMENT` for another table.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_find_symbol(
    file: Option<&File>,
    table_kind: u32,
    name: Text,
    index: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let index = place(index, "index")?;
        let name = name.get("name")?;
        let table = table(handle(file, "file")?, table_kind)?;
        let named = |defined: bool| {
            let table = table?;
            let symbols = (0usize..).zip(table.symbols().iter()).skip(1);
            let mut symbols = symbols.filter(|(_, symbol)| symbol.is_undefined() != defined);
            symbols.find(|(_, symbol)| table.name_of(symbol).is_ok_and(|found| found == name))
        };
        let found = named(true).or_else(|| named(false));
        *index = found.ok_or_else(|| Error::not_found("symbol", name))?.0;
        Ok(())
    })
}

fn relocations(file: &File, section: usize) -> Result<Option<Relocations<'_>>, Error> {
    let number = section_number(file, section)?;
    let header = file.parsed().section(number).map_err(|error| file.damaged(error))?;
    file.parsed().relocations(&header).map_err(|error| file.damaged(error))
}

/// How many relocations section `section` has: 0 if it is none with relocations (`SHT_RELA`, `SHT_REL`, `SHT_CREL`, `SHT_RELR`,
/// Android's packed ones).
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_relocation_count(
    file: Option<&File>,
    section: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let count = place(count, "count")?;
        *count = relocations(handle(file, "file")?, section)?.map_or(0, |found| found.len());
        Ok(())
    })
}

/// Relocation `index` of section `section`, from 0 on.
///
/// Errors: `OUT_OF_RANGE`; `BAD_FILE`, also if the symbol is not in its table.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_file_relocation(
    file: Option<&File>,
    section: usize,
    index: usize,
    relocation: Option<&mut MaybeUninit<FileRelocation>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let relocation = place(relocation, "relocation")?;
        let file = handle(file, "file")?;
        let found = relocations(file, section)?;
        let count = found.as_ref().map_or(0, |found| found.len());
        let record = found.and_then(|found| found.get(index));
        let record = record.ok_or_else(|| Error::out_of_range("relocation", index, count))?;
        let damaged = |error| file.damaged(error);
        let header = file.parsed().section(section_number(file, section)?).map_err(damaged)?;
        let mut symbol_name = c"".as_ptr();
        if record.symbol != 0 {
            let table = file.parsed().symbol_table_at(header.link).map_err(damaged)?;
            let symbol = table.get(record.symbol).map_err(damaged)?;
            let name =
                elf_layout::explain::symbol_name(file.parsed(), &table, record.symbol, &symbol);
            symbol_name = file.text(name.map_err(damaged)?);
        }
        *relocation = FileRelocation {
            offset: record.offset,
            addend: record.addend.unwrap_or(0),
            has_addend: record.addend.is_some(),
            kind: record.r#type,
            symbol: record.symbol,
            type_name: file.type_name(record.r#type),
            symbol_name,
        };
        Ok(())
    })
}
