//! Destructors that a thread runs when it ends, of variables of loaded code: the code stays until they have run.

use crate::c_library::{Destructor, OWN_ATEXIT, at_thread_exit};
use crate::external::External;
use core::any::Any;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use elf_core::Name;
use exec_core::sync::RwLock;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The loads that have asked for [`register`], or for what the process is to do when it ends, by the address of their memory.
static LOADS: RwLock<BTreeMap<u64, Load>> = RwLock::new(BTreeMap::new());

/// A load in memory.
struct Load {
    /// Bytes of its memory.
    size: u64,
    /// Its `__dso_handle`.
    handle: u64,
    /// What keeps it there.
    keeper: Weak<Keeper>,
}

/// What keeps a load's code and variables, whatever it is.
type Keeper = dyn Any + Send + Sync;

/// What stands for the functions of this name by which code registers destructors: the C library's, the one of the Itanium C++
/// ABI, and `__cxa_atexit` where the C library's never does.
pub(crate) fn stands_for(name: Name<'_>) -> Option<External> {
    let is_one = matches!(name.0, b"__cxa_thread_atexit_impl" | b"__cxa_thread_atexit");
    if is_one {
        return Some(External::function(register as *const () as u64));
    }
    let at_exit = OWN_ATEXIT.filter(|_| name.0 == b"__cxa_atexit")?;
    Some(External::function(at_exit as *const () as u64))
}

/// Makes the load known that has these addresses, which may register something. Its `__dso_handle` is `handle`, and it stays as long
/// as `keeper` does.
pub(crate) fn enter(ranges: &[Range<u64>], handle: u64, keeper: &Arc<Keeper>) {
    let mut loads = LOADS.write();
    for range in ranges {
        let size = range.end.saturating_sub(range.start);
        loads.insert(range.start, Load { size, handle, keeper: Arc::downgrade(keeper) });
    }
}

/// Forgets the load that has these addresses, which are about to go.
pub(crate) fn leave(ranges: &[Range<u64>]) {
    let mut loads = LOADS.write();
    for range in ranges {
        loads.remove(&range.start);
    }
}

/// The handle and the keeper of the load that `address` is in. For the C library too, any address in an object is a handle of it:
/// Rust's standard library gives that of a pointer to `__dso_handle`.
fn load_of(address: u64) -> Option<(u64, Arc<Keeper>)> {
    let loads = LOADS.read();
    let (start, load) = loads.range(..=address).next_back()?;
    let is_inside = address.checked_sub(*start)? < load.size;
    let (handle, keeper) = (load.handle, load.keeper.upgrade()?);
    // before the keeper, whose end takes the lock if it is dropped here
    drop(loads);
    is_inside.then_some((handle, keeper))
}

/// What keeps the load that `address` is in, among those that may register something.
pub(crate) fn keeper_of(address: u64) -> Option<Arc<Keeper>> {
    load_of(address).map(|(_, keeper)| keeper)
}

/// The `__dso_handle` of the load that `address` is in, among those that may register something.
pub(crate) fn handle_of(address: u64) -> Option<u64> {
    load_of(address).map(|(handle, _)| handle)
}

/// A destructor to run, and what it needs.
struct Registered {
    destructor: Destructor,
    object: *mut c_void,
    keeper: Arc<Keeper>,
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
    let Some((_, keeper)) = load_of(handle.addr() as u64) else {
        // SAFETY: passes on what we were given.
        return unsafe { at_thread_exit(destructor, object, Some(handle)) };
    };
    let registered = Box::into_raw(Box::new(Registered { destructor, object, keeper }));
    // SAFETY: `run` takes what it is given here, once.
    let done = unsafe { at_thread_exit(run, registered.cast(), None) };
    if done != 0 {
        // SAFETY: nobody else will take it.
        drop(unsafe { Box::from_raw(registered) });
    }
    done
}

/// Runs a registered destructor.
unsafe extern "C-unwind" fn run(registered: *mut c_void) {
    // SAFETY: `register` has given it, and nobody else takes it.
    let registered = unsafe { Box::from_raw(registered.cast::<Registered>()) };
    let Registered { destructor, object, keeper } = *registered;
    // SAFETY: the code that registered it guarantees it, and is still there.
    unsafe { destructor(object) };
    drop(keeper);
}
