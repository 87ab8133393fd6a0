//! Programs in C that are told of loads.

use crate::address::pointer_to;
use crate::border::handle;
use crate::error::{Error, c_string};
use crate::faults::io;
use core::ffi::{c_char, c_void};
use core::fmt;
use exec_host::observer::{Loaded, LoadedFunction, LoadedLibrary, Observed, PerfMap};
use std::ffi::CString;
use std::io::{Error as IoError, Result as IoResult};

/// A function of what was loaded. Pointers are good during the call that shows it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ObservedFunction {
    /// Its name; of a stub, that of the function it leads to.
    pub name: *const c_char,
    /// Its address, good as long as the load.
    pub address: *mut c_void,
    /// Its size in bytes.
    pub size: u64,
    /// The object that has it, by its number; 0 of a library.
    pub object: usize,
    /// Whether it is a stub that the loader has made.
    pub is_stub: bool,
}

/// Tells of a load that is in place, and of which no code has run: the name of the library, empty of a module, and its functions by rising
/// address. What it writes to `*token`, which holds NULL, is what `unloaded` gets. `false` refuses the load, which fails with `OTHER`.
pub type LoadedCallback = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        name: *const c_char,
        functions: *const ObservedFunction,
        count: usize,
        token: *mut *mut c_void,
    ) -> bool,
>;

/// Tells that a load goes, or fails after it was told: its code has run for the last time, and is still mapped.
pub type UnloadedCallback = Option<unsafe extern "C" fn(context: *mut c_void, token: *mut c_void)>;

/// Who is told of loads. Both functions are called on the thread that loads, or frees what was loaded; they must not throw, and must not
/// jump out (`longjmp`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Observer {
    /// Passed to both; good as long as the loader and all that was loaded with it.
    pub context: *mut c_void,
    /// Must not be NULL.
    pub loaded: LoadedCallback,
    /// May be NULL.
    pub unloaded: UnloadedCallback,
}

// SAFETY: the context is passed on and not looked at; the header says which threads call.
unsafe impl Send for Observer {}
// SAFETY: as above.
unsafe impl Sync for Observer {}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Observer {
    /// What C gave.
    pub(crate) fn given(observer: Option<&Self>) -> Result<Self, Error> {
        let observer = handle(observer, "observer")?;
        handle(observer.loaded.as_ref(), "observer.loaded")?;
        Ok(*observer)
    }

    fn tell(&self, name: &[u8], functions: &[LoadedFunction<'_>]) -> IoResult<Option<Observed>> {
        let Some(loaded) = self.loaded else { return Ok(None) };
        let names: Vec<CString> =
            functions.iter().map(|function| c_string(function.name.as_bytes())).collect();
        let rows: Vec<ObservedFunction> = functions.iter().zip(&names).map(row).collect();
        let name = c_string(name);
        let mut token = core::ptr::null_mut();
        // SAFETY: who gave the function says that it can be called so: with its context, a text, so many rows and a place.
        let is_taken = unsafe {
            loaded(self.context, name.as_ptr(), rows.as_ptr(), rows.len(), &raw mut token)
        };
        if !is_taken {
            return Err(IoError::other("the observer of the program refuses the load"));
        }
        Ok(Some(Box::new(Told { observer: *self, token })))
    }
}

fn row((function, name): (&LoadedFunction<'_>, &CString)) -> ObservedFunction {
    ObservedFunction {
        name: name.as_ptr(),
        address: pointer_to(function.address),
        size: function.size,
        object: function.object,
        is_stub: function.is_stub,
    }
}

impl exec_host::observer::Observer for Observer {
    fn loaded(&self, loaded: &Loaded<'_>) -> IoResult<Option<Observed>> {
        self.tell(b"", &loaded.functions())
    }

    fn library_loaded(&self, library: &LoadedLibrary<'_>) -> IoResult<Option<Observed>> {
        self.tell(library.name().as_bytes(), &library.functions())
    }
}

/// A load that was told; dropped when it goes.
struct Told {
    observer: Observer,
    token: *mut c_void,
}

// SAFETY: the token is passed on and not looked at.
unsafe impl Send for Told {}
// SAFETY: as above.
unsafe impl Sync for Told {}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(unloaded) = self.observer.unloaded {
            // SAFETY: who gave the function says that it can be called so: with its context and what it has written.
            unsafe { unloaded(self.observer.context, self.token) };
        }
    }
}

/// The map of this process that perf reads.
pub(crate) fn perf_map() -> Result<PerfMap, Error> {
    let failed = |cause| io(&cause, format!("/tmp/perf-{}.map", std::process::id()).as_ref());
    PerfMap::create().map_err(failed)
}
