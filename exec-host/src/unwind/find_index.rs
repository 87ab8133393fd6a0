//! The function of the C library that unwinders of Arm ask for frames (EHABI32, "Finding the exception index table").

use super::format::ASKED;
use super::registry;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use exec_core::sync::OnceLock;

type FindIndex = unsafe extern "C" fn(*const c_void, *mut c_int) -> *const c_void;

/// The C library's own.
fn of_the_process() -> Option<FindIndex> {
    static FUNCTION: OnceLock<Option<FindIndex>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: asks for a function of the C library by its name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ASKED.as_ptr()) };
        // SAFETY: this is its type (EHABI32, "Finding the exception index table").
        (!found.is_null()).then(|| unsafe { transmute::<*mut c_void, FindIndex>(found) })
    })
}

/// The address of [`find_index`], which has all that it needs then.
pub(super) fn function() -> u64 {
    of_the_process();
    (find_index as *const ()).expose_provenance() as u64
}

/// `__gnu_Unwind_Find_exidx`, of loads too: the entry of the function at this address, and how many there are. The C library is asked
/// first: frames of loads cost a lock and memory.
///
/// # Safety
/// As for the C library's function: there is room for the number.
unsafe extern "C" fn find_index(address: *const c_void, count: *mut c_int) -> *const c_void {
    if let Some(find) = of_the_process() {
        // SAFETY: passes on what we were given.
        let found = unsafe { find(address, count) };
        if !found.is_null() {
            return found;
        }
    }
    let wanted = address.addr() as u64;
    let found = registry::load_of(wanted).and_then(|(_, load)| {
        let (_, head) = load.index().function(wanted)?;
        Some(head.address())
    });
    // SAFETY: the caller gives room.
    unsafe { count.write(c_int::from(found.is_some())) };
    // the load has it as long as its code is there
    found.map_or(core::ptr::null(), |entry| core::ptr::with_exposed_provenance(entry as usize))
}
