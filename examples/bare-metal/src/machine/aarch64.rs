//! AArch64, in the exception level that the machine starts in, without an MMU.

use core::arch::{asm, global_asm};

pub use reloc_aarch64::Aarch64 as Architecture;

/// How many places of the objects may become shorter: code of this architecture does not.
pub const EDITS: usize = 0;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global start",
    "start:",
    "mov x0, #(3 << 20)", // CPACR_EL1.FPEN: floating point does not trap
    "msr cpacr_el1, x0",
    "isb",
    "adrp x0, stack_top",
    "add x0, x0, :lo12:stack_top",
    "mov sp, x0",
    "adrp x0, bss_start",
    "add x0, x0, :lo12:bss_start",
    "adrp x1, bss_end",
    "add x1, x1, :lo12:bss_end",
    "1: cmp x0, x1",
    "b.hs 2f",
    "stp xzr, xzr, [x0], #16",
    "b 1b",
    "2: bl main",
);

/// Calls the host.
///
/// # Safety
/// `parameter` is what `operation` wants.
pub unsafe fn call(operation: usize, parameter: usize) {
    // SAFETY: by the caller; the host changes x0 and memory only.
    unsafe { asm!("hlt #0xf000", inout("x0") operation => _, in("x1") parameter, options(nostack)) }
}

/// Makes `size` bytes of code at `start`, which were written as data, visible to instruction fetch.
pub fn code_has_changed(start: *const u8, size: usize) {
    let (mut at, end) = (start.addr() & !15, start.addr().saturating_add(size));
    // 16 bytes is the least that a line of any cache has.
    while at < end {
        // SAFETY: cleaning a line that this program owns.
        unsafe { asm!("dc cvau, {}", in(reg) at, options(nostack)) };
        at += 16;
    }
    // SAFETY: no effect but that old instructions are forgotten.
    unsafe { asm!("dsb ish", "ic iallu", "dsb ish", "isb", options(nostack)) };
}
