//! RISC-V in machine mode, of 32 and 64 bits.

use core::arch::{asm, global_asm};

#[cfg(target_arch = "riscv32")]
pub use reloc_riscv::Rv32 as Architecture;
#[cfg(target_arch = "riscv64")]
pub use reloc_riscv::Rv64 as Architecture;

/// How many places of the objects may become shorter.
pub const EDITS: usize = 64;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global start",
    "start:",
    "li t0, 0x2000", // mstatus.FS: floating point does not trap
    "csrs mstatus, t0",
    "la sp, stack_top",
    "la a0, bss_start",
    "la a1, bss_end",
    "1: bgeu a0, a1, 2f",
    "sw zero, 0(a0)",
    "addi a0, a0, 4",
    "j 1b",
    "2: call main",
);

/// Calls the host: the three instructions together are the sign.
///
/// # Safety
/// `parameter` is what `operation` wants.
pub unsafe fn call(operation: usize, parameter: usize) {
    // SAFETY: by the caller; the host changes a0 and memory only.
    unsafe {
        asm!(
            ".balign 16", // all in one page
            ".option push",
            ".option norvc",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inout("a0") operation => _,
            in("a1") parameter,
            options(nostack)
        );
    }
}

/// Makes code that was written as data visible to instruction fetch.
pub fn code_has_changed(_: *const u8, _: usize) {
    // SAFETY: fence.i (Zifencei): no effect but that old instructions are forgotten.
    unsafe { asm!(".4byte 0x0000100f", options(nostack)) };
}
