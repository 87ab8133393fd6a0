//! What every program has of the C library in itself, since it registers functions for its own code: glibc has `atexit` and its like in
//! `libc_nonshared.a`, musl in an archive of all. A process of glibc has these symbols for nobody; musl's shared library has them for all.
//!
//! A function belongs to the load that it is code of, and runs, at the latest, when that goes. Others run at the end of the process.

use crate::c_library::{self, TypedFunction};
use crate::external::External;
use crate::threads::exit::handle_of;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use elf_core::Name;

/// What stands for the function of this name.
pub(crate) fn find(name: Name<'_>) -> Option<External> {
    let function = match name.to_str()? {
        "atexit" => at_exit as *const (),
        "at_quick_exit" => at_quick_exit as *const (),
        "pthread_atfork" | "__pthread_atfork" => at_fork as *const (),
        _ => return None,
    };
    Some(External::function(function.expose_provenance() as u64))
}

/// Whether this is the C library's function of one of these names, as musl's shared library has it, which knows nothing of loads.
pub(crate) fn is_of_process(name: Name<'_>, address: u64) -> bool {
    let own = |text: &CStr| {
        // SAFETY: asks for a function of the C library by its name.
        let found = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, text.as_ptr()) };
        name.as_bytes() == text.to_bytes() && found().addr() as u64 == address
    };
    cfg!(not(target_env = "gnu"))
        && [c"atexit", c"at_quick_exit", c"pthread_atfork"].into_iter().any(own)
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
unsafe extern "C" fn at_quick_exit(function: TypedFunction) -> c_int {
    // SAFETY: passes on what we were given.
    unsafe { c_library::at_quick_exit(with_argument(function), owner(function)) }
}

/// `pthread_atfork` (POSIX.1-2017).
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn at_fork(
    before: Option<TypedFunction>,
    parent: Option<TypedFunction>,
    child: Option<TypedFunction>,
) -> c_int {
    let handle = before.or(parent).or(child).map_or(ptr::null_mut(), owner);
    // SAFETY: passes on what we were given.
    unsafe { c_library::at_fork([before, parent, child], handle) }
}
