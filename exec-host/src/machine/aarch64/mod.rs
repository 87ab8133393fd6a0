//! AArch64.

mod atomics;
pub(crate) mod cache;
pub(crate) mod descriptor;
pub(crate) mod dlopen;
pub(crate) mod dlsym;
pub(crate) mod fragment;
#[cfg(feature = "device")]
pub(crate) mod guard;
pub(crate) mod lazy;
pub(crate) mod processor;
pub(crate) mod resolver;

use archs::reloc_aarch64::aarch64::{
    R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_AARCH64_TLS_DTPMOD64,
    R_AARCH64_TLS_TPREL64,
};
use core::arch::{asm, naked_asm};
use core::ffi::{c_char, c_int};

/// The architecture of this process.
pub use archs::Host;

/// Of `mmap`: there is nothing like `MAP_32BIT`.
pub(crate) const MAP_LOW: u32 = 0;
/// `e_flags` of libraries: none.
pub(crate) const FLAGS: u32 = 0;
/// Relocations by name that are an address.
pub(crate) const ADDRESSES: [u64; 2] = [R_AARCH64_ABS64 as u64, R_AARCH64_GLOB_DAT as u64];
/// Of a function that is called through the PLT.
pub(crate) const JUMP_SLOT: u64 = R_AARCH64_JUMP_SLOT as u64;
/// The number of a module with thread-local variables.
pub(crate) const DTP_MODULE: u64 = R_AARCH64_TLS_DTPMOD64 as u64;
/// A TP offset.
pub(crate) const TP_OFFSET: u64 = R_AARCH64_TLS_TPREL64 as u64;

/// What C compilers are told to make code for: this processor.
#[cfg(feature = "compile")]
pub(crate) const ARCHITECTURE: &str = "-march=native";

/// The version of most symbols of the C library: that of its first release for the machine.
pub(crate) const OLDEST_VERSION: &core::ffi::CStr = c"GLIBC_2.17";

/// Begins a program whose stack is at `stack`.
///
/// # Safety
/// It is a program in memory, with a stack as the ABI has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter_program(entry: u64, stack: u64) -> ! {
    naked_asm!("mov sp, x1", "mov x16, x0", "mov x0, xzr", "mov x29, xzr", "mov x30, xzr", "br x16")
}

/// Calls `main` of a program. It has no unwinding table: whoever goes up the stack finds that it begins here, as at the entry of a program.
///
/// # Safety
/// `main` is one, and sound to call with these arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_main(
    main: u64,
    count: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x9, x0",
        "mov w0, w1",
        "mov x1, x2",
        "mov x2, x3",
        "blr x9",
        "ldp x29, x30, [sp], #16",
        "ret",
    )
}

/// The thread pointer of this thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads what the ABI has there in every thread.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags)) }
    pointer
}
