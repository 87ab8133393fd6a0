//! What the process was started with, as the C library hands it to constructors: `argc` and `argv`.
//!
//! It is kept where the system has put it: behind `argv` stand the environment and the auxiliary vector (psABI, "Process
//! Initialization"), which runtimes look for there, Go's among them.

mod block;

pub use block::StartBlock;

use core::ffi::{c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Arguments for constructors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) count: c_int,
    /// So many pointers and a null one; null if nobody has told.
    pub(crate) words: *const *const c_char,
}

impl Start {
    /// Calls functions as constructors and destructors are called: with `argc`, `argv` and the environment.
    ///
    /// # Safety
    /// They are mapped and executable, and sound to call with these arguments.
    pub(crate) unsafe fn call(self, functions: &[u64]) {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        type Function = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char);
        let none: [*const c_char; 1] = [ptr::null()];
        let Self { count, words } = self;
        let words = if words.is_null() { none.as_ptr() } else { words };
        for &address in functions {
            // most of them take a lock of the C library (`__cxa_atexit`, `__cxa_finalize`), which it does not make anew in a child
            let _held = exec_core::sync::hold();
            let code = ptr::with_exposed_provenance::<()>(address as usize);
            // SAFETY: the caller guarantees a function there; it may take fewer arguments than it is given.
            unsafe { core::mem::transmute::<*const (), Function>(code)(count, words, environ) };
        }
    }
}

static COUNT: AtomicI32 = AtomicI32::new(0);
static WORDS: AtomicPtr<*const c_char> = AtomicPtr::new(ptr::null_mut());

/// glibc calls the constructors of a program and of its libraries with them, those of libraries that are opened later, too. It is
/// before the constructors that have no priority, which may load objects.
#[cfg(target_env = "gnu")]
#[used]
// SAFETY: an array of pointers to functions of this type.
#[unsafe(link_section = ".init_array.00099")]
static REMEMBER: extern "C" fn(c_int, *mut *const c_char, *const *const c_char) = {
    extern "C" fn remember(
        count: c_int,
        words: *mut *const c_char,
        _environment: *const *const c_char,
    ) {
        COUNT.store(count, Ordering::Relaxed);
        WORDS.store(words, Ordering::Release);
    }
    remember
};

/// Those of the process.
pub(crate) fn of_process() -> Start {
    let words = WORDS.load(Ordering::Acquire).cast_const();
    Start { count: COUNT.load(Ordering::Relaxed), words }
}
