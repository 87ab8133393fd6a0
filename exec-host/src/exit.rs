//! What every program has of the C library in itself, since it registers functions for its own code: glibc has `atexit` and its like in
//! `libc_nonshared.a`, musl in an archive of all. No process has these symbols for others.
//!
//! A function belongs to the load that it is code of, and runs, at the latest, when that goes. Others run at the end of the process.

use crate::c_library;
use crate::external::External;
use crate::threads::exit::handle_of;
use core::ffi::{c_int, c_void};
use core::ptr;
use elf_core::Name;

type TypedFunction = unsafe extern "C" fn();

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    fn __cxa_at_quick_exit(
        function: unsafe extern "C" fn(*mut c_void),
        handle: *mut c_void,
    ) -> c_int;
    fn __register_atfork(
        before: Option<TypedFunction>,
        parent: Option<TypedFunction>,
        child: Option<TypedFunction>,
        handle: *mut c_void,
    ) -> c_int;
}

/// What stands for the function of this name.
pub(crate) fn find(name: Name<'_>) -> Option<External> {
    let function = match name.to_str()? {
        "atexit" => at_exit as *const (),
        #[cfg(target_env = "gnu")]
        "at_quick_exit" => at_quick_exit as *const (),
        #[cfg(target_env = "gnu")]
        "pthread_atfork" | "__pthread_atfork" => at_fork as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// The handle of the load that has a function, null if none has.
fn owner(function: TypedFunction) -> *mut c_void {
    let handle = handle_of((function as *const ()).addr() as u64).unwrap_or(0);
    ptr::with_exposed_provenance_mut(handle as usize)
}

/// The same function, called with an argument that it does not take.
const fn with_argument(function: TypedFunction) -> unsafe extern "C" fn(*mut c_void) {
    // SAFETY: the calling conventions of C on these machines allow arguments that nobody looks at.
    unsafe { core::mem::transmute::<TypedFunction, unsafe extern "C" fn(*mut c_void)>(function) }
}

/// `atexit` (C17 7.22.4.2).
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn at_exit(function: TypedFunction) -> c_int {
    // SAFETY: passes on what we were given.
    unsafe { c_library::at_exit(with_argument(function), ptr::null_mut(), owner(function)) }
}

/// `at_quick_exit` (C17 7.22.4.3).
///
/// # Safety
/// As for the C library's function.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn at_quick_exit(function: TypedFunction) -> c_int {
    // SAFETY: passes on what we were given.
    unsafe { __cxa_at_quick_exit(with_argument(function), owner(function)) }
}

/// `pthread_atfork` (POSIX.1-2017).
///
/// # Safety
/// As for the C library's function.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn at_fork(
    before: Option<TypedFunction>,
    parent: Option<TypedFunction>,
    child: Option<TypedFunction>,
) -> c_int {
    let handle = before.or(parent).or(child).map_or(ptr::null_mut(), owner);
    // SAFETY: passes on what we were given.
    unsafe { __register_atfork(before, parent, child, handle) }
}
