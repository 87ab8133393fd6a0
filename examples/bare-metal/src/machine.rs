//! What the machines have of their own: the first instructions, the call to the host, the instruction cache.

#[cfg(target_arch = "aarch64")]
pub use aarch64::{call, code_has_changed};
#[cfg(target_arch = "arm")]
pub use arm::call;
#[cfg(target_arch = "riscv32")]
pub use riscv::call;

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use core::arch::{asm, global_asm};

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
        unsafe {
            asm!("hlt #0xf000", inout("x0") operation => _, in("x1") parameter, options(nostack))
        }
    }

    /// Makes code that was written as data visible to instruction fetch.
    pub fn code_has_changed(code: &[u8]) {
        let range = code.as_ptr_range();
        let (mut at, end) = (range.start.addr() & !15, range.end.addr());
        // 16 bytes is the least that a line of any cache has.
        while at < end {
            // SAFETY: cleaning a line that this program owns.
            unsafe { asm!("dc cvau, {}", in(reg) at, options(nostack)) };
            at += 16;
        }
        // SAFETY: no effect but that old instructions are forgotten.
        unsafe { asm!("dsb ish", "ic iallu", "dsb ish", "isb", options(nostack)) };
    }
}

#[cfg(target_arch = "arm")]
mod arm {
    use core::arch::{asm, global_asm};

    // The first stack pointer and the first instruction: a Cortex-M loads both from address 0.
    global_asm!(
        ".section .vectors, \"a\"",
        ".word stack_top",
        ".word start",
        ".rept 14",
        ".word stop",
        ".endr",
        ".text",
        ".thumb_func",
        ".global start",
        "start:",
        "ldr r0, =0xe000ed88", // CPACR: floating point is on
        "ldr r1, =0x00f00000",
        "str r1, [r0]",
        "dsb",
        "isb",
        "ldr r0, =bss_start",
        "ldr r1, =bss_end",
        "movs r2, #0",
        "1: cmp r0, r1",
        "bhs 2f",
        "stmia r0!, {{r2}}",
        "b 1b",
        "2: bl main",
        ".thumb_func",
        "stop: b stop",
        ".ltorg",
    );

    /// Calls the host.
    ///
    /// # Safety
    /// `parameter` is what `operation` wants.
    pub unsafe fn call(operation: usize, parameter: usize) {
        // SAFETY: by the caller; the host changes r0 and memory only.
        unsafe {
            asm!("bkpt #0xab", inout("r0") operation => _, in("r1") parameter, options(nostack))
        }
    }
}

#[cfg(target_arch = "riscv32")]
mod riscv {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".section .text.start, \"ax\"",
        ".global start",
        "start:",
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
}
