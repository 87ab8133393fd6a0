//! Fragments of `_init` and `_fini`: code that runs to its end, with a frame around it.

use crate::start::Start;
use core::arch::asm;
use core::ffi::c_char;

/// What is written behind a fragment: `ldp x29, x30, [sp], #16`, `ret`.
pub(crate) const END: &[u8] = &[0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6];
/// The end of what ends itself: `ret`.
pub(crate) const RETURN: &[u8] = &[0xc0, 0x03, 0x5f, 0xd6];

/// Runs a fragment.
///
/// # Safety
/// It is one, ended by [`END`], and sound to run with these arguments.
pub(crate) unsafe fn call(address: u64, start: Start, environment: *const *const c_char) {
    // SAFETY: the frame is what the end takes away again; what functions may change is said.
    unsafe {
        asm!(
            "adr x30, 2f",
            "stp x29, x30, [sp, #-16]!",
            "mov x29, sp",
            "br {code}",
            "2:",
            code = in(reg) address,
            inout("x0") u64::from(start.count.cast_unsigned()) => _,
            inout("x1") start.words => _,
            inout("x2") environment => _,
            clobber_abi("C"),
        );
    }
}
