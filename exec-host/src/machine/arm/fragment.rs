//! Fragments of `_init` and `_fini`: code that runs to its end, with a frame around it. What is here is for A32; fragments of Thumb
//! code are refused.

use crate::start::Start;
use core::arch::asm;
use core::ffi::c_char;

/// What is written behind a fragment: `pop {r3, pc}`.
pub(crate) const END: &[u8] = &[0x08, 0x80, 0xbd, 0xe8];
/// The end of what ends itself: `bx lr`.
pub(crate) const RETURN: &[u8] = &[0x1e, 0xff, 0x2f, 0xe1];

/// Runs a fragment.
///
/// # Safety
/// It is one, ended by [`END`], and sound to run with these arguments.
pub(crate) unsafe fn call(address: u64, start: Start, environment: *const *const c_char) {
    // SAFETY: the frame is what the end takes away again; what functions may change is said.
    unsafe {
        asm!(
            "adr lr, 2f",
            "push {{r3, lr}}",
            "bx {code}",
            "2:",
            code = in(reg) address as usize,
            inout("r0") start.count => _,
            inout("r1") start.words => _,
            inout("r2") environment => _,
            clobber_abi("C"),
        );
    }
}
