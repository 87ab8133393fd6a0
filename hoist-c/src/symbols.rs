//! Where symbols come from that the objects do not define.

use crate::border::{Bytes, Text, alone, changed, fallible, handle, infallible};
use crate::error::{Error, Status};
use crate::faults::host;
use crate::library::Library;
use crate::module::Module;
use crate::source::{Callback, Definition, HOIST_DEFINITION_FUNCTION, HOIST_DEFINITION_UNKNOWN};
use crate::source::{Source, SymbolCallback, SymbolSources};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_host::Process;
use exec_host::symbols::ArchiveSource;
use std::collections::HashMap;
use std::sync::Arc;

/// Adds a source, or says why not.
fn add(
    symbols: Option<NonNull<SymbolSources>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    source: impl FnOnce() -> Result<Source, Error>,
) -> Status {
    fallible(error, || {
        let symbols = handle(changed(symbols), "symbols")?;
        let source = source()?;
        alone(&symbols.0, "symbols")?.push(source);
        Ok(())
    })
}

/// An empty list: it defines nothing. Never NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_new() -> Box<SymbolSources> {
    Box::default()
}

/// Adds what this process has: the program, as far as it shows its symbols (`-rdynamic`), the C library, the mathematical library,
/// and what was opened for all (`RTLD_GLOBAL`).
///
/// Errors: `BUSY`.
/// Threads: one call at a time for each list; another one is answered `BUSY`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_process(
    symbols: Option<NonNull<SymbolSources>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || Ok(Source::Process(Process::new())))
}

/// Opens a library of the system as `dlopen` does - a path if the name has a slash, else a name to search for - and adds what this
/// process has and what the library has, in this order. Its constructors run. It is closed when neither the list nor a module needs
/// it.
///
/// Errors: `LIBRARY`, `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_system_library(
    symbols: Option<NonNull<SymbolSources>>,
    name: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || {
        let mut process = Process::new();
        // SAFETY: who names the library guarantees its constructors.
        unsafe { process.open(name.path("name")?) }.map_err(|error| host(&error, &[]))?;
        Ok(Source::Process(process))
    })
}

/// Whether variables of libraries of the system may be moved to where code without `-fPIC` reaches them, as linkers of programs have it (copy
/// relocations): of the process and of the libraries that are in the list so far. Libraries follow; no other thread may use such a variable while
/// it is moved, which a load does that needs it, and it stays there. Off at first.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_set_copy_relocations(
    symbols: Option<NonNull<SymbolSources>>,
    are_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let symbols = handle(changed(symbols), "symbols")?;
        for source in alone(&symbols.0, "symbols")?.iter_mut() {
            if let Source::Process(process) = source {
                // SAFETY: who asks for it guarantees that nobody else uses the variables meanwhile.
                unsafe { process.copy_relocations(are_wanted) };
            }
        }
        Ok(())
    })
}

/// Adds a function to ask, with what it is given. See `hoist_symbol_callback`. `context` may be NULL, and must be good as long as the
/// list is used.
///
/// Errors: `INVALID_ARGUMENT` if `callback` is NULL; `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_callback(
    symbols: Option<NonNull<SymbolSources>>,
    callback: SymbolCallback,
    context: *mut c_void,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || match callback {
        Some(_) => Ok(Source::Callback(Callback::new(callback, context))),
        None => Err(Error::null("callback")),
    })
}

/// Defines one symbol: that `name` is at `address`, where it must stay as long as code uses it. `kind` is `HOIST_DEFINITION_...`.
/// A name that was defined before in this list by this function moves.
///
/// Errors: `INVALID_ARGUMENT` for another kind; `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_define(
    symbols: Option<NonNull<SymbolSources>>,
    name: Text,
    address: u64,
    kind: u32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let name: Box<[u8]> = name.get("name")?.as_bytes().into();
        if ![HOIST_DEFINITION_UNKNOWN, HOIST_DEFINITION_FUNCTION].contains(&kind) {
            return Err(Error::argument(format_args!("kind is {kind}")));
        }
        let definition = Definition { address, kind, reserved: 0 };
        let mut sources = alone(&handle(changed(symbols), "symbols")?.0, "symbols")?;
        // a name stands in one of the tables only
        for source in sources.iter_mut() {
            if let Source::Defined(defined) = source
                && let Some(known) = defined.get_mut(&name)
            {
                *known = definition;
                return Ok(());
            }
        }
        if let Some(Source::Defined(defined)) = sources.last_mut() {
            defined.insert(name, definition);
        } else {
            sources.push(Source::Defined(HashMap::from([(name, definition)])));
        }
        Ok(())
    })
}

/// Adds what a module shows to others: its global symbols that are not hidden. Modules that use one of them keep the module in memory
/// after it was freed.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_module(
    symbols: Option<NonNull<SymbolSources>>,
    module: Option<&Module>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || Ok(Source::Module(Arc::clone(handle(module, "module")?.shared()))))
}

/// Adds what a library shows that `hoist_library_open_file` or `hoist_library_open_memory` has loaded. Who uses one of its symbols
/// keeps it in memory after it was freed.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_library(
    symbols: Option<NonNull<SymbolSources>>,
    library: Option<&Library>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || Ok(Source::Library(handle(library, "library")?.inner().clone())))
}

/// Adds an archive in a file: its members are loaded, together with the objects, as they are asked for.
///
/// Errors: `FILE`, `BAD_FILE`, `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_archive_file(
    symbols: Option<NonNull<SymbolSources>>,
    path: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || {
        let path = path.path("path")?;
        let opened = ArchiveSource::open(path);
        let opened = opened.map_err(|error| host(&error, &[]).of_file(&path.to_string_lossy()))?;
        Ok(Source::Archive(opened))
    })
}

/// The same of an archive in memory, which is copied. Thin archives are refused: their members are files.
///
/// Errors: `BAD_FILE`, `UNSUPPORTED`, `BUSY`.
/// Threads: as for `hoist_symbols_add_process`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_add_archive_memory(
    symbols: Option<NonNull<SymbolSources>>,
    data: Bytes,
    size: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    add(symbols, error, || {
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        ArchiveSource::parse(bytes).map(Source::Archive).map_err(|error| host(&error, &[]))
    })
}

/// Frees a list; NULL is none. What was loaded with it stays, with what it uses.
///
/// Threads: nobody uses the list any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_symbols_free(symbols: Option<Box<SymbolSources>>) {
    infallible((), || drop(symbols));
}
