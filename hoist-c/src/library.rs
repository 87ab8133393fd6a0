//! Shared libraries out of bytes: what `dlopen` gives, without a file.

use crate::address::{Function, function_at, pointer_to};
use crate::border::{Bytes, Text, alone, empty, fallible, give, handle, infallible, needed, place};
use crate::error::{Error, Status, c_string};
use crate::faults::host;
use crate::library_options::LibraryOptions;
use crate::source::{Source, SymbolSources};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use exec_host::library::LibraryLoader;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A shared library in memory. Free it with `hoist_library_free`.
pub struct Library {
    inner: exec_host::library::Library,
    name: CString,
    /// Names of functions that were given out: the text of each stays where it is.
    names: Mutex<BTreeSet<CString>>,
}

impl Library {
    pub(crate) const fn inner(&self) -> &exec_host::library::Library {
        &self.inner
    }

    /// Loads what the file at `path` is.
    pub(crate) fn open_file(
        path: &Path,
        symbols: Option<&SymbolSources>,
        options: &LibraryOptions,
    ) -> Result<Self, Error> {
        // SAFETY: who opens the library guarantees its code and its file.
        let opened = Self::with(symbols, options, |loader| unsafe { loader.open_file(path) });
        opened.map_err(|error| match error.status() {
            // the file is the one that is needed
            Status::Library => error.before(&path.to_string_lossy()),
            _ => error.of_file(&path.to_string_lossy()),
        })
    }

    /// Loads what the bytes are.
    pub(crate) fn open(
        bytes: Vec<u8>,
        symbols: Option<&SymbolSources>,
        options: &LibraryOptions,
    ) -> Result<Self, Error> {
        // SAFETY: who opens the library guarantees its code.
        Self::with(symbols, options, |loader| unsafe { loader.open(bytes) })
    }

    fn with(
        symbols: Option<&SymbolSources>,
        options: &LibraryOptions,
        open: impl FnOnce(LibraryLoader<'_>) -> Result<exec_host::library::Library, exec_host::Error>,
    ) -> Result<Self, Error> {
        let mut sources = symbols.map(|symbols| alone(&symbols.0, "symbols")).transpose()?;
        let mut loader = options.loader();
        for source in sources.iter().flat_map(|sources| sources.iter()) {
            if let Source::Library(library) = source {
                loader = loader.library(library);
            }
        }
        if let Some(sources) = &mut sources {
            loader = loader.symbols(&mut **sources);
        }
        let inner = open(loader).map_err(|error| host(&error, &[]))?;
        let name = c_string(inner.name().as_bytes());
        Ok(Self { inner, name, names: Mutex::default() })
    }
}

/// Loads a shared library out of a file. Its constructors run, and those of libraries that it needs, which are found as the dynamic
/// loader finds them, or among the libraries in `symbols` (by `DT_SONAME`). `symbols` may be NULL; it is asked last. `limit` is how many
/// bytes of memory the library may take, 0 standing for 16 GiB and 64 times the size of its file.
///
/// The dynamic loader knows nothing of the library: `dlsym` and `dladdr` do not find it.
///
/// Pages of the file are mapped, as `dlopen` does, not copied; with who is told of loads (`hoist_library_loader_tell`), it is read. As for
/// `dlopen`, nobody writes to the file or makes it shorter as long as the library is there; it may be removed, or another one put in its
/// place. A file that may be changed is for `hoist_library_open_memory`.
///
/// Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED` (a program, the C library), `UNDEFINED_SYMBOL`, `LIBRARY` for one that it needs,
/// `THREAD_LOCAL`, `MEMORY`, `TOO_LARGE`, `BUSY`.
/// Threads: any number at once, with different symbols.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_open_file(
    path: Text,
    symbols: Option<&SymbolSources>,
    limit: u64,
    library: Option<&mut MaybeUninit<*mut Library>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let library = place(library, "library")?;
        let options = LibraryOptions { limit, ..LibraryOptions::default() };
        give(library, Library::open_file(path.path("path")?, symbols, &options)?);
        Ok(())
    })
}

