//! The unwinder of the process asks `_dl_find_object` of the C library for frames, by a word that the dynamic loader wrote the address
//! to. Led to ours, it knows loads as well, and they need not be registered one by one: registering is a list in libgcc before
//! GCC 13, in which a million modules are looked for one after the other.

use super::lookup;
use crate::descriptions;
use crate::library::handle;
use crate::library_words;
use core::ffi::{CStr, c_int, c_void};
use core::ops::ControlFlow;
use std::sync::OnceLock;

/// Whether the unwinder of the process knows all loads that are [entered](super::registry::Entered): libraries are changed when this is asked
/// for the first time.
pub(super) fn is_in_place() -> bool {
    static IS_IN_PLACE: OnceLock<bool> = OnceLock::new();
    *IS_IN_PLACE.get_or_init(lead_all)
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Ends a backtrace (`_URC_END_OF_STACK`).
unsafe extern "C" fn end(_: *mut c_void, _: *mut c_void) -> c_int {
    5
}

/// Leads every library's word to our function; whether the one with the unwinder of the process has one.
fn lead_all() -> bool {
    // the dynamic loader writes some words when a function is called for the first time: it has no more reason to
    // SAFETY: the callback has the type asked for, and looks at nothing.
    unsafe { _Unwind_Backtrace(end, core::ptr::null_mut()) };
    let unwinder = _Unwind_Backtrace as *const () as u64;
    let (mut places, mut is_found) = (Vec::new(), false);
    descriptions::each(|library| {
        let look = |name: &CStr, place| {
            if name == c"_dl_find_object" {
                places.push(place);
                is_found |= library.holds(unwinder);
            }
        };
        // SAFETY: what the dynamic loader shows is loaded and relocated.
        unsafe { library_words::each(library, look) };
        ControlFlow::Continue(())
    });
    if !is_found {
        return false;
    }
    handle::keep_this_library();
    // SAFETY: the words are those that the dynamic loader has for this function; ours does the same and more.
    unsafe { library_words::lead(&places, lookup::function()) }
}
