//! How shared libraries are loaded: `hoist_library_open_file` and `hoist_library_open_memory` with options.

use crate::border::{
    Bytes, Text, alone, changed, elements, fallible, give, handle, infallible, place,
};
use crate::error::{Error, Status};
use crate::faults::io;
use crate::library::Library;
use crate::library_options::{LibraryOptions, Needed};
use crate::observer::{Observer, perf_map};
use crate::source::SymbolSources;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use exec_host::library::NeededLibrary;
use exec_host::observer::{GdbInterface, JitDump};
use std::sync::{Arc, Mutex, PoisonError};

/// How shared libraries are loaded. Free it with `hoist_library_loader_free`.
#[derive(Default)]
pub struct LibraryLoader(Mutex<LibraryOptions>);

/// A library that another one needs: either `library`, which was loaded before and stays as long as somebody uses it, or, where that is
/// NULL, `size` bytes at `data`, which are copied.
#[repr(C)]
pub struct NeededLibraryPlace {
    /// A library, or NULL.
    pub library: *const Library,
    /// The bytes of a file.
    pub data: *const c_void,
    /// How many.
    pub size: usize,
}

/// Asked for a library that is needed, by the name that says so (`DT_NEEDED`): writes it to `needed`, which holds NULL and 0, and returns
/// `true`; or returns `false`, and the dynamic loader is asked. It is called during loads, on their thread, once for each name. It must not
/// throw, and must not jump out (`longjmp`).
pub type NeededCallback = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        name: *const c_char,
        needed: *mut NeededLibraryPlace,
    ) -> bool,
>;

/// A function of C that is asked for libraries, and what it is given.
#[derive(Clone, Copy)]
pub(crate) struct NeededSource {
    callback: NeededCallback,
    context: *mut c_void,
}

// SAFETY: the context is passed on and not looked at; the header says which threads call.
unsafe impl Send for NeededSource {}
// SAFETY: as above.
unsafe impl Sync for NeededSource {}

impl NeededSource {
    fn ask(self, name: &CStr) -> Option<NeededLibrary> {
        let callback = self.callback?;
        let (library, data) = (core::ptr::null(), core::ptr::null());
        let mut place = NeededLibraryPlace { library, data, size: 0 };
        // SAFETY: who gave the function says that it can be called so: with its context, a text and a place for the answer.
        let is_found = unsafe { callback(self.context, name.as_ptr(), &raw mut place) };
        if !is_found {
            return None;
        }
        // SAFETY: the function has written NULL or a handle, and so many bytes.
        unsafe {
            if let Some(library) = place.library.as_ref() {
                return Some(library.inner().clone().into());
            }
            // no bytes, which is what NULL gives, are no library, and the load says so
            let bytes = elements::<u8>(place.data.cast(), place.size, "needed.data");
            Some(NeededLibrary::bytes(bytes.unwrap_or_default().to_vec()))
        }
    }
}

/// Changes a loader.
fn set(
    loader: Option<NonNull<LibraryLoader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    change: impl FnOnce(&mut LibraryOptions) -> Result<(), Error>,
) -> Status {
    fallible(error, || {
        let mut options = alone(&handle(changed(loader), "loader")?.0, "loader")?;
        let mut new = options.clone();
        change(&mut new)?;
        *options = new;
        Ok(())
    })
}

/// A loader with default options. Never NULL.
///
/// Threads: any number at once.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_new() -> Box<LibraryLoader> {
    Box::default()
}

/// Whether functions that nobody has are left to their first call, as `dlopen` does with `RTLD_LAZY`: a library loads that refers to what its
/// program has not, or has later, opened for all (`RTLD_GLOBAL`). Who calls one that there is not even then ends the process, with words
/// on standard error and status 127, as with the dynamic loader. Off at first.
///
/// Errors: `BUSY`.
/// Threads: one call at a time for each loader; another one is answered `BUSY`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_set_lazy(
    loader: Option<NonNull<LibraryLoader>>,
    is_wanted: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        options.is_lazy = is_wanted;
        Ok(())
    })
}

/// How many bytes of memory a library may take, and each that is loaded because it is needed. 0, as at first, stands for 16 GiB and 64 times the
/// size of its file.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_set_limit(
    loader: Option<NonNull<LibraryLoader>>,
    bytes: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        options.limit = bytes;
        Ok(())
    })
}

