//! Fragments of `_init` and `_fini`: code that runs to its end, with a frame around it. GNU C libraries have none on this machine, objects
//! may.

use crate::start::Start;
use core::arch::asm;
use core::ffi::c_char;

/// What is written behind a fragment: `c.ldsp ra, 8(sp)`, `c.addi sp, 16`, `c.jr ra`.
pub(crate) const END: &[u8] = &[0xa2, 0x60, 0x41, 0x01, 0x82, 0x80];
/// The end of what ends itself: `ret`, which assemblers compress.
pub(crate) const RETURN: &[u8] = &[0x82, 0x80];

/// Runs a fragment.
///
/// # Safety
/// It is one, ended by [`END`], and sound to run with these arguments.
pub(crate) unsafe fn call(address: u64, start: Start, environment: *const *const c_char) {
    // SAFETY: the stack is what it was when the end has taken the frame away, or where `s2`, which functions keep, has it; what functions
    // may change is said.
    unsafe {
        asm!(
            "mv s2, sp",
            "addi sp, sp, -16",
            "lla ra, 2f",
            "sd ra, 8(sp)",
            "jr t0",
            "2:",
            "mv sp, s2",
            out("s2") _,
            inout("t0") address => _,
            inout("a0") u64::from(start.count.cast_unsigned()) => _,
            inout("a1") start.words => _,
            inout("a2") environment => _,
            clobber_abi("C"),
        );
    }
}
