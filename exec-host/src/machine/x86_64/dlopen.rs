//! `dlopen` of libraries, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`open`](crate::library::opens::open) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!("endbr64", "mov rdx, [rsp]", "jmp {open}", open = sym crate::library::opens::open)
}
