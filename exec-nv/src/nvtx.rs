//! Ranges that profilers show (NVTX).

mod injection;
mod profiler;

use core::ffi::CStr;
use core::marker::PhantomData;
use std::borrow::Cow;
use std::ffi::CString;
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use profiler::{EventAttributes, Pop, Profiler, Push};

/// The library that NVIDIA's tools bring for programs that are not compiled against NVTX 3.
const LIBRARY: &str = "libnvToolsExt.so.1";

/// Who is told, if there is anybody: asked for once. A profiler says that it is there by `NVTX_INJECTION64_PATH`, which names its library;
/// older ones by `libnvToolsExt.so.1`.
fn profiler() -> Option<&'static Profiler> {
    static PROFILER: OnceLock<Option<Profiler>> = OnceLock::new();
    let find = || {
        if let Some(path) = std::env::var_os("NVTX_INJECTION64_PATH") {
            // SAFETY: who sets the variable says that the library there is a tool for NVTX.
            return unsafe { injection::open(Path::new(&path)) };
        }
        // SAFETY: a library of this name is NVIDIA's.
        let library = unsafe { Library::new(LIBRARY) }.ok()?;
        // it is told as long as the process lives
        let library = Box::leak(Box::new(library));
        // SAFETY: these are the types that NVTX documents.
        unsafe {
            Some(Profiler {
                push: Push::Plain(*library.get(b"nvtxRangePushA\0").ok()?),
                pop: Pop::Plain(*library.get(b"nvtxRangePop\0").ok()?),
                mark: library.get(b"nvtxMarkA\0").ok().map(|found| *found),
            })
        }
    };
    PROFILER.get_or_init(find).as_ref()
}

/// A text that ends at its first NUL.
fn text(text: &str) -> Cow<'static, CStr> {
    let until = text.split('\0').next().unwrap_or_default();
    CString::new(until).map_or(Cow::Borrowed(c""), Cow::Owned)
}

/// A range of time that a profiler shows under its name, on this thread, until it is dropped. Without a profiler it costs next to nothing.
///
/// ```
/// let outer = exec_nv::ProfilerRange::new("one step");
/// {
///     let _inner = exec_nv::ProfilerRange::new("copy there");
/// }
/// exec_nv::ProfilerRange::mark("half of it is done");
/// drop(outer);
/// ```
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ProfilerRange {
    /// Ranges are a thread's own.
    _here: PhantomData<*const ()>,
}

impl ProfilerRange {
    /// Begins a range, inside of those that this thread has begun.
    pub fn new(name: &str) -> Self {
        if let Some(profiler) = profiler() {
            let name = text(name);
            // SAFETY: the text ends in NUL; a tool copies it.
            unsafe {
                match profiler.push {
                    Push::Plain(push) => push(name.as_ptr()),
                    Push::Domain(push) => {
                        let attributes = EventAttributes::of(&name);
                        push(core::ptr::null(), &raw const attributes)
                    }
                }
            };
        }
        Self { _here: PhantomData }
    }

    /// Marks a moment.
    pub fn mark(name: &str) {
        if let Some(mark) = profiler().and_then(|profiler| profiler.mark) {
            // SAFETY: the text ends in NUL; a tool copies it.
            unsafe { mark(text(name).as_ptr()) };
        }
    }

    /// Whether somebody is told of ranges.
    #[must_use]
    pub fn is_seen() -> bool {
        profiler().is_some()
    }
}

impl Drop for ProfilerRange {
    fn drop(&mut self) {
        if let Some(profiler) = profiler() {
            // SAFETY: this thread has begun a range.
            unsafe {
                match profiler.pop {
                    Pop::Plain(pop) => pop(),
                    Pop::Domain(pop) => pop(core::ptr::null()),
                }
            };
        }
    }
}
