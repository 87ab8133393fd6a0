//! `dlopen` of libraries, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`open`](crate::library::opens::open) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!("hint #34", "mov x2, x30", "b {open}", open = sym crate::library::opens::open)
}

/// [`open_of_process`](crate::library::opens::open_of_process), and the C library's function where that gives nothing, which finds the caller's return address
/// as if it had been called.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn of_process() {
    naked_asm!(
        "hint #34",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {ask}",
        "mov x2, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz x2, 2f",
        "b {real}",
        "2: mov x0, x2",
        "ret",
        ask = sym crate::library::opens::open_of_process,
        real = sym libc::dlopen,
    )
}
