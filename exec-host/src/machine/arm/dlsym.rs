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
