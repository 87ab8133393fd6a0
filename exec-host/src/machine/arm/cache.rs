//! Instruction cache maintenance.

/// `cacheflush` of Linux (`__ARM_NR_cacheflush`).
const FLUSH: libc::c_long = 0x0f_0002;

/// Makes instructions that were written as data visible to instruction fetch, on all processors: user code has no instructions for it.
pub(crate) fn synchronize(start: *const u8, size: usize) {
    let end = start.wrapping_add(size);
    // SAFETY: the call changes no memory.
    unsafe { libc::syscall(FLUSH, start, end, 0usize) };
}

/// An instruction that ends in a signal, wherever one begins and in either state: `udf` of A32; of Thumb `udf`, and a branch to that.
pub(crate) const TRAP: [u8; 4] = 0xe7fd_def0_u32.to_le_bytes();
