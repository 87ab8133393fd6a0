//! Stubs of functions that are compiled when they are called first. `x16` and `x17` are nobody's where a function begins (AAPCS64,
//! section 6.1.1).

use crate::lazy::slot::resolve;
use core::arch::naked_asm;

/// A stub at `address` that leaves the address of its slot in `x16` and jumps to what the slot's first word says.
pub(crate) fn stub(address: u64, slot: u64) -> [u8; 16] {
    let distance = slot.wrapping_sub(address.wrapping_add(4)) as u32;
    let adr = 0x1000_0010 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5;
    // bti c; adr x16, slot; ldr x17, [x16]; br x17
    let words = [0xd503_245f, adr, 0xf940_0211, 0xd61f_0220];
    let mut bytes = [0; 16];
    for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}

/// Where slots lead whose function was not compiled yet: has it compiled, and goes on there with all arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter() {
    naked_asm!(
        "hint #36", // bti j and c: `br x17` came here
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov x0, x16",
        "bl {resolve}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        "br x16",
        resolve = sym resolve,
    )
}
