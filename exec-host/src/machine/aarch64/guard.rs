//! Entering and leaving on AArch64 (AAPCS64 6.1: what a call must preserve).

use core::arch::naked_asm;
use core::ffi::c_void;

use crate::guard::frame::Frame;
pub(crate) use crate::guard::frame::handler;

/// The part of the processor's state that says that an indirect branch was just taken (Arm ARM D1.4, `BTYPE`).
const BTYPE: u64 = 3 << 10;

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
        "stp x29, x30, [sp, #-176]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mrs x9, fpcr",
        "str x9, [sp, #160]",
        "mov x9, sp",
        "str x9, [x0]",
        "mov x0, x2",
        "blr x1",
        "b {back}",
        back = sym back,
    )
}

/// Gives the registers back that [`enter`] has put where the stack pointer is now, and returns from it.
#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!(
        "ldr x9, [sp, #160]",
        "msr fpcr, x9",
        "ldp d14, d15, [sp, #144]",
        "ldp d12, d13, [sp, #128]",
        "ldp d10, d11, [sp, #112]",
        "ldp d8, d9, [sp, #96]",
        "ldp x27, x28, [sp, #80]",
        "ldp x25, x26, [sp, #64]",
        "ldp x23, x24, [sp, #48]",
        "ldp x21, x22, [sp, #32]",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #176",
        "ret",
    )
}

/// Where the thread was stopped.
///
/// # Safety
/// The context is one that the kernel gave to a handler.
pub(crate) unsafe fn instruction(context: *mut libc::ucontext_t) -> u64 {
    // SAFETY: as the caller says.
    unsafe { (*context).uc_mcontext.pc }
}

/// Lets the thread go on behind the call that [`enter`] has made.
///
/// # Safety
/// As [`instruction`]; `stack` is what `enter` wrote, and `enter` has not returned.
pub(crate) unsafe fn leave(context: *mut libc::ucontext_t, stack: u64) {
    let code = (back as *const ()).expose_provenance() as u64;
    // SAFETY: as the caller says.
    unsafe {
        (*context).uc_mcontext.sp = stack;
        (*context).uc_mcontext.pc = code;
        (*context).uc_mcontext.pstate &= !BTYPE;
    }
}
