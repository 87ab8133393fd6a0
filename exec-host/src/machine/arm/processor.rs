//! What compilers call for that depends on the processor: the thread pointer, of which the oldest have no register.

use crate::external::External;
use core::arch::naked_asm;
use core::ffi::c_void;

pub(crate) fn find(name: &str) -> Option<External> {
    let function = read_thread_pointer as *const ();
    (name == "__aeabi_read_tp").then(|| External::function(function.expose_provenance() as u64))
}

/// `__aeabi_read_tp` (RTABI32, "Thread-local storage"), which glibc has in `libc_nonshared.a`: all registers but the result's, `ip` and `lr`
/// are kept.
#[unsafe(naked)]
extern "C" fn read_thread_pointer() -> *mut c_void {
    naked_asm!("mrc p15, 0, r0, c13, c0, 3", "bx lr")
}
