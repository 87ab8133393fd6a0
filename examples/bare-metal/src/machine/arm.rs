//! Cortex-M: Thumb code, of which the first stack pointer and the first instruction are found in a table.

use core::arch::{asm, global_asm};

pub use reloc_arm::Arm as Architecture;

/// How many places of the objects may become shorter: code of this architecture does not.
pub const EDITS: usize = 0;

global_asm!(
    ".section .vectors, \"a\"",
    ".word stack_top",
    ".word start",
    ".rept 14",
    ".word fault_ends",
    ".endr",
    ".text",
    ".thumb_func",
    ".global start",
    "start:",
    "ldr r0, =bss_start",
    "ldr r1, =bss_end",
    "movs r2, #0",
    "1: cmp r0, r1",
    "bhs 2f",
    "stmia r0!, {{r2}}",
    "b 1b",
    "2: bl prepare",
    "bl main",
    "stop: b stop",
    // the stack may be what failed; the host ends with a failure: SYS_EXIT, ADP_Stopped_RunTimeErrorUnknown
    ".thumb_func",
    "fault_ends:",
    "ldr r0, =stack_top",
    "mov sp, r0",
    "movs r0, #0x18",
    "ldr r1, =0x20023",
    "bkpt #0xab",
    "b stop",
    ".ltorg",
);

// Lets floating point through, where there is any: CPACR.
#[cfg(target_abi = "eabihf")]
global_asm!(
    ".text",
    ".thumb_func",
    "prepare:",
    "ldr r0, =0xe000ed88",
    "ldr r1, =0x00f00000",
    "str r1, [r0]",
    "dsb",
    "isb",
    "bx lr",
    ".ltorg",
);
#[cfg(not(target_abi = "eabihf"))]
global_asm!(".text", ".thumb_func", "prepare: bx lr");

/// Calls the host.
///
/// # Safety
/// `parameter` is what `operation` wants.
pub unsafe fn call(operation: usize, parameter: usize) {
    // SAFETY: by the caller; the host changes r0 and memory only.
    unsafe { asm!("bkpt #0xab", inout("r0") operation => _, in("r1") parameter, options(nostack)) }
}

/// Makes code that was written as data visible to instruction fetch. These processors have no caches.
pub fn code_has_changed(_: *const u8, _: usize) {
    // SAFETY: what was fetched is forgotten, what was stored is there.
    unsafe { asm!("dsb", "isb", options(nostack)) };
}
