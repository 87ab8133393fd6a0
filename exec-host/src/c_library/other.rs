//! musl, whose dynamic loader knows no versions of symbols, and does not tell where their entries are. No library goes there, and what is
//! registered for the end of one is called at the end of the process: for loads, which go, there is a list of our own.

use crate::c_library::forks;
pub(crate) use crate::c_library::forks::{at_fork, at_quick_exit};
use crate::c_library::types::{AtExit, Destructor, Function};
use crate::word::Symbol;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr;
use exec_core::sync::{Mutex, OnceLock};

/// The address of a symbol, null if there is none: it stands for each version.
///
/// # Safety
/// The handle is open, or one of those that stand for several libraries.
pub(crate) unsafe fn dlvsym(handle: *mut c_void, name: &CStr, _version: &CStr) -> *mut c_void {
    // SAFETY: the text ends in NUL; the caller guarantees the handle.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Not told.
pub(crate) fn symbol_at(_address: *const c_void) -> Option<(libc::Dl_info, *const Symbol)> {
    None
}

/// Not told.
pub(crate) fn link_map_at(_address: *const c_void) -> Option<*const c_void> {
    None
}

/// The `struct link_map` of a library, null if there is none.
///
/// # Safety
/// The handle is open.
pub(crate) unsafe fn dlinfo_link_map(handle: *mut c_void) -> *const c_void {
    /// As in glibc (<dlfcn.h>).
    const RTLD_DI_LINKMAP: c_int = 2;
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: c_int, result: *mut c_void) -> c_int;
    }
    let mut map: *const c_void = ptr::null();
    // SAFETY: the caller guarantees the handle; the request gives a pointer.
    let done = unsafe { dlinfo(handle, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    if done == 0 { map } else { ptr::null() }
}

/// What a thread does when it ends, in the order in which it was asked to. It stays while that is done, which may ask for more.
type List = RefCell<ManuallyDrop<Vec<(Destructor, *mut c_void)>>>;

std::thread_local! {
    static LIST: List = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    static IS_ENDING: Cell<bool> = const { Cell::new(false) };
    static END: End = const { End };
}

/// Dropped when its thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        IS_ENDING.set(true);
        while let Some((destructor, object)) = LIST.with(|list| list.borrow_mut().pop()) {
            // SAFETY: who asked for it guarantees it.
            unsafe { destructor(object) };
        }
        IS_ENDING.set(false);
        LIST.with(|list| drop(core::mem::take(&mut **list.borrow_mut())));
    }
}

/// Has this thread call `destructor(object)` when it ends, the last one first. Gives 0 if it will. No library goes in musl.
///
/// # Safety
/// The destructor may be called with the object then.
pub(crate) unsafe fn at_thread_exit(
    destructor: Destructor,
    object: *mut c_void,
    _handle: Option<*mut c_void>,
) -> c_int {
    // a thread that has done all has nothing left that would call it
    if END.try_with(|_| ()).is_err() && !IS_ENDING.get() {
        return -1;
    }
    LIST.with(|list| list.borrow_mut().push((destructor, object)));
    0
}

/// What is to be called at the end, in the order in which it was registered.
struct AtEnd {
    function: Function,
    argument: *mut c_void,
    handle: *mut c_void,
}

// SAFETY: whoever registers something guarantees its being called by whichever thread ends the library or the process.
unsafe impl Send for AtEnd {}

static AT_END: Mutex<Vec<AtEnd>> = Mutex::new(Vec::new());

/// Calls, the last one first, what `is_meant`, and forgets it. The list is free while something is called, which may register more.
///
/// # Safety
/// What is meant may be called now.
unsafe fn call(is_meant: impl Fn(&AtEnd) -> bool) {
    let next = || {
        let mut list = AT_END.lock();
        let last = list.iter().rposition(&is_meant)?;
        Some(list.remove(last))
    };
    while let Some(AtEnd { function, argument, .. }) = next() {
        // SAFETY: the caller guarantees it.
        unsafe { function(argument) };
    }
}

/// Our function that stands for `__cxa_atexit`.
pub(crate) const OWN_ATEXIT: Option<AtExit> = Some(register);

unsafe extern "C" fn register(
    function: Function,
    argument: *mut c_void,
    handle: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { at_exit(function, argument, handle) }
}

/// Has `function(argument)` called when what `handle` stands for ends, the last one first. Gives 0 if it will.
///
/// # Safety
/// It may be called then.
pub(crate) unsafe fn at_exit(
    function: Function,
    argument: *mut c_void,
    handle: *mut c_void,
) -> c_int {
    static ALL: OnceLock<bool> = OnceLock::new();
    extern "C" fn all() {
        // SAFETY: the process ends.
        unsafe { call(|_| true) };
    }
    // SAFETY: the function may be called at any time.
    if !ALL.get_or_init(|| unsafe { libc::atexit(all) } == 0) {
        return -1;
    }
    let registered = AtEnd { function, argument, handle };
    AT_END.lock().push(registered);
    0
}

/// Calls what is to be called when what `handle` stands for ends, the last one first, and forgets it.
///
/// # Safety
/// It ends now.
pub(crate) unsafe fn finalize(handle: *mut c_void) {
    // SAFETY: the caller guarantees it.
    unsafe { call(|registered| registered.handle == handle) };
    forks::forget(handle);
}
