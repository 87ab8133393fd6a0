//! Arm of 32 bits from Armv7-A on, with the hard-float calling convention (`armhf`). Code of this process may be A32 or Thumb: bit 0 of an address
//! says which.

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

use archs::reloc_arm::arm::{
    R_ARM_ABS32, R_ARM_GLOB_DAT, R_ARM_JUMP_SLOT, R_ARM_TLS_DTPMOD32, R_ARM_TLS_TPOFF32,
};
use core::arch::{asm, naked_asm};
use core::ffi::{c_char, c_int};

/// The architecture of this process.
pub use archs::Host;

/// Of `mmap`: all addresses are below 4 GiB.
pub(crate) const MAP_LOW: u32 = 0;
/// `e_flags` of libraries: `EF_ARM_EABI_VER5`, `EF_ARM_ABI_FLOAT_HARD`.
pub(crate) const FLAGS: u32 = 0x0500_0400;
/// Relocations by name that are an address.
pub(crate) const ADDRESSES: [u64; 2] = [R_ARM_ABS32 as u64, R_ARM_GLOB_DAT as u64];
/// Of a function that is called through the PLT.
pub(crate) const JUMP_SLOT: u64 = R_ARM_JUMP_SLOT as u64;
/// The number of a module with thread-local variables.
pub(crate) const DTP_MODULE: u64 = R_ARM_TLS_DTPMOD32 as u64;
/// A TP offset.
pub(crate) const TP_OFFSET: u64 = R_ARM_TLS_TPOFF32 as u64;

/// What C compilers are told to make code for: every processor that the C library runs on.
#[cfg(feature = "compile")]
pub(crate) const ARCHITECTURE: &str = "-march=armv7-a+fp";

/// The version of most symbols of the C library: that of its first release for the machine.
pub(crate) const OLDEST_VERSION: &core::ffi::CStr = c"GLIBC_2.4";

/// Begins a program whose stack is at `stack`, without a function to register for its end.
///
/// # Safety
/// It is a program in memory, with a stack as the ABI has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter_program(entry: u64, stack: u64) -> ! {
    naked_asm!("mov sp, r2", "mov ip, r0", "mov r0, #0", "mov fp, #0", "mov lr, #0", "bx ip")
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
        "push {{fp, lr}}",
        "mov ip, r0",
        "mov r0, r2",
        "mov r1, r3",
        "ldr r2, [sp, #8]",
        "blx ip",
        "pop {{fp, pc}}",
    )
}

/// The thread pointer of this thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: usize;
    // SAFETY: reads what the ABI has there in every thread (`TPIDRURO`).
    unsafe {
        asm!("mrc p15, 0, {}, c13, c0, 3", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer as u64
}
