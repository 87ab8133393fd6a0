//! Types of functions that are called at an end.

use core::ffi::{c_int, c_void};

/// Ends a thread-local variable.
pub(crate) type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

/// Called when a library or the process ends.
pub(crate) type Function = unsafe extern "C" fn(*mut c_void);

/// `__cxa_atexit` (Itanium C++ ABI, 3.3.6.3).
pub(crate) type AtExit = unsafe extern "C" fn(Function, *mut c_void, *mut c_void) -> c_int;

/// Registered by `atexit` and its like.
pub(crate) type TypedFunction = unsafe extern "C" fn();
