//! What C libraries do each in its own way: versions of symbols, and what the dynamic loader tells of addresses and libraries, what is
//! done when threads, libraries and the process end.

#[cfg(not(target_env = "gnu"))]
mod forks;
#[cfg_attr(target_env = "gnu", path = "c_library/gnu.rs")]
#[cfg_attr(not(target_env = "gnu"), path = "c_library/other.rs")]
mod own;
mod types;

pub(crate) use own::{
    OWN_ATEXIT, at_exit, at_fork, at_quick_exit, at_thread_exit, dlinfo_link_map, dlvsym, finalize,
    link_map_at, symbol_at,
};
pub(crate) use types::{Destructor, TypedFunction};

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::c_void;
    use core::ptr;
    use std::sync::Mutex;

    static CALLED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    extern "C" fn note(argument: *mut c_void) {
        CALLED.lock().unwrap().push(argument.addr());
    }

    extern "C-unwind" fn note_and_more(argument: *mut c_void) {
        note(argument);
        if argument.addr() == 3 {
            // SAFETY: it may be called with any argument.
            assert_eq!(unsafe { at_thread_exit(note_and_more, argument.wrapping_add(4), None) }, 0);
        }
    }

    #[test]
    fn what_is_registered_is_called_once_the_last_first() {
        let pointer = ptr::without_provenance_mut::<c_void>;
        let [ours, others] = [0u8; 2].each_mut().map(|handle| ptr::from_mut(handle).cast());
        for (argument, handle) in [(1, ours), (2, others), (3, ours)] {
            // SAFETY: it may be called with any argument.
            assert_eq!(unsafe { at_exit(note, pointer(argument), handle) }, 0);
        }
        let take = || core::mem::take(&mut *CALLED.lock().unwrap());
        for (handle, called) in [(ours, &[3, 1][..]), (ours, &[]), (others, &[2])] {
            // SAFETY: nothing needs what the handle stands for.
            unsafe { finalize(handle) };
            assert_eq!(take(), called);
        }
        let register = move || {
            for argument in 1..=3 {
                // SAFETY: as above.
                let done = unsafe { at_thread_exit(note_and_more, pointer(argument), None) };
                assert_eq!(done, 0);
            }
        };
        std::thread::spawn(register).join().unwrap();
        assert_eq!(take(), [3, 7, 2, 1]);
    }
}
