//! Entering and leaving on Arm (AAPCS32, "Core registers", "VFP register usage": what a call must preserve).

use core::arch::naked_asm;
use core::ffi::c_void;

use crate::guard::frame::Frame;
pub(crate) use crate::guard::frame::handler;

/// Parts of the processor's state (`CPSR`) that say how instructions are read: Thumb, and where in a block of conditional instructions the thread is.
const THUMB: libc::c_ulong = 1 << 5;
const CONDITIONAL: libc::c_ulong = 0x0600_fc00;

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
        "push {{r4, r5, r6, r7, r8, r9, r10, r11, ip, lr}}",
        "vpush {{d8-d15}}",
        "vmrs r3, fpscr",
        "push {{r3, ip}}",
        "str sp, [r0]",
        "mov r0, r2",
        "blx r1",
        "b {back}",
        back = sym back,
    )
}

/// Gives the registers back that [`enter`] has put where the stack pointer is now, and returns from it.
#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!(
        "pop {{r3, ip}}",
        "vmsr fpscr, r3",
        "vpop {{d8-d15}}",
        "pop {{r4, r5, r6, r7, r8, r9, r10, r11, ip, pc}}",
    )
}

/// Where the thread was stopped.
///
/// # Safety
/// The context is one that the kernel gave to a handler.
pub(crate) unsafe fn instruction(context: *mut libc::ucontext_t) -> u64 {
    // SAFETY: as the caller says.
    u64::from(unsafe { (*context).uc_mcontext.arm_pc })
}

/// Lets the thread go on behind the call that [`enter`] has made.
///
/// # Safety
/// As [`instruction`]; `stack` is what `enter` wrote, and `enter` has not returned.
pub(crate) unsafe fn leave(context: *mut libc::ucontext_t, stack: u64) {
    let code = (back as *const ()).expose_provenance() as libc::c_ulong;
    // SAFETY: as the caller says.
    unsafe {
        let registers = &mut (*context).uc_mcontext;
        registers.arm_sp = stack as libc::c_ulong;
        registers.arm_pc = code & !1;
        registers.arm_cpsr &= !(THUMB | CONDITIONAL);
        registers.arm_cpsr |= if code & 1 != 0 { THUMB } else { 0 };
    }
}
