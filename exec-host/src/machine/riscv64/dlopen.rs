//! `dlopen` of libraries, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`open`](crate::library::opens::open) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!("mv a2, ra", "tail {open}", open = sym crate::library::opens::open)
}

/// [`open_of_process`](crate::library::opens::open_of_process), and the C library's function where that gives nothing, which finds the caller's return address
/// as if it had been called.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn of_process() {
    naked_asm!(
        "addi sp, sp, -32",
        "sd ra, 24(sp)",
        "sd a0, 16(sp)",
        "sd a1, 8(sp)",
        "call {ask}",
        "mv a2, a0",
        "ld ra, 24(sp)",
        "ld a0, 16(sp)",
        "ld a1, 8(sp)",
        "addi sp, sp, 32",
        "bnez a2, 2f",
        "tail {real}",
        "2: mv a0, a2",
        "ret",
        ask = sym crate::library::opens::open_of_process,
        real = sym libc::dlopen,
    )
}
