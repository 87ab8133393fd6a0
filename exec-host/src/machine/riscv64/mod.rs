//! RISC-V with addresses of 8 bytes.
//!
//! Assembly that uses registers of `D` says so itself (`.option arch, +d`): optimised builds read it once more for its symbols, and
//! forget what the target has.

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

use archs::reloc_riscv::riscv::{
    R_RISCV_64, R_RISCV_JUMP_SLOT, R_RISCV_TLS_DTPMOD64, R_RISCV_TLS_TPREL64,
};
use core::arch::{asm, naked_asm};
use core::ffi::{c_char, c_int};

/// The architecture of this process.
pub use archs::Host;

/// Of `mmap`: there is nothing like `MAP_32BIT`.
pub(crate) const MAP_LOW: u32 = 0;
/// `e_flags` of libraries: the float ABI, which the dynamic loader compares (`EF_RISCV_FLOAT_ABI_DOUBLE`).
pub(crate) const FLAGS: u32 = 0x4;
/// Relocations by name that are an address, which GOT entries have too.
pub(crate) const ADDRESSES: [u64; 1] = [R_RISCV_64 as u64];
/// Of a function that is called through the PLT.
pub(crate) const JUMP_SLOT: u64 = R_RISCV_JUMP_SLOT as u64;
/// The number of a module with thread-local variables.
pub(crate) const DTP_MODULE: u64 = R_RISCV_TLS_DTPMOD64 as u64;
/// A TP offset.
pub(crate) const TP_OFFSET: u64 = R_RISCV_TLS_TPREL64 as u64;

/// What C compilers are told to make code for: every processor with the usual extensions, since compilers have no `native` there.
#[cfg(feature = "compile")]
pub(crate) const ARCHITECTURE: &str = "-march=rv64gc";

/// The version of most symbols of the C library: that of its first release for the machine.
pub(crate) const OLDEST_VERSION: &core::ffi::CStr = c"GLIBC_2.27";

/// Begins a program whose stack is at `stack`, without a function to register for its end.
///
/// # Safety
/// It is a program in memory, with a stack as the ABI has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter_program(entry: u64, stack: u64) -> ! {
    naked_asm!("mv t1, a0", "mv sp, a1", "li a0, 0", "li ra, 0", "li s0, 0", "jr t1")
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
        "addi sp, sp, -16",
        "sd ra, 8(sp)",
        "mv t0, a0",
        "mv a0, a1",
        "mv a1, a2",
        "mv a2, a3",
        "jalr t0",
        "ld ra, 8(sp)",
        "addi sp, sp, 16",
        "ret",
    )
}

/// The thread pointer of this thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads what the ABI has there in every thread.
    unsafe { asm!("mv {}, tp", out(reg) pointer, options(nostack, nomem, preserves_flags)) }
    pointer
}
