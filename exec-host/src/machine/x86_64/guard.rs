//! Entering and leaving on x86-64 (psABI 3.2.1: what a call must preserve).

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

use crate::guard::frame::{Frame, HANDLE};

/// What code leaves behind in `RFLAGS` that stops others (Intel SDM 3.4.3): steps (TF), string instructions that go downwards (DF), nested
/// tasks (NT), and alignment checks (AC), which make every access to odd addresses a signal.
const FLAGS: u32 = 1 << 8 | 1 << 10 | 1 << 14 | 1 << 18;

/// The handler: Linux leaves alignment checks on for it. It goes on to [`HANDLE`].
///
/// # Safety
/// The arguments are those of a handler.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn handler(
    number: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    naked_asm!(
        "pushfq",
        "and dword ptr [rsp], {keep}",
        "popfq",
        "jmp qword ptr [rip + {handle}]",
        keep = const !FLAGS,
        handle = sym HANDLE,
    )
}

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
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8", // aligned to 16 again, and room for the control words
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi], rsp",
        "mov rdi, rdx",
        "call rsi",
        "jmp {back}",
        back = sym back,
    )
}

/// Gives the registers back that [`enter`] has put where the stack pointer is now, and returns from it.
#[unsafe(naked)]
unsafe extern "C" fn back() {
    naked_asm!(
        "fninit", // the crashed code may have left values
        "fldcw [rsp + 4]",
        "ldmxcsr [rsp]",
        "pushfq",
        "test dword ptr [rsp], {flags}",
        "jz 2f",
        "and dword ptr [rsp], {keep}",
        "popfq",
        "sub rsp, 8",
        "2:",
        "add rsp, 16",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        flags = const FLAGS,
        keep = const !FLAGS,
    )
}

fn register(context: *mut libc::ucontext_t, which: core::ffi::c_int) -> *mut i64 {
    // SAFETY: points into the context, which the caller got from the kernel.
    let registers = unsafe { (&raw mut (*context).uc_mcontext.gregs).cast::<i64>() };
    registers.wrapping_add(which.unsigned_abs() as usize)
}

/// Where the thread was stopped.
///
/// # Safety
/// The context is one that the kernel gave to a handler.
pub(crate) unsafe fn instruction(context: *mut libc::ucontext_t) -> u64 {
    // SAFETY: as the caller says.
    unsafe { register(context, libc::REG_RIP).read().cast_unsigned() }
}

/// Lets the thread go on behind the call that [`enter`] has made.
///
/// # Safety
/// As [`instruction`]; `stack` is what `enter` wrote, and `enter` has not returned.
pub(crate) unsafe fn leave(context: *mut libc::ucontext_t, stack: u64) {
    let code = (back as *const ()).expose_provenance() as u64;
    // SAFETY: as the caller says.
    unsafe {
        register(context, libc::REG_RSP).write(stack.cast_signed());
        register(context, libc::REG_RIP).write(code.cast_signed());
        let flags = register(context, libc::REG_EFL);
        flags.write(flags.read() & !i64::from(FLAGS));
    }
}
