//! Handlers that were there before ours, and those that came later: what they do with a signal that is not ours.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;

use crate::machine::guard as machine;

/// How many signals there are.
pub(super) const SIGNALS: usize = 5;
/// How many handlers of a signal are remembered.
const MOST: usize = 8;

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What handled a signal before us, the latest last: a handler's address, `SIG_DFL` or `SIG_IGN`. A handler that takes one argument
/// does not look at the others.
struct Before {
    actions: [AtomicUsize; MOST],
    number: AtomicUsize,
}

static BEFORE: [Before; SIGNALS] = [const {
    Before {
        actions: [const { AtomicUsize::new(libc::SIG_DFL) }; MOST],
        number: AtomicUsize::new(0),
    }
}; SIGNALS];

/// A signal that this thread passes on.
#[derive(Clone, Copy)]
struct Passed {
    info: *mut libc::siginfo_t,
    /// Where our handler's frame is: one that is deeper in the stack was called from there.
    frame: usize,
    /// Handlers that have had it.
    depth: usize,
}

thread_local! {
    /// The latest. A handler that came after ours may pass the signal back to us, or never return.
    static PASSED: Cell<Passed> = const { Cell::new(Passed { info: ptr::null_mut(), frame: 0, depth: 0 }) };
}

/// Puts our handler in front, and remembers the one that was there.
///
/// # Errors
/// What the system says.
pub(super) fn enter(index: usize, signal: c_int) -> io::Result<()> {
    let current = action(signal)?;
    let Some(before) = BEFORE.get(index).filter(|_| current.sa_sigaction != ours()) else {
        return Ok(());
    };
    // known before the first signal can come
    let number = before.number.load(Ordering::Acquire);
    let place = before.actions.get(number).ok_or_else(|| io::Error::other("too many handlers"))?;
    place.store(current.sa_sigaction, Ordering::Release);
    before.number.store(number.saturating_add(1), Ordering::Release);
    put_in_front(signal)
}

/// Our handler's address.
fn ours() -> usize {
    (machine::handler as *const ()).expose_provenance()
}

/// An action that does what the system does of itself.
fn default() -> libc::sigaction {
    // SAFETY: zeros are `SIG_DFL`, no flags, no signals masked, no restorer.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// What is done with a signal now.
fn action(signal: c_int) -> io::Result<libc::sigaction> {
    let mut current = default();
    // SAFETY: asks only.
    match unsafe { libc::sigaction(signal, ptr::null(), &raw mut current) } {
        0 => Ok(current),
        _ => Err(io::Error::last_os_error()),
    }
}

fn put_in_front(signal: c_int) -> io::Result<()> {
    let mut action = default();
    action.sa_sigaction = ours();
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the type that `SA_SIGINFO` asks for and does only what a handler may.
    match unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Does with a signal what was done before we came.
///
/// # Safety
/// The arguments are those of a handler.
pub(super) unsafe fn pass_on(
    index: usize,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let passed = PASSED.get();
    let here = 0u8;
    let frame = (&raw const here).addr();
    let is_back = passed.info == info && frame < passed.frame;
    let depth = if is_back { passed.depth } else { 0 };
    let place = BEFORE.get(index).and_then(|before| {
        let last = before.number.load(Ordering::Acquire).checked_sub(1)?;
        before.actions.get(last.checked_sub(depth)?)
    });
    let code = place.map_or(libc::SIG_DFL, |place| place.load(Ordering::Acquire));
    // SAFETY: the description is valid.
    let is_sent = unsafe { (*info).si_code <= 0 };
    match code {
        libc::SIG_IGN if is_sent => {}
        // nobody can ignore a fault
        libc::SIG_DFL | libc::SIG_IGN => {
            let default = default();
            // SAFETY: the same signal once more, as it was, for the system to do what it does: it comes when this handler is over.
            // Sending it to oneself like this is allowed whoever has sent it; a fault without it would come again, a trap would not.
            unsafe {
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                let thread = rustix::thread::gettid().as_raw_nonzero().get();
                let process = libc::getpid();
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
            }
        }
        code => {
            PASSED.set(Passed { info, frame, depth: depth.saturating_add(1) });
            let code = ptr::with_exposed_provenance::<()>(code);
            // SAFETY: a handler is there, which takes these arguments or the first of them.
            unsafe { core::mem::transmute::<*const (), Handler>(code)(signal, info, context) };
            PASSED.set(passed);
            stay(signal, place);
        }
    }
}

/// Some handlers take themselves away when they do not know what to do, and ours with them: that of Rust's standard library does. What
/// they have put in its place takes theirs.
fn stay(signal: c_int, place: Option<&AtomicUsize>) {
    let Ok(current) = action(signal) else { return };
    if current.sa_sigaction != ours()
        && let Some(place) = place
    {
        place.store(current.sa_sigaction, Ordering::Release);
        let _ = put_in_front(signal);
    }
}
