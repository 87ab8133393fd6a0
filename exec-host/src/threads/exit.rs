//! Destructors that a thread runs when it ends, of variables of loaded code: the code stays until they have run.

use crate::module::Parts;
use core::ffi::{c_int, c_void};
use elf_core::Name;
use elf_layout::External;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

unsafe extern "C" {
    /// The C library's: has this thread call `destructor(object)` when it ends, and keeps the library of `handle` till then.
    fn __cxa_thread_atexit_impl(
        destructor: Destructor,
        object: *mut c_void,
        handle: *mut c_void,
    ) -> c_int;
    static __dso_handle: u8;
}

/// The loads that have asked for [`register`], or for what the process is to do when it ends, by their `__dso_handle`.
static LOADS: RwLock<BTreeMap<u64, Weak<Parts>>> = RwLock::new(BTreeMap::new());

/// What stands for the functions of this name by which code registers destructors: the C library's, and the one of the Itanium C++
/// ABI.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let is_one = name == "__cxa_thread_atexit_impl" || name == "__cxa_thread_atexit";
    is_one.then(|| External::function(register as *const () as u64))
}

/// The handle of the load, among those that may register something, whose code is at `address`.
pub(crate) fn handle_of(address: u64) -> Option<u64> {
    let loads = LOADS.read().unwrap_or_else(PoisonError::into_inner);
    let loads: Vec<Arc<Parts>> = loads.values().filter_map(Weak::upgrade).collect();
    let owner = loads.iter().find(|parts| parts.code.iter().any(|range| range.contains(&address)));
    owner.map(|parts| parts.calls.handle())
}

/// Makes a load known that may register something.
pub(crate) fn enter(parts: &Arc<Parts>) {
    let mut loads = LOADS.write().unwrap_or_else(PoisonError::into_inner);
    loads.insert(parts.calls.handle(), Arc::downgrade(parts));
}

/// Forgets a load that is about to go.
pub(crate) fn leave(handle: u64) {
    LOADS.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
}

/// A destructor to run, and what it needs.
struct Registered {
    destructor: Destructor,
    object: *mut c_void,
    parts: Arc<Parts>,
}

/// Has this thread call `destructor(object)` when it ends, and keeps the load till then.
///
/// # Safety
/// As for the C library's function.
unsafe extern "C" fn register(
    destructor: Destructor,
    object: *mut c_void,
    handle: *mut c_void,
) -> c_int {
    let loads = LOADS.read().unwrap_or_else(PoisonError::into_inner);
    let parts = loads.get(&(handle.addr() as u64)).and_then(Weak::upgrade);
    drop(loads);
    let Some(parts) = parts else {
        // SAFETY: passes on what we were given.
        return unsafe { __cxa_thread_atexit_impl(destructor, object, handle) };
    };
    let registered = Box::into_raw(Box::new(Registered { destructor, object, parts }));
    let ours = (&raw const __dso_handle).cast_mut().cast();
    // SAFETY: `run` takes what it is given here, once.
    unsafe { __cxa_thread_atexit_impl(run, registered.cast(), ours) }
}

/// Runs a registered destructor.
unsafe extern "C-unwind" fn run(registered: *mut c_void) {
    // SAFETY: `register` has given it, and nobody else takes it.
    let registered = unsafe { Box::from_raw(registered.cast::<Registered>()) };
    let Registered { destructor, object, parts } = *registered;
    // SAFETY: the code that registered it vouches for it, and is still there.
    unsafe { destructor(object) };
    drop(parts);
}
