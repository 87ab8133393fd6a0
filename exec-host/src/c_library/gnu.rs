//! glibc.

use crate::c_library::types::{AtExit, Destructor, Function, TypedFunction};
use crate::word::Symbol;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use exec_core::sync::{OnceLock, hold};

/// The address of a symbol of this version, null if there is none.
///
/// # Safety
/// The handle is open, or one of those that stand for several libraries.
pub(crate) unsafe fn dlvsym(handle: *mut c_void, name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: both texts end in NUL; the caller guarantees the handle.
    unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) }
}

/// What the dynamic loader knows of the symbol that an address is in, and the symbol's entry, which lives as long as its library.
pub(crate) fn symbol_at(address: *const c_void) -> Option<(libc::Dl_info, *const Symbol)> {
    const RTLD_DL_SYMENT: c_int = 1;
    let (info, symbol) = ask(address, RTLD_DL_SYMENT)?;
    Some((info, symbol.cast()))
}

/// The `struct link_map` of the library that an address is in, which lives as long as that.
pub(crate) fn link_map_at(address: *const c_void) -> Option<*const c_void> {
    const RTLD_DL_LINKMAP: c_int = 2;
    Some(ask(address, RTLD_DL_LINKMAP)?.1)
}

/// `dladdr1`; `None` if it has not got what is asked for.
fn ask(address: *const c_void, request: c_int) -> Option<(libc::Dl_info, *const c_void)> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut extra: *mut c_void = ptr::null_mut();
    // SAFETY: both results are written to variables of ours; the address may be any.
    let found = unsafe { libc::dladdr1(address, info.as_mut_ptr(), &raw mut extra, request) };
    // SAFETY: zeroed, it is valid: pointers that are null.
    let info = unsafe { info.assume_init() };
    (found != 0 && !extra.is_null()).then_some((info, extra.cast_const()))
}

/// The `struct link_map` of a library, null if there is none.
///
/// # Safety
/// The handle is open.
pub(crate) unsafe fn dlinfo_link_map(handle: *mut c_void) -> *const c_void {
    let mut map: *const c_void = ptr::null();
    // SAFETY: the caller guarantees the handle; the request gives a pointer.
    let done = unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    if done == 0 { map } else { ptr::null() }
}

/// Has this thread call `destructor(object)` when it ends, the last one first, and keeps the library of the handle till then, this one if
/// none is given. Gives 0 if it will: glibc before 2.18 has no function for that.
///
/// # Safety
/// The destructor may be called with the object then.
pub(crate) unsafe fn at_thread_exit(
    destructor: Destructor,
    object: *mut c_void,
    handle: Option<*mut c_void>,
) -> c_int {
    type AtThreadExit = unsafe extern "C" fn(Destructor, *mut c_void, *mut c_void) -> c_int;
    unsafe extern "C" {
        static __dso_handle: u8;
    }
    static FUNCTION: OnceLock<Option<AtThreadExit>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        let name = c"__cxa_thread_atexit_impl".as_ptr();
        // SAFETY: asks for a function of the C library by its name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) };
        // SAFETY: this is its type.
        (!found.is_null())
            .then(|| unsafe { core::mem::transmute::<*mut c_void, AtThreadExit>(found) })
    });
    let Some(function) = function else { return -1 };
    let ours = (&raw const __dso_handle).cast_mut().cast();
    // SAFETY: the caller guarantees it.
    unsafe { function(destructor, object, handle.unwrap_or(ours)) }
}

/// No function of ours stands for `__cxa_atexit`.
pub(crate) const OWN_ATEXIT: Option<AtExit> = None;

/// Has `function(argument)` called when what `handle` stands for ends, the last one first. Gives 0 if it will.
///
/// # Safety
/// It may be called then.
pub(crate) unsafe fn at_exit(
    function: Function,
    argument: *mut c_void,
    handle: *mut c_void,
) -> c_int {
    unsafe extern "C" {
        fn __cxa_atexit(function: Function, argument: *mut c_void, handle: *mut c_void) -> c_int;
    }
    // SAFETY: the caller guarantees it.
    unsafe { __cxa_atexit(function, argument, handle) }
}

/// Has `function` called at `quick_exit` as long as what `handle` stands for is there. Gives 0 if it will.
///
/// # Safety
/// It may be called then.
pub(crate) unsafe fn at_quick_exit(function: Function, handle: *mut c_void) -> c_int {
    unsafe extern "C" {
        fn __cxa_at_quick_exit(function: Function, handle: *mut c_void) -> c_int;
    }
    // SAFETY: the caller guarantees it.
    unsafe { __cxa_at_quick_exit(function, handle) }
}

/// Has these called before a fork, and after it in the parent and in the child, as long as what `handle` stands for is there. Gives 0 if
/// they will.
///
/// # Safety
/// They may be called then.
pub(crate) unsafe fn at_fork(
    [before, parent, child]: [Option<TypedFunction>; 3],
    handle: *mut c_void,
) -> c_int {
    unsafe extern "C" {
        fn __register_atfork(
            before: Option<TypedFunction>,
            parent: Option<TypedFunction>,
            child: Option<TypedFunction>,
            handle: *mut c_void,
        ) -> c_int;
    }
    // SAFETY: the caller guarantees them.
    unsafe { __register_atfork(before, parent, child, handle) }
}

/// Calls what is to be called when what `handle` stands for ends, the last one first, and forgets it.
///
/// # Safety
/// It ends now.
pub(crate) unsafe fn finalize(handle: *mut c_void) {
    // the C library's lock for this stays in a child as it was. What is called may fork, which then waits in vain
    let _held = hold();
    unsafe extern "C" {
        fn __cxa_finalize(handle: *mut c_void);
    }
    // SAFETY: the caller guarantees it.
    unsafe { __cxa_finalize(handle) }
}
