//! What loads have called around forks and at `quick_exit` where the C library never forgets it: it is told of us alone, once.

use crate::c_library::types::{Function, TypedFunction};
use core::cell::RefCell;
use core::ffi::{c_int, c_void};
use exec_core::sync::{Mutex, MutexGuard, OnceLock};

/// What is called before a fork, after it in the parent, and in the child.
type Around = [Option<TypedFunction>; 3];

/// In the order in which it was registered, each with what it ends with.
struct Lists {
    forks: Vec<(Around, *mut c_void)>,
    quick_exits: Vec<(Function, *mut c_void)>,
}

// SAFETY: whoever registers something guarantees its being called by any thread.
unsafe impl Send for Lists {}

static LISTS: Mutex<Lists> = Mutex::new(Lists { forks: Vec::new(), quick_exits: Vec::new() });

fn lists() -> MutexGuard<'static, Lists> {
    LISTS.lock()
}

std::thread_local! {
    /// What is called after a fork of this thread.
    static FORK: RefCell<Vec<Around>> = const { RefCell::new(Vec::new()) };
}

/// Calls one of each, if it is there.
fn call(functions: impl Iterator<Item = Option<TypedFunction>>) {
    for function in functions.flatten() {
        // SAFETY: who registered it guarantees it.
        unsafe { function() };
    }
}

/// The last one first. What these register or take away is for the next fork.
extern "C" fn before() {
    let all: Vec<Around> = lists().forks.iter().map(|(around, _)| *around).collect();
    call(all.iter().rev().map(|[before, ..]| *before));
    FORK.set(all);
}

/// The first one first, in the parent (1) or in the child (2).
fn after(which: usize) {
    call(FORK.take().iter().map(|around| around.get(which).copied().flatten()));
}

extern "C" fn in_parent() {
    after(1);
}

extern "C" fn in_child() {
    after(2);
}

/// Has these called around forks until `handle` is [forgotten](forget). Gives 0 if they will.
///
/// # Safety
/// They may be called then.
pub(crate) unsafe fn at_fork(around: Around, handle: *mut c_void) -> c_int {
    static DONE: OnceLock<c_int> = OnceLock::new();
    // SAFETY: the functions may be called at any time.
    let done = *DONE.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child))
    });
    if done == 0 {
        lists().forks.push((around, handle));
    }
    done
}

/// Has this called at `quick_exit` until `handle` is [forgotten](forget). Gives 0 if it will.
///
/// # Safety
/// It may be called then.
pub(crate) unsafe fn at_quick_exit(function: Function, handle: *mut c_void) -> c_int {
    static DONE: OnceLock<c_int> = OnceLock::new();
    unsafe extern "C" {
        safe fn at_quick_exit(function: extern "C" fn()) -> c_int;
    }
    let done = *DONE.get_or_init(|| at_quick_exit(quick_exit));
    if done == 0 {
        lists().quick_exits.push((function, handle));
    }
    done
}

/// The last one first.
extern "C" fn quick_exit() {
    let next = || lists().quick_exits.pop();
    while let Some((function, _)) = next() {
        // SAFETY: who registered it guarantees it.
        unsafe { function(core::ptr::null_mut()) };
    }
}

/// Calls nothing of what `handle` stands for any more.
pub(crate) fn forget(handle: *mut c_void) {
    let mut lists = lists();
    lists.forks.retain(|(_, of)| *of != handle);
    lists.quick_exits.retain(|(_, of)| *of != handle);
}
