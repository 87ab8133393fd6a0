//! What the machines have of their own: memory, the first instructions, the call to the host, the instruction cache.

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "riscv64")]
pub use riscv64::*;

/// Bytes of a page.
pub const PAGE: u64 = 0x1000;

/// Calls a program.
///
/// # Safety
/// It is in memory, and its entry a function of this type.
pub unsafe fn enter(entry: u64, value: u64) -> u64 {
    let entry = core::ptr::with_exposed_provenance::<()>(entry as usize);
    // SAFETY: as the caller vouches.
    unsafe { core::mem::transmute::<*const (), extern "C" fn(u64) -> u64>(entry)(value) }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use core::arch::{asm, global_asm};
    use core::ops::Range;

    pub use reloc_aarch64::Aarch64 as Arch;

    /// Memory for programs: `-M virt` has it from 0x40000000 on, the firmware is at the beginning.
    pub const MEMORY: Range<usize> = 0x4200_0000..0x4600_0000;

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
        "bl main",
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

    /// Makes code that was written as data visible to instruction fetch. Caches are off: nothing is to be cleaned.
    pub fn code_has_changed(_code: &[u8]) {
        // SAFETY: no effect but that old instructions are forgotten.
        unsafe { asm!("dsb sy", "ic iallu", "dsb sy", "isb", options(nostack)) };
    }
}

#[cfg(target_arch = "riscv64")]
mod riscv64 {
    use core::arch::{asm, global_asm};
    use core::ops::Range;

    pub use reloc_riscv::Rv64 as Arch;

    /// Memory for programs: `-M virt` has it from 0x80000000 on, the firmware is at the beginning.
    pub const MEMORY: Range<usize> = 0x8200_0000..0x8600_0000;

    global_asm!(
        ".section .text.start, \"ax\"",
        ".global start",
        "start:",
        "li t0, 0x2000", // mstatus.FS: floating point does not trap
        "csrs mstatus, t0",
        "la sp, stack_top",
        "call main",
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
    pub fn code_has_changed(_code: &[u8]) {
        // SAFETY: no effect but that old instructions are forgotten.
        unsafe { asm!("fence.i", options(nostack)) };
    }
}
