//! Instruction cache maintenance.

/// `riscv_flush_icache` of Linux.
const FLUSH: libc::c_long = 259;

/// Makes instructions that were written as data visible to instruction fetch, by whatever hart: `fence.i` would order this one alone.
pub(crate) fn synchronize(start: *const u8, size: usize) {
    let end = start.wrapping_add(size);
    // SAFETY: the call changes no memory. It cannot fail without flags.
    unsafe { libc::syscall(FLUSH, start, end, 0usize) };
}

/// Instructions that end in a signal (`c.ebreak`, twice), wherever one begins.
pub(crate) const TRAP: [u8; 4] = [0x02, 0x90, 0x02, 0x90];