/// The same of `size` bytes in memory, which are copied.
///
/// Errors: as `hoist_library_open_file`.
/// Threads: as for `hoist_library_open_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_open_memory(
    data: Bytes,
    size: usize,
    symbols: Option<&SymbolSources>,
    limit: u64,
    library: Option<&mut MaybeUninit<*mut Library>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let library = place(library, "library")?;
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        let options = LibraryOptions { limit, ..LibraryOptions::default() };
        give(library, Library::open(bytes.to_vec(), symbols, &options)?);
        Ok(())
    })
}

/// The function `name` of the default version, to be cast to its type: as `dlsym` has it, the library's own, else that of the first
/// library that has one of those that it needs, breadth first. Good as long as the library.
///
/// Errors: `NOT_FOUND`, `NOT_FUNCTION`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_function(
    library: Option<&Library>,
    name: Text,
    function: Option<&mut MaybeUninit<Function>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let function = place(function, "function")?;
        let address = handle(library, "library")?.inner.function(name.get("name")?);
        *function = function_at(address.map_err(|error| host(&error, &[]))?);
        Ok(())
    })
}

/// The function `name` of a version, as `dlvsym` has it: `HOIST_0.1`. Good as long as the library.
///
/// Errors: `NOT_FOUND`, `NOT_FUNCTION`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_function_version(
    library: Option<&Library>,
    name: Text,
    version: Text,
    function: Option<&mut MaybeUninit<Function>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let function = place(function, "function")?;
        let library = &handle(library, "library")?.inner;
        let address = library.function_version(name.get("name")?, version.get("version")?);
        *function = function_at(address.map_err(|error| host(&error, &[]))?);
        Ok(())
    })
}

/// The address of the symbol `name`, whatever it is, good as long as the library. Thread-local variables have none.
///
/// Errors: `NOT_FOUND`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_address(
    library: Option<&Library>,
    name: Text,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let address = place(address, "address")?;
        let name = name.get("name")?;
        let found = handle(library, "library")?.inner.address(name);
        *address = pointer_to(found.ok_or_else(|| Error::not_found("symbol", name))?);
        Ok(())
    })
}

/// The function that `address` is in, by its name, and, unless `offset` is NULL, how many bytes behind its start. Of functions that are not
/// exported the name is known if the file has its symbol table (`.symtab`). The text is good as long as the handle.
///
/// Errors: `NOT_FOUND` if it is in none.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_symbol_at(
    library: Option<&Library>,
    address: *const c_void,
    name: Option<&mut MaybeUninit<*const c_char>>,
    offset: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (name, offset) = (empty(name), empty(offset));
        let name = needed(name, "name")?;
        let library = handle(library, "library")?;
        let address = address.addr() as u64;
        let missing = || {
            let words = format_args!("no function of the library is at {address:#x}");
            Error::new(Status::NotFound, words)
        };
        let (found, behind) = library.inner.symbol_at(address).ok_or_else(missing)?;
        let found = c_string(found.as_bytes());
        let mut names = library.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(&found) {
            names.insert(found.clone());
        }
        *name = names.get(&found).map_or(core::ptr::null(), |name| name.as_ptr());
        if let Some(offset) = offset {
            *offset = behind;
        }
        Ok(())
    })
}

/// Address and size of the memory that the library occupies. Each of the two places may be NULL.
///
/// Errors: `INVALID_ARGUMENT`.
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_extent(
    library: Option<&Library>,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    size: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let (address, size) = (empty(address), empty(size));
        let (start, length) = handle(library, "library")?.inner.extent();
        if let Some(address) = address {
            *address = pointer_to(start);
        }
        if let Some(size) = size {
            *size = length;
        }
        Ok(())
    })
}

/// Its name (`DT_SONAME`), empty if it has none or `library` is NULL. Never NULL; good as long as the handle.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_name(library: Option<&Library>) -> *const c_char {
    library.map_or(c"".as_ptr(), |library| library.name.as_ptr())
}

/// Calls the library's destructors and gives its memory back, unless modules or libraries use it: then when the last of them goes.
/// NULL is none.
///
/// Threads: nobody uses the handle any more, or runs code of the library, or has pointers to its data.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_free(library: Option<Box<Library>>) {
    infallible((), || drop(library));
}
