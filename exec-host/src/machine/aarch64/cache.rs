//! Instruction cache maintenance.

use core::arch::asm;

/// Makes instructions that were written as data visible to instruction fetch (Arm ARM B2.4.4).
pub(crate) fn synchronize(start: *const u8, size: usize) {
    let types: u64;
    // SAFETY: reading the cache type register has no effect; Linux lets user code do it.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    let line = |shift: u32| 4usize << (types >> shift & 0xf);
    let lines = |line: usize| {
        let first = start.addr() & !(line - 1);
        (first..start.addr().saturating_add(size)).step_by(line)
    };
    // IDC and DIC say that the hardware does it by itself
    if types & 1 << 28 == 0 {
        for address in lines(line(16)) {
            // SAFETY: cleaning a line of mapped memory changes no value.
            unsafe { asm!("dc cvau, {}", in(reg) address, options(nostack, preserves_flags)) };
        }
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    if types & 1 << 29 == 0 {
        for address in lines(line(0)) {
            // SAFETY: invalidating a line of the instruction cache changes no value.
            unsafe { asm!("ic ivau, {}", in(reg) address, options(nostack, preserves_flags)) };
        }
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// An instruction that ends in a signal (`brk #0`).
pub(crate) const TRAP: [u8; 4] = 0xd420_0000u32.to_le_bytes();
