//! What every program has of the C library in itself, since it registers functions for its own code: glibc has `atexit` and its like in
//! `libc_nonshared.a`, musl in an archive of all. No process has these symbols for others.
//!
//! A function belongs to the load that it is code of, and runs, at the latest, when that goes. Others run at the end of the process.

use crate::external::External;
use crate::threads::exit::handle_of;
use core::ffi::{c_int, c_void};
use core::ptr;
use elf_core::Name;

type Function = unsafe extern "C" fn();

unsafe extern "C" {
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
        handle: *mut c_void,
    ) -> c_int;
    #[cfg(target_env = "gnu")]
    fn __cxa_at_quick_exit(
        function: unsafe extern "C" fn(*mut c_void),
        handle: *mut c_void,
    ) -> c_int;
    #[cfg(target_env = "gnu")]
    fn __register_atfork(
        before: Option<Function>,
        parent: Option<Function>,
        child: Option<Function>,
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
fn owner(function: Function) -> *mut c_void {
    let handle = handle_of((function as *const ()).addr() as u64).unwrap_or(0);
    ptr::with_exposed_provenance_mut(handle as usize)
}

/// The same function, called with an argument that it does not take.
const fn with_argument(function: Function) -> unsafe extern "C" fn(*mut c_void) {
    // SAFETY: the calling conventions of C on these machines allow arguments that nobody looks at.
    unsafe { core::mem::transmute::<Function, unsafe extern "C" fn(*mut c_void)>(function) }
}

/// `atexit` (C17 7.22.4.2).
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn at_exit(function: Function) -> c_int {
    // SAFETY: passes on what we were given.
    unsafe { __cxa_atexit(with_argument(function), ptr::null_mut(), owner(function)) }
}

/// `at_quick_exit` (C17 7.22.4.3).
///
/// # Safety
/// As for the C library's function.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn at_quick_exit(function: Function) -> c_int {
    // SAFETY: passes on what we were given.
    unsafe { __cxa_at_quick_exit(with_argument(function), owner(function)) }
}

/// `pthread_atfork` (POSIX.1-2017).
///
/// # Safety
/// As for the C library's function.
#[cfg(target_env = "gnu")]
unsafe extern "C" fn at_fork(
    before: Option<Function>,
    parent: Option<Function>,
    child: Option<Function>,
) -> c_int {
    let handle = before.or(parent).or(child).map_or(ptr::null_mut(), owner);
    // SAFETY: passes on what we were given.
    unsafe { __register_atfork(before, parent, child, handle) }
}
