//! `dlsym` of loads, which depends on who calls: the return address says.

use core::arch::naked_asm;

/// [`find`](crate::dlsym::names::find) with the return address as third argument.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym() {
    naked_asm!("mov r2, lr", "b {find}", find = sym crate::dlsym::names::find)
}

/// [`find_version`](crate::dlsym::names::find_version) with the return address as fourth argument.
#[cfg(target_env = "gnu")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlvsym() {
    naked_asm!("mov r3, lr", "b {find}", find = sym crate::dlsym::names::find_version)
}

/// The first of two functions for handles of which [`is_open`](crate::dlsym::names::is_open), the second, the C library's, for all others: that
/// one finds the caller's return address as if it had been called.
macro_rules! by_handle {
    ($own:path, $real:path) => {
        naked_asm!(
            "push {{r0, r1, r2, lr}}",
            "bl {is_open}",
            "mov r3, r0",
            "pop {{r0, r1, r2, lr}}",
            "tst r3, #1",
            "bne 2f",
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
