//! `dlsym` of loads, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`find`](crate::dlsym::names::find) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym() {
    naked_asm!("mv a2, ra", "tail {find}", find = sym crate::dlsym::names::find)
}

/// [`find_version`](crate::dlsym::names::find_version) with the return address as fourth argument.
#[cfg(target_env = "gnu")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlvsym() {
    naked_asm!("mv a3, ra", "tail {find}", find = sym crate::dlsym::names::find_version)
}

/// The first of two functions for handles of which [`is_open`](crate::dlsym::names::is_open), the second, the C library's, for all others: that
/// one finds the caller's return address as if it had been called.
macro_rules! by_handle {
    ($own:path, $real:path) => {
        naked_asm!(
            "addi sp, sp, -32",
            "sd ra, 24(sp)",
            "sd a0, 16(sp)",
            "sd a1, 8(sp)",
            "sd a2, 0(sp)",
            "call {is_open}",
            "mv a3, a0",
            "ld ra, 24(sp)",
            "ld a0, 16(sp)",
            "ld a1, 8(sp)",
            "ld a2, 0(sp)",
            "addi sp, sp, 32",
            "bnez a3, 2f",
            "tail {real}",
            "2: tail {own}",
            is_open = sym crate::dlsym::names::is_open,
            own = sym $own,
            real = sym $real,
        )
    };
}

/// `dlsym` of libraries of the dynamic loader.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn of_process() {
    by_handle!(dlsym, libc::dlsym)
}

/// The same of `dlvsym`.
#[cfg(target_env = "gnu")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn version_of_process() {
    by_handle!(dlvsym, libc::dlvsym)
}
