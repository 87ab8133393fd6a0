//! x86-64.

pub(crate) mod cache;
pub(crate) mod descriptor;
pub(crate) mod fragment;
#[cfg(feature = "device")]
pub(crate) mod guard;
pub(crate) mod processor;
pub(crate) mod resolver;

use core::arch::asm;

/// The architecture of this process.
pub use archs::Host;

/// Of `mmap`: an address below 2 GiB (`MAP_32BIT`).
pub(crate) const MAP_LOW: u32 = 0x40;
/// Relocations by name that are an address: `R_X86_64_64`, `R_X86_64_GLOB_DAT`.
pub(crate) const ADDRESSES: [u64; 2] = [1, 6];
/// `R_X86_64_DTPMOD64`.
pub(crate) const DTP_MODULE: u64 = 16;
/// `R_X86_64_TPOFF64`.
pub(crate) const TP_OFFSET: u64 = 18;

/// The thread pointer of this thread.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads what the ABI has there in every thread.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) }
    pointer
}
