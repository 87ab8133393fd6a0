//! What a module consists of.

use crate::border::{Rows, fallible, handle, infallible, place, row};
use crate::error::{Error, Status, c_string};
use crate::module::{Module, pointer_to};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::ffi::CString;
use std::sync::Arc;

/// A symbol of a module. Pointers are good as long as the module's handle.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSymbol {
    /// Its name, mangled if it was so. Local symbols may have names that others have, too.
    pub name: *const c_char,
    /// Its address.
    pub address: *mut c_void,
    /// Its size in bytes, 0 if the object does not tell.
    pub size: u64,
    /// The object that defines it: by number, members of archives behind the objects that were given.
    pub object: usize,
    /// The index of its section in the object; 0 of common symbols.
    pub section: u32,
    /// What it is: `STT_FUNC` (2), `STT_OBJECT` (1) ...
    pub kind: u8,
    /// Who sees it: `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2).
    pub binding: u8,
}

/// A section of one of a module's objects. Pointers are good as long as the module's handle.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSection {
    /// Its name.
    pub name: *const c_char,
    /// Where it is in memory, relocated; NULL if it is not loaded.
    pub address: *mut c_void,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes as the object has them, without relocation; NULL of zeros (`SHT_NOBITS`).
    pub data: *const c_void,
    /// How many bytes `data` has.
    pub data_size: usize,
    /// `SHF_WRITE` (1), `SHF_ALLOC` (2), `SHF_EXECINSTR` (4) ...
    pub flags: u64,
    /// The object, by its number.
    pub object: usize,
    /// Its index in the object.
    pub index: u32,
}

/// How many bytes of memory a module takes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ModuleSizes {
    /// Code, stubs included.
    pub code: u64,
    /// Data that are not written once they are relocated.
    pub read_only: u64,
    /// Other data.
    pub writable: u64,
    /// A thread's copy of thread-local variables.
    pub thread_variables: u64,
}

/// Rows with their names.
pub(crate) struct Tables {
    symbols: Rows<ModuleSymbol>,
    sections: Rows<ModuleSection>,
    #[expect(dead_code, reason = "what pointers of rows lead to")]
    names: Vec<CString>,
}

impl Tables {
    pub(crate) fn of(module: &exec_host::Module<Arc<[u8]>>) -> Self {
        let mut names = Vec::new();
        // the text of a `CString` stays where it is when the list grows
        let mut keep = |name: elf_core::Name<'_>| {
            let name = c_string(name.as_bytes());
            let text = name.as_ptr();
            names.push(name);
            text
        };
        let symbols = module.symbols().map(|symbol| ModuleSymbol {
            name: keep(symbol.name),
            address: pointer_to(symbol.address),
            size: symbol.size,
            object: symbol.object,
            section: symbol.section.unwrap_or(0),
            kind: symbol.r#type,
            binding: symbol.binding,
        });
        let symbols = Rows(symbols.collect());
        let sections = module.sections().map(|section| ModuleSection {
            name: keep(section.name),
            address: section.address.map_or(core::ptr::null_mut(), pointer_to),
            size: section.size,
            data: match section.in_file() {
                [] => core::ptr::null(),
                bytes => bytes.as_ptr().cast(),
            },
            data_size: section.in_file().len(),
            flags: section.flags.bits(),
            object: section.object,
            index: section.index,
        });
        let sections = Rows(sections.collect());
        Self { symbols, sections, names }
    }
}

/// How many symbols have an address, local ones included; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_symbol_count(module: Option<&Module>) -> usize {
    infallible(0, || module.map_or(0, |module| module.tables().symbols.0.len()))
}

/// Symbol `index`, from 0 on, object by object.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_symbol(
    module: Option<&Module>,
    index: usize,
    symbol: Option<&mut MaybeUninit<ModuleSymbol>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let symbol = place(symbol, "symbol")?;
        *symbol = *row(&handle(module, "module")?.tables().symbols.0, index, "symbol")?;
        Ok(())
    })
}

/// The symbol that `address` is in - of several, the innermost - and, unless `offset` is NULL, how many bytes behind its start.
///
/// Errors: `NOT_FOUND` if it is in none.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_symbol_at(
    module: Option<&Module>,
    address: *const c_void,
    symbol: Option<&mut MaybeUninit<ModuleSymbol>>,
    offset: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let symbol = place(symbol, "symbol")?;
        let module = handle(module, "module")?;
        let address = address.addr() as u64;
        let missing = || {
            Error::new(Status::NotFound, format_args!("no symbol of the module is at {address:#x}"))
        };
        let (found, behind) = module.shared().symbol_at(address).ok_or_else(missing)?;
        let is_it = |(row, known): &(&ModuleSymbol, exec_host::ModuleSymbol<'_>)| {
            *known == found && row.address.addr() as u64 == found.address
        };
        // rows are in the order in which the module tells its symbols
        let (row, _) = module
            .tables()
            .symbols
            .0
            .iter()
            .zip(module.shared().symbols())
            .find(is_it)
            .ok_or_else(missing)?;
        *symbol = *row;
        offset.map(|offset| offset.write(behind));
        Ok(())
    })
}

/// How many sections the objects have; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_section_count(module: Option<&Module>) -> usize {
    infallible(0, || module.map_or(0, |module| module.tables().sections.0.len()))
}

/// Section `index` of all that the objects have, from 0 on, object by object, whether it is in memory or not.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_section(
    module: Option<&Module>,
    index: usize,
    section: Option<&mut MaybeUninit<ModuleSection>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let section = place(section, "section")?;
        *section = *row(&handle(module, "module")?.tables().sections.0, index, "section")?;
        Ok(())
    })
}

/// How much memory the module takes.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_sizes(
    module: Option<&Module>,
    sizes: Option<&mut MaybeUninit<ModuleSizes>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let place = place(sizes, "sizes")?;
        let sizes = handle(module, "module")?.shared().sizes();
        *place = ModuleSizes {
            code: sizes.code,
            read_only: sizes.read_only,
            writable: sizes.writable,
            thread_variables: sizes.thread_local,
        };
        Ok(())
    })
}
