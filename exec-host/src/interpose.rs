//! Functions of a program that libraries ask for by name: `malloc`, `operator new`, what a library leaves to its user. The dynamic
//! loader looks into an executable before all libraries (gABI ch. 5, "Shared Object Dependencies"); libraries that are there before a
//! program is loaded have to be led to its functions.

use crate::c_library;
use crate::descriptions::{self, Description};
use crate::library_words::{self, Place};
use crate::module::Module;
use core::mem::ManuallyDrop;
use core::ops::ControlFlow;
use elf_core::Name;
use std::sync::Arc;

impl<B: AsRef<[u8]> + Send + Sync + 'static> Module<B> {
    /// Leads libraries of this process to functions of the module where they ask for a function of that name, as the dynamic loader
    /// does for an executable. The module then stays for ever. Gives how many words of libraries were changed.
    ///
    /// Left as they are: the program of this process itself, the dynamic loader, the library that unwinds, libraries out of bytes,
    /// and what libraries mean that are opened later.
    ///
    /// If the module has a `free`, destructors of thread-local variables that this thread has so far run now: the C
    /// library would give memory of its own to that function after them.
    ///
    /// # Safety
    /// The functions do what libraries ask these names for. No other thread runs, and memory that a library has so far from a function
    /// which is replaced never comes to one that is. Nothing on this thread relies on its thread-local variables with destructors.
    pub unsafe fn interpose(self: &Arc<Self>) -> usize {
        let exports = self.exports();
        let mut words = Vec::new();
        let is_passed_over = passed_over();
        descriptions::each(|library| {
            if !is_passed_over(library) {
                let look = |name: &core::ffi::CStr, place: Place| {
                    let found = exports.get(Name(name.to_bytes()));
                    if let Some(function) = found.filter(|it| it.is_function()) {
                        words.push((place, function.address()));
                    }
                };
                // SAFETY: what the dynamic loader shows is loaded and relocated.
                unsafe { library_words::each(library, look) };
            }
            ControlFlow::Continue(())
        });
        if words.is_empty() {
            return 0;
        }
        let _stays = ManuallyDrop::new(Arc::clone(self));
        if exports.get(Name::from("free")).is_some_and(|it| it.is_function()) {
            // SAFETY: as the caller vouches for this thread.
            unsafe { end_thread_local_variables() };
        }
        // SAFETY: as the caller vouches for the functions.
        words.retain(|&(place, function)| unsafe { library_words::lead(&[place], function) });
        words.len()
    }
}

/// Which libraries are left as they are.
fn passed_over() -> impl Fn(&Description<'_>) -> bool {
    unsafe extern "C" {
        fn _Unwind_RaiseException();
    }
    // SAFETY: asks only.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    let unwinder = _Unwind_RaiseException as *const () as u64;
    move |library| {
        library.path().is_empty() || [loader, unwinder].iter().any(|&it| library.holds(it))
    }
}

/// Runs the destructors that the C library has for this thread (`__cxa_thread_atexit_impl`), where it shows the function for that.
///
/// # Safety
/// Nobody on this thread uses these variables any more.
unsafe fn end_thread_local_variables() {
    let (name, version) = (c"__call_tls_dtors", c"GLIBC_PRIVATE");
    // SAFETY: asks for a function of the C library by its name.
    let found = unsafe { c_library::dlvsym(libc::RTLD_DEFAULT, name, version) };
    if !found.is_null() {
        // SAFETY: this is its type (glibc, `stdlib/cxa_thread_atexit_impl.c`).
        let run = unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn()>(found)
        };
        // SAFETY: as the caller vouches.
        unsafe { run() };
    }
}
