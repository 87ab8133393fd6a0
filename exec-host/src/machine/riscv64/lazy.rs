//! Stubs of functions that are compiled when they are called first. `t1` and `t3` are nobody's where a function begins, as in the psABI's
//! PLT entries.

use crate::lazy::slot::resolve;
use core::arch::naked_asm;

/// A stub at `address` that leaves the address of its slot in `t1` and jumps to what the slot's first word says.
pub(crate) fn stub(address: u64, slot: u64) -> [u8; 16] {
    let distance = slot.wrapping_sub(address) as u32;
    let (high, low) = (distance.wrapping_add(0x800) & !0xfff, distance << 20);
    // auipc t1, slot; ld t3, slot(t1); addi t1, t1, slot; jr t3
    let words = [high | 0x317, low | 0x0003_3e03, low | 0x0003_0313, 0x000e_0067];
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
        ".option push",
        ".option arch, +d",
        "addi sp, sp, -144",
        "sd ra, 136(sp)",
        "sd a0, 0(sp)",
        "sd a1, 8(sp)",
        "sd a2, 16(sp)",
        "sd a3, 24(sp)",
        "sd a4, 32(sp)",
        "sd a5, 40(sp)",
        "sd a6, 48(sp)",
        "sd a7, 56(sp)",
        "fsd fa0, 64(sp)",
        "fsd fa1, 72(sp)",
        "fsd fa2, 80(sp)",
        "fsd fa3, 88(sp)",
        "fsd fa4, 96(sp)",
        "fsd fa5, 104(sp)",
        "fsd fa6, 112(sp)",
        "fsd fa7, 120(sp)",
        "mv a0, t1",
        "call {resolve}",
        "mv t1, a0",
        "ld a0, 0(sp)",
        "ld a1, 8(sp)",
        "ld a2, 16(sp)",
        "ld a3, 24(sp)",
        "ld a4, 32(sp)",
        "ld a5, 40(sp)",
        "ld a6, 48(sp)",
        "ld a7, 56(sp)",
        "fld fa0, 64(sp)",
        "fld fa1, 72(sp)",
        "fld fa2, 80(sp)",
        "fld fa3, 88(sp)",
        "fld fa4, 96(sp)",
        "fld fa5, 104(sp)",
        "fld fa6, 112(sp)",
        "fld fa7, 120(sp)",
        "ld ra, 136(sp)",
        "addi sp, sp, 144",
        "jr t1",
        ".option pop",
        resolve = sym resolve,
    )
}
