//! The unwinder of the process asks the C library for frames (`_dl_find_object`; of Arm `__gnu_Unwind_Find_exidx`), by a word that the dynamic loader wrote the address
//! to. Led to ours, it knows loads as well, and they need not be registered one by one: registering is a list in libgcc before
//! GCC 13, in which a million modules are looked for one after the other.

use super::{asked, format};
use crate::descriptions;
use crate::library::handle;
use crate::library_words::{self, Place};
use core::ffi::{CStr, c_int, c_void};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use exec_core::sync::{Mutex, OnceLock, generation};
use std::time::{Duration, Instant};

static WORDS: OnceLock<Option<Words>> = OnceLock::new();

/// Whether the unwinder of the process knows all loads that are [entered](super::registry::Entered): libraries are changed when this is asked
/// for the first time.
pub(super) fn is_in_place() -> bool {
    // where nothing can be registered, words that may be written over are better than none
    let is_there = |words: &Words| words.stay() || !format::REGISTERS;
    WORDS.get_or_init(lead_all).as_ref().is_some_and(is_there)
}

/// The words of the library with the unwinder of the process that lead to our function. Others may be closed, and are not looked at again.
struct Words {
    places: Vec<Place>,
    since: Mutex<Instant>,
    stay: AtomicBool,
    /// That of the process in which they were led here.
    generation: u32,
}

/// A thread that has called the function for the first time before the words were ours, and is about to write what it has found, has
/// done so after this time.
const IN_FLIGHT: Duration = Duration::from_millis(100);

impl Words {
    /// Whether they are ours, and nobody writes over them any more.
    fn stay(&self) -> bool {
        if self.stay.load(Ordering::Acquire) {
            return true;
        }
        let mut since = self.since.lock();
        let ours = asked::function();
        // SAFETY: this program was linked to the library, which stays.
        if self.places.iter().any(|place| unsafe { place.value() } != ours) {
            // SAFETY: as in `lead_all`.
            unsafe { library_words::lead(&self.places, ours) };
            *since = Instant::now();
        }
        // no thread of a parent is in flight in its child, where a lock of libgcc's may be one's that was
        let stay = since.elapsed() >= IN_FLIGHT || generation() != self.generation;
        self.stay.store(stay, Ordering::Release);
        stay
    }
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

/// Leads every library's word to our function; `None` if the one with the unwinder of the process has none.
fn lead_all() -> Option<Words> {
    // the dynamic loader writes some words when a function is called for the first time: it has no more reason to
    // SAFETY: the callback has the type asked for, and looks at nothing.
    unsafe { _Unwind_Backtrace(end, core::ptr::null_mut()) };
    let unwinder = _Unwind_Backtrace as *const () as u64;
    let (mut places, mut own) = (Vec::new(), Vec::new());
    descriptions::each(|library| {
        let look = |name: &CStr, place| {
            if name == format::ASKED {
                places.push(place);
                own.extend(library.holds(unwinder).then_some(place));
            }
        };
        // SAFETY: what the dynamic loader shows is loaded and relocated.
        unsafe {
            if library_words::may_ask_for(library, format::ASKED) {
                library_words::each(library, look);
            }
        }
        ControlFlow::Continue(())
    });
    if own.is_empty() {
        return None;
    }
    handle::keep_this_library();
    // SAFETY: the words are those that the dynamic loader has for this function; ours does the same and more.
    let are_ours = unsafe { library_words::lead(&places, asked::function()) };
    let (since, stay) = (Mutex::new(Instant::now()), AtomicBool::new(is_single_threaded()));
    let generation = generation();
    are_ours.then_some(Words { places: own, since, stay, generation })
}

/// Whether the C library knows that there is no other thread (<sys/single_threaded.h>, glibc 2.32), or the system does of a child, of which the
/// C library does not know it.
fn is_single_threaded() -> bool {
    let tasks = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if generation() > 0 && tasks() == 1 {
        return true;
    }
    // SAFETY: asks for a variable by its name.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    // SAFETY: it is of type `char`, and this thread is the only one if it says so.
    !variable.is_null() && unsafe { variable.cast::<u8>().read_volatile() } != 0
}
