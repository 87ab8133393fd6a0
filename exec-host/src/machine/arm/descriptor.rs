//! Descriptors of Arm: `r0` holds the descriptor's address, and then the distance; only `r1`, which callers need to get here, and the flags
//! change (AAELF32, "Relocations for thread-local storage"). The argument is the descriptor's first word.

use crate::threads::dynamic::FUNCTION;
use core::arch::naked_asm;

/// Nothing has to be found out.
pub(crate) const fn prepare() -> bool {
    true
}

#[unsafe(naked)]
pub(crate) unsafe extern "C" fn near() {
    naked_asm!("ldr r0, [r0]", "bx lr")
}

/// Registers above `d15`, which not every processor has, are left to the C library, whose own function for this keeps none of floating point.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn far() {
    naked_asm!(
        "push {{r2, r3, ip, lr}}",
        "vpush {{d0-d7}}",
        "vmrs r2, fpscr",
        "push {{r2, r3}}",
        "ldr r0, [r0]",
        "ldr r1, 2f",
        "1: add r1, pc, r1",
        "ldr r1, [r1]",
        "blx r1",
        "mrc p15, 0, r1, c13, c0, 3",
        "sub r0, r0, r1",
        "pop {{r2, r3}}",
        "vmsr fpscr, r2",
        "vpop {{d0-d7}}",
        "pop {{r2, r3, ip, pc}}",
        // `pc` is two instructions ahead
        "2: .word {get} - (1b + 8)",
        get = sym FUNCTION,
    )
}
