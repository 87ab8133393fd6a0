//! Fragments of `_init` and `_fini`: code that finds the stack aligned, and runs to its end.

use crate::start::Start;
use core::arch::asm;
use core::ffi::c_char;

/// What is written behind a fragment: `ret`.
pub(crate) const END: &[u8] = &[0xc3];
/// The end of what ends itself.
pub(crate) const RETURN: &[u8] = &[0xc3];

/// Runs a fragment.
///
/// # Safety
/// It is one, ended by [`END`], and sound to run with these arguments.
pub(crate) unsafe fn call(address: u64, start: Start, environment: *const *const c_char) {
    // SAFETY: the stack is aligned here, and so it is again behind the return address; what functions may change is said.
    unsafe {
        asm!(
            "sub rsp, 8",
            "call {code}",
            "add rsp, 8",
            code = in(reg) address,
            inout("rdi") u64::from(start.count.cast_unsigned()) => _,
            inout("rsi") start.words => _,
            inout("rdx") environment => _,
            clobber_abi("C"),
        );
    }
}
