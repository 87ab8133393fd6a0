//! `dlopen` of libraries, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`open`](crate::library::opens::open) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!("mov r2, lr", "b {open}", open = sym crate::library::opens::open)
}

/// [`open_of_process`](crate::library::opens::open_of_process), and the C library's function where that gives nothing, which finds the caller's return address
/// as if it had been called.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn of_process() {
    naked_asm!(
        "push {{r0, r1, r2, lr}}",
        "bl {ask}",
        "mov r3, r0",
        "pop {{r0, r1, r2, lr}}",
        "cmp r3, #0",
        "bne 2f",
        "b {real}",
        "2: mov r0, r3",
        "bx lr",
        ask = sym crate::library::opens::open_of_process,
        real = sym libc::dlopen,
    )
}
