//! Calls that survive a crash of what they call.
//!
//! A signal handler looks whether the thread is inside of a guarded call, and if so lets it go on where that call was made,
//! with the registers and the stack it had there. Nothing between is unwound: what the crashed code had locked stays locked, what
//! it was changing stays half changed, what it had allocated stays allocated.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::io;
use std::sync::OnceLock;

use exec_core::Signal;

use crate::machine::guard as machine;

pub(crate) mod frame;
mod stack;

pub(crate) use frame::Fault;
use frame::Frame;

thread_local! {
    /// The guarded call that this thread is in.
    static FRAME: Cell<*mut Frame> = const { Cell::new(ptr::null_mut()) };
}

/// Signals and what they mean.
const SIGNALS: [(c_int, Signal); 5] = [
    (libc::SIGSEGV, Signal::Access),
    (libc::SIGBUS, Signal::Bus),
    (libc::SIGILL, Signal::Instruction),
    (libc::SIGTRAP, Signal::Instruction),
    (libc::SIGFPE, Signal::Arithmetic),
];

/// What handled the signals before us.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Puts the handler in front of those there are. It stays until the process ends.
pub(crate) fn install() -> io::Result<()> {
    static OUTCOME: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        let code = || io::Error::last_os_error().raw_os_error().unwrap_or_default();
        let mut before = [default(); SIGNALS.len()];
        for (before, (signal, _)) in before.iter_mut().zip(SIGNALS) {
            // SAFETY: asks only.
            if unsafe { libc::sigaction(signal, ptr::null(), before) } != 0 {
                return Err(code());
            }
        }
        // known before the first signal can come
        let _ = BEFORE.set(before);
        let mut action = default();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for (signal, _) in SIGNALS {
            // SAFETY: the handler has the type that `SA_SIGINFO` asks for and does only what a handler may.
            if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
                return Err(code());
            }
        }
        Ok(())
    };
    OUTCOME.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

/// An action that does what the system does of itself.
fn default() -> libc::sigaction {
    // SAFETY: zeros are `SIG_DFL`, no flags, no signals masked, no restorer.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Calls `call(data)`. If it is stopped by a signal, says which.
///
/// # Safety
/// [`install`] was successful. `call` may be called with `data`; if it does not return, nothing that it had begun needs an end:
/// no frame of Rust between here and the fault has anything to drop.
pub(crate) unsafe fn call(
    call: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> Result<(), Fault> {
    stack::ensure();
    let mut frame = Frame { stack: 0, fault: None };
    let outer = FRAME.replace(&raw mut frame);
    // SAFETY: the frame lives until after the call; the caller vouches for the rest.
    unsafe { machine::enter(&raw mut frame, call, data) };
    FRAME.set(outer);
    // SAFETY: written by the handler of this thread at the most, which is over.
    match unsafe { (&raw const frame.fault).read_volatile() } {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

unsafe extern "C" fn handler(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let frame = FRAME.get();
    let signal = SIGNALS.iter().find(|(known, _)| *known == number).map(|(_, signal)| *signal);
    // SAFETY: the kernel gives a valid description.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr() as u64) };
    let (Some(signal), true) = (signal, is_fault && !frame.is_null()) else {
        // SAFETY: passes on what we were given.
        return unsafe { pass_on(number, info, context) };
    };
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the context is that of this thread, which is inside of the call that the frame is of.
    unsafe {
        let instruction = machine::instruction(context);
        (*frame).fault = Some(Fault { signal, address, instruction });
        // the frame's part is over: a fault on the way back is nobody's but ours
        FRAME.set(ptr::null_mut());
        machine::leave(context, (*frame).stack);
    }
}

/// Does with a signal what was done before we came.
///
/// # Safety
/// The arguments are those of a handler.
unsafe fn pass_on(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = SIGNALS.iter().position(|(known, _)| *known == number);
    let before = index.and_then(|index| BEFORE.get()?.get(index).copied()).unwrap_or_else(default);
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: puts the action back. A fault comes again when we return, and a signal that was sent is sent again.
            unsafe {
                libc::sigaction(number, &raw const before, ptr::null_mut());
                if (*info).si_code <= 0 {
                    libc::raise(number);
                }
            }
        }
        code if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            let code = ptr::with_exposed_provenance::<()>(code);
            // SAFETY: a handler of this type was installed before ours.
            unsafe { core::mem::transmute::<*const (), Handler>(code)(number, info, context) };
        }
        code => {
            let code = ptr::with_exposed_provenance::<()>(code);
            // SAFETY: a handler of this type was installed before ours.
            unsafe { core::mem::transmute::<*const (), unsafe extern "C" fn(c_int)>(code)(number) };
        }
    }
}
