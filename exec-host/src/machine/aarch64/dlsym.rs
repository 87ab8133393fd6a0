//! `dlsym` of loads, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`find`](crate::dlsym::names::find) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym() {
    naked_asm!("hint #34", "mov x2, x30", "b {find}", find = sym crate::dlsym::names::find)
}

/// [`find_version`](crate::dlsym::names::find_version) with the return address as fourth argument.
#[cfg(target_env = "gnu")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlvsym() {
    naked_asm!("hint #34", "mov x3, x30", "b {find}", find = sym crate::dlsym::names::find_version)
}

/// The first of two functions for handles of which [`is_open`](crate::dlsym::names::is_open), the second, the C library's, for all others: that
/// one finds the caller's return address as if it had been called.
macro_rules! by_handle {
    ($own:path, $real:path) => {
        naked_asm!(
            "hint #34",
            "stp x29, x30, [sp, #-48]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "str x2, [sp, #32]",
            "bl {is_open}",
            "mov x3, x0",
            "ldr x2, [sp, #32]",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #48",
            "tbnz w3, #0, 2f",
            "b {real}",
            "2: b {own}",
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
