//! Instruction cache maintenance.

/// Makes instructions that were written as data visible to instruction fetch: the hardware does it by itself.
pub(crate) const fn synchronize(_start: *const u8, _size: usize) {}

/// An instruction that ends in a signal, as often as it fits (`int3`).
pub(crate) const TRAP: [u8; 4] = [0xcc; 4];
