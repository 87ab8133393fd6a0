//! Calls that survive a crash of what they call.
//!
//! A signal handler looks whether the thread is inside of a guarded call, and if so lets it go on where that call was made,
//! with the registers and the stack it had there. Nothing between is unwound: what the crashed code had locked stays locked, what
//! it was changing stays half changed, what it had allocated stays allocated.
//!
//! All other signals are for those who had handlers before ([`chain`]), as if we were not there.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use exec_core::sync::Mutex;
use std::io;

use exec_core::Signal;

use crate::library::handle::keep_this_library;
use crate::machine::guard as machine;

mod chain;
pub(crate) mod frame;
mod stack;

pub(crate) use frame::Fault;
use frame::Frame;

thread_local! {
    /// The guarded call that this thread is in.
    static FRAME: Cell<*mut Frame> = const { Cell::new(ptr::null_mut()) };
}

/// Signals and what they mean.
const SIGNALS: [(c_int, Signal); chain::SIGNALS] = [
    (libc::SIGSEGV, Signal::Access),
    (libc::SIGBUS, Signal::Bus),
    (libc::SIGILL, Signal::Instruction),
    (libc::SIGTRAP, Signal::Instruction),
    (libc::SIGFPE, Signal::Arithmetic),
];

/// This process, kept where asking the system would take longer than a call.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Puts the handler in front of those there are, if it is not in front. It stays until the process ends, or somebody puts another one
/// in front, who then decides what a crash is.
///
/// # Errors
/// What the system says; more handlers in front of ours than are remembered.
pub(crate) fn install() -> io::Result<()> {
    static TURN: Mutex<bool> = Mutex::new(false);
    let mut is_told_of_forks = TURN.lock();
    if !*is_told_of_forks {
        // SAFETY: the function may be called in a child, where it stores a number.
        let outcome = unsafe { libc::pthread_atfork(None, None, Some(note_process)) };
        if outcome != 0 {
            return Err(io::Error::from_raw_os_error(outcome));
        }
        note_process();
        keep_this_library();
        *is_told_of_forks = true;
    }
    frame::HANDLE.store((handle as *const ()).cast_mut(), Ordering::Release);
    (0..).zip(SIGNALS).try_for_each(|(index, (signal, _))| chain::enter(index, signal))
}

extern "C" fn note_process() {
    PROCESS.store(process(), Ordering::Relaxed);
}

fn process() -> i32 {
    // SAFETY: asks only.
    unsafe { libc::getpid() }
}

/// Calls `call(data)`. If it is stopped by a signal, says which.
///
/// # Safety
/// [`install`] was successful. `call` may be called with `data`; if it does not return, nothing that it had begun needs an end:
/// no frame of Rust between here and the fault has anything to drop. It is not left by `longjmp`, nor by an exception.
pub(crate) unsafe fn call(
    call: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> Result<(), Fault> {
    stack::ensure();
    let mut frame = Frame { stack: 0, fault: None, process: PROCESS.load(Ordering::Relaxed) };
    let outer = FRAME.replace(&raw mut frame);
    // SAFETY: the frame lives until after the call; the caller guarantees the rest.
    unsafe { machine::enter(&raw mut frame, call, data) };
    FRAME.set(outer);
    // SAFETY: written by the handler of this thread at the most, which is over.
    match unsafe { (&raw const frame.fault).read_volatile() } {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

/// What the system calls, by way of [`machine::handler`].
///
/// # Safety
/// The arguments are those of a handler of one of [`SIGNALS`].
unsafe extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let frame = FRAME.get();
    let Some(index) = SIGNALS.iter().position(|(known, _)| *known == number) else { return };
    // SAFETY: the kernel gives a valid description.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr() as u64) };
    // SAFETY: the frame of a call that this thread is in lives as long as that.
    let is_ours = is_fault && !frame.is_null() && unsafe { (*frame).process } == process();
    let Some((_, signal)) = SIGNALS.get(index).filter(|_| is_ours) else {
        // SAFETY: passes on what we were given.
        return unsafe { chain::pass_on(index, number, info, context) };
    };
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the context is that of this thread, which is inside of the call that the frame is of.
    unsafe {
        let instruction = machine::instruction(context);
        (*frame).fault = Some(Fault { signal: *signal, address, instruction });
        // the frame's part is over: a fault on the way back is nobody's but ours
        FRAME.set(ptr::null_mut());
        machine::leave(context, (*frame).stack);
    }
}
