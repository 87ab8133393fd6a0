//! `dlopen` of libraries, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`open`](crate::library::opens::open) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!("endbr64", "mov rdx, [rsp]", "jmp {open}", open = sym crate::library::opens::open)
}

/// [`open_of_process`](crate::library::opens::open_of_process), and the C library's function where that gives nothing, which finds the caller's return address
/// as if it had been called.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn of_process() {
    naked_asm!(
        "endbr64",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {ask}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "jmp {real}",
        "2: ret",
        ask = sym crate::library::opens::open_of_process,
        real = sym libc::dlopen,
    )
}