/// The folder that `$ORIGIN` stands for where a library says where to look for others (`DT_RUNPATH`). Without this it is the folder of the
/// file, and of bytes in memory none.
///
/// Errors: `FILE` for an empty path, and where there is no current folder that a relative one is in; `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_set_origin(
    loader: Option<NonNull<LibraryLoader>>,
    folder: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        let folder = folder.path("folder")?;
        options.folder = Some(std::path::absolute(folder).map_err(|cause| io(&cause, folder))?);
        Ok(())
    })
}

/// Has a function asked for libraries that are needed, before the dynamic loader: a program has them inside of itself, in an archive. See
/// `hoist_needed_callback`; one that was set before is asked no more, and NULL sets none. Libraries in the list of symbols that a load is given
/// come first. `context` may be NULL, and must be good as long as the loader is used.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_set_needed(
    loader: Option<NonNull<LibraryLoader>>,
    callback: NeededCallback,
    context: *mut c_void,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        let source = NeededSource { callback, context };
        options.needed = callback.map(|_| Arc::new(move |name: &CStr| source.ask(name)) as Needed);
        Ok(())
    })
}

/// Tells gdb of all libraries: breakpoints, lines, unwinding.
///
/// Errors: `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_tell_gdb(
    loader: Option<NonNull<LibraryLoader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        options.observers.push(Arc::new(GdbInterface));
        Ok(())
    })
}

/// Tells perf of all libraries, by its map of this process (`/tmp/perf-PID.map`).
///
/// Errors: `FILE` if the map cannot be written; `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_tell_perf(
    loader: Option<NonNull<LibraryLoader>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        options.observers.push(Arc::new(perf_map()?));
        Ok(())
    })
}

/// Writes all functions of libraries, with their code and lines, to `jit-PID.dump` in `folder`: as `hoist_loader_tell_jitdump`.
///
/// Errors: `FILE` if that cannot be written, or not be mapped executable; `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_tell_jitdump(
    loader: Option<NonNull<LibraryLoader>>,
    folder: Text,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        let folder = folder.path("folder")?;
        let dump = JitDump::create(folder).map_err(|cause| io(&cause, folder))?;
        options.observers.push(Arc::new(dump));
        Ok(())
    })
}

/// Tells the program of all libraries, with those that are loaded because they are needed. See `hoist_observer`, which is copied.
///
/// Errors: `INVALID_ARGUMENT` if `observer->loaded` is NULL; `BUSY`.
/// Threads: as for `hoist_library_loader_set_lazy`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_tell(
    loader: Option<NonNull<LibraryLoader>>,
    observer: Option<&Observer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    set(loader, error, |options| {
        options.observers.push(Arc::new(Observer::given(observer)?));
        Ok(())
    })
}

/// The options of a loader, which is changed for moments only.
fn options(loader: Option<&LibraryLoader>) -> Result<LibraryOptions, Error> {
    let options = &handle(loader, "loader")?.0;
    Ok(options.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// `hoist_library_open_file` with options.
///
/// Errors: as `hoist_library_open_file`; `OTHER` if an observer refuses.
/// Threads: any number at once, with different symbols; a loader may be shared if its callbacks may.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_open_file(
    loader: Option<&LibraryLoader>,
    path: Text,
    symbols: Option<&SymbolSources>,
    library: Option<&mut MaybeUninit<*mut Library>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let library = place(library, "library")?;
        let opened = Library::open_file(path.path("path")?, symbols, &options(loader)?);
        give(library, opened?);
        Ok(())
    })
}

/// `hoist_library_open_memory` with options.
///
/// Errors: as `hoist_library_open_file`; `OTHER` if an observer refuses.
/// Threads: as for `hoist_library_loader_open_file`.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_open_memory(
    loader: Option<&LibraryLoader>,
    data: Bytes,
    size: usize,
    symbols: Option<&SymbolSources>,
    library: Option<&mut MaybeUninit<*mut Library>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    fallible(error, || {
        let library = place(library, "library")?;
        // SAFETY: the length is that of `data`.
        let bytes = unsafe { data.get(size, "data")? };
        give(library, Library::open(bytes.to_vec(), symbols, &options(loader)?)?);
        Ok(())
    })
}

/// Frees a loader; NULL is none. What it has loaded stays.
///
/// Threads: nobody uses the loader any more.
#[unsafe(no_mangle)]
pub extern "C" fn hoist_library_loader_free(loader: Option<Box<LibraryLoader>>) {
    infallible((), || drop(loader));
}
