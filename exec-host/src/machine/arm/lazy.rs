//! Stubs of functions that are compiled when they are called first. `ip` is nobody's where a function begins (AAPCS32, "Core registers").

use crate::lazy::slot::resolve;
use core::arch::naked_asm;

/// A stub at `address` that leaves the address of its slot in `ip` and jumps to what the slot's first word says.
pub(crate) fn stub(address: u64, slot: u64) -> [u8; 16] {
    let distance = slot.wrapping_sub(address.wrapping_add(12)) as u32;
    // ldr ip, [pc, #4]; add ip, pc, ip; ldr pc, [ip]; the distance
    let words = [0xe59f_c004, 0xe08f_c00c, 0xe59c_f000, distance];
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
        "push {{r0, r1, r2, r3, ip, lr}}",
        "vpush {{d0-d7}}",
        "mov r0, ip",
        "bl {resolve}",
        "vpop {{d0-d7}}",
        "str r0, [sp, #16]",
        "pop {{r0, r1, r2, r3, ip, lr}}",
        "bx ip",
        resolve = sym resolve,
    )
}
