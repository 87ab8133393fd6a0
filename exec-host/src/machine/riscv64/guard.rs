//! Entering and leaving on RISC-V (psABI, "Procedure Calling Convention": what a call must preserve).

use core::arch::naked_asm;
use core::ffi::c_void;

use crate::guard::frame::Frame;
pub(crate) use crate::guard::frame::handler;

/// Where Linux has the registers of a thread that it stopped: `pc` in place of `x0`, then the others by their numbers.
const PC: usize = 0;
const SP: usize = 2;

/// Calls `call(data)`, and returns after it or after [`leave`].
///
/// # Safety
/// As [`call`](crate::guard::call); the frame stays where it is until this returns.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter(
    frame: *mut Frame,
    call: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) {
    naked_asm!(
        ".option push",
        ".option arch, +d",
        "addi sp, sp, -208",
        "sd ra, 0(sp)",
        "sd s0, 8(sp)",
        "sd s1, 16(sp)",
        "sd s2, 24(sp)",
        "sd s3, 32(sp)",
        "sd s4, 40(sp)",
        "sd s5, 48(sp)",
        "sd s6, 56(sp)",
        "sd s7, 64(sp)",
        "sd s8, 72(sp)",
        "sd s9, 80(sp)",
        "sd s10, 88(sp)",
        "sd s11, 96(sp)",
        "fsd fs0, 104(sp)",
        "fsd fs1, 112(sp)",
        "fsd fs2, 120(sp)",
        "fsd fs3, 128(sp)",
        "fsd fs4, 136(sp)",
        "fsd fs5, 144(sp)",
        "fsd fs6, 152(sp)",
        "fsd fs7, 160(sp)",
        "fsd fs8, 168(sp)",
        "fsd fs9, 176(sp)",
        "fsd fs10, 184(sp)",
        "fsd fs11, 192(sp)",
        "frcsr t0",
        "sd t0, 200(sp)",
        "sd sp, 0(a0)",
        "mv a0, a2",
        "jalr a1",
        "tail {back}",
        ".option pop",
        back = sym back,
    )
}

/// Gives the registers back that [`enter`] has put where the stack pointer is now, and returns from it.
#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!(
        ".option push",
        ".option arch, +d",
        "ld t0, 200(sp)",
        "fscsr t0",
        "ld ra, 0(sp)",
        "ld s0, 8(sp)",
        "ld s1, 16(sp)",
        "ld s2, 24(sp)",
        "ld s3, 32(sp)",
        "ld s4, 40(sp)",
        "ld s5, 48(sp)",
        "ld s6, 56(sp)",
        "ld s7, 64(sp)",
        "ld s8, 72(sp)",
        "ld s9, 80(sp)",
        "ld s10, 88(sp)",
        "ld s11, 96(sp)",
        "fld fs0, 104(sp)",
        "fld fs1, 112(sp)",
        "fld fs2, 120(sp)",
        "fld fs3, 128(sp)",
        "fld fs4, 136(sp)",
        "fld fs5, 144(sp)",
        "fld fs6, 152(sp)",
        "fld fs7, 160(sp)",
        "fld fs8, 168(sp)",
        "fld fs9, 176(sp)",
        "fld fs10, 184(sp)",
        "fld fs11, 192(sp)",
        "addi sp, sp, 208",
        "ret",
        ".option pop",
    )
}

/// Where the thread was stopped.
///
/// # Safety
/// The context is one that the kernel gave to a handler.
pub(crate) unsafe fn instruction(context: *mut libc::ucontext_t) -> u64 {
    // SAFETY: as the caller says.
    unsafe { (*context).uc_mcontext.__gregs[PC] }
}

/// Lets the thread go on behind the call that [`enter`] has made.
///
/// # Safety
/// As [`instruction`]; `stack` is what `enter` wrote, and `enter` has not returned.
pub(crate) unsafe fn leave(context: *mut libc::ucontext_t, stack: u64) {
    let code = (back as *const ()).expose_provenance() as u64;
    // SAFETY: as the caller says.
    unsafe {
        (*context).uc_mcontext.__gregs[SP] = stack;
        (*context).uc_mcontext.__gregs[PC] = code;
    }
}
