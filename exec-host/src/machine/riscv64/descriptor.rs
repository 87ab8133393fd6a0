//! Descriptors of RISC-V: `a0` holds the descriptor's address, and then the distance; `t0` is where to return to, and all else stays but
//! what vectors have.

use crate::threads::dynamic::FUNCTION;
use core::arch::naked_asm;

/// Nothing has to be found out.
pub(crate) const fn prepare() -> bool {
    true
}

#[unsafe(naked)]
pub(crate) unsafe extern "C" fn near() {
    naked_asm!("ld a0, 8(a0)", "jr t0")
}

#[unsafe(naked)]
pub(crate) unsafe extern "C" fn far() {
    naked_asm!(
        ".option push",
        ".option arch, +d",
        "addi sp, sp, -288",
        "sd ra, 0(sp)",
        "sd t0, 8(sp)",
        "sd t1, 16(sp)",
        "sd t2, 24(sp)",
        "sd t3, 32(sp)",
        "sd t4, 40(sp)",
        "sd t5, 48(sp)",
        "sd t6, 56(sp)",
        "sd a1, 64(sp)",
        "sd a2, 72(sp)",
        "sd a3, 80(sp)",
        "sd a4, 88(sp)",
        "sd a5, 96(sp)",
        "sd a6, 104(sp)",
        "sd a7, 112(sp)",
        "fsd ft0, 120(sp)",
        "fsd ft1, 128(sp)",
        "fsd ft2, 136(sp)",
        "fsd ft3, 144(sp)",
        "fsd ft4, 152(sp)",
        "fsd ft5, 160(sp)",
        "fsd ft6, 168(sp)",
        "fsd ft7, 176(sp)",
        "fsd ft8, 184(sp)",
        "fsd ft9, 192(sp)",
        "fsd ft10, 200(sp)",
        "fsd ft11, 208(sp)",
        "fsd fa0, 216(sp)",
        "fsd fa1, 224(sp)",
        "fsd fa2, 232(sp)",
        "fsd fa3, 240(sp)",
        "fsd fa4, 248(sp)",
        "fsd fa5, 256(sp)",
        "fsd fa6, 264(sp)",
        "fsd fa7, 272(sp)",
        "ld a0, 8(a0)",
        "ld t1, {get}",
        "jalr t1",
        "sub a0, a0, tp",
        "ld ra, 0(sp)",
        "ld t0, 8(sp)",
        "ld t1, 16(sp)",
        "ld t2, 24(sp)",
        "ld t3, 32(sp)",
        "ld t4, 40(sp)",
        "ld t5, 48(sp)",
        "ld t6, 56(sp)",
        "ld a1, 64(sp)",
        "ld a2, 72(sp)",
        "ld a3, 80(sp)",
        "ld a4, 88(sp)",
        "ld a5, 96(sp)",
        "ld a6, 104(sp)",
        "ld a7, 112(sp)",
        "fld ft0, 120(sp)",
        "fld ft1, 128(sp)",
        "fld ft2, 136(sp)",
        "fld ft3, 144(sp)",
        "fld ft4, 152(sp)",
        "fld ft5, 160(sp)",
        "fld ft6, 168(sp)",
        "fld ft7, 176(sp)",
        "fld ft8, 184(sp)",
        "fld ft9, 192(sp)",
        "fld ft10, 200(sp)",
        "fld ft11, 208(sp)",
        "fld fa0, 216(sp)",
        "fld fa1, 224(sp)",
        "fld fa2, 232(sp)",
        "fld fa3, 240(sp)",
        "fld fa4, 248(sp)",
        "fld fa5, 256(sp)",
        "fld fa6, 264(sp)",
        "fld fa7, 272(sp)",
        "addi sp, sp, 288",
        "jr t0",
        ".option pop",
        get = sym FUNCTION,
    )
}
