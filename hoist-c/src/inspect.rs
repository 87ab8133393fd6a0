//! What a module consists of.

use crate::address::pointer_to;
use crate::border::{Text, empty, fallible, handle, infallible, needed, place, row};
use crate::error::{Error, Status};
use crate::faults::io;
use crate::module::Module;
use crate::module_rows::{ModuleSection, ModuleSegment, ModuleSizes, ModuleSymbol};
use core::ffi::c_void;
use core::mem::MaybeUninit;

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
        let (symbol, offset) = (empty(symbol), empty(offset));
        let symbol = needed(symbol, "symbol")?;
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
        if let Some(offset) = offset {
            *offset = behind;
        }
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

/// How many segments the module has: stretches of memory of one permission; 0 of NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_segment_count(module: Option<&Module>) -> usize {
    infallible(0, || module.map_or(0, |module| module.tables().segments.0.len()))
}

/// Segment `index`, from 0 on.
///
/// Errors: `OUT_OF_RANGE`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_segment(
    module: Option<&Module>,
    index: usize,
    segment: Option<&mut MaybeUninit<ModuleSegment>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let segment = place(segment, "segment")?;
        *segment = *row(&handle(module, "module")?.tables().segments.0, index, "segment")?;
        Ok(())
    })
}

/// How many bytes of the module's memory are in huge pages now, as the system tells it: what came of `hoist_loader_set_huge_pages`.
///
/// Errors: `FILE` if the system does not tell.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_bytes_in_huge_pages(
    module: Option<&Module>,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let place = place(bytes, "bytes")?;
        let bytes = handle(module, "module")?.shared().bytes_in_huge_pages();
        *place = bytes.map_err(|cause| io(&cause, "/proc/self/smaps".as_ref()))?;
        Ok(())
    })
}

/// The address of the symbol that is called `name` in the source: `space::name(int)`, or, whatever it takes, `space::name`; of several the
/// first. A name that is not mangled is itself.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_module_find_demangled(
    module: Option<&Module>,
    name: Text,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let address = place(address, "address")?;
        let name = name.get("name")?;
        let found = handle(module, "module")?.shared().find_demangled(name).next();
        *address = pointer_to(found.ok_or_else(|| Error::not_found("symbol", name))?.address);
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
