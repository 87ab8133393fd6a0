//! Files that become shorter while they are mapped: an error in place of SIGBUS.
//!
//! A page of a mapping behind the end of its file cannot be had, and the system says so with a signal where the page is looked at.
//! There is no going back from there: the handler writes one line and ends the process. What was being written has no name yet, so
//! that nothing half is left.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::path::Path;
use std::sync::Once;

use crate::printable::Printable;

/// Mappings that are watched at a time.
const MOST: usize = 256;

struct Slot {
    /// Address of the first byte; 0 if the slot is free.
    start: AtomicUsize,
    end: AtomicUsize,
    /// What is said, which lives as long as the process.
    message: AtomicPtr<u8>,
    size: AtomicUsize,
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        message: AtomicPtr::new(ptr::null_mut()),
        size: AtomicUsize::new(0),
    }
}; MOST];

/// Watches a mapping until it is dropped.
#[derive(Debug)]
pub(super) struct Watch(usize);

impl Watch {
    /// Watches the bytes of the file at `path`; none if too many are watched already.
    pub(super) fn new(bytes: &[u8], path: &Path) -> Option<Self> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(handle);
        let (start, size) = (bytes.as_ptr().addr(), bytes.len());
        // taken, and in no page's range before the end is there
        let take = |slot: &Slot| {
            let (free, taken) = (0, start.max(1));
            slot.start.compare_exchange(free, taken, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let index = SLOTS.iter().position(take)?;
        let slot = SLOTS.get(index)?;
        let path = path.display().to_string();
        let text =
            format!("hoist: {}: has become shorter while it was read\n", Printable::from(&*path));
        let message: &'static mut [u8] = Box::leak(text.into_bytes().into_boxed_slice());
        slot.size.store(message.len(), Ordering::Relaxed);
        slot.message.store(message.as_mut_ptr(), Ordering::Relaxed);
        slot.end.store(start.saturating_add(size), Ordering::Release);
        Some(Self(index))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(slot) = SLOTS.get(self.0) {
            slot.end.store(0, Ordering::Release);
            slot.start.store(0, Ordering::Release);
        }
    }
}

/// Has the system call [`cut`].
fn handle() {
    // SAFETY: zeros are a valid `sigaction`: no flags, an empty set.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = (cut as *const ()).expose_provenance();
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the action is valid, and its function does only what signal handlers may.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
}

extern "C" fn cut(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system gives a valid description.
    let address = unsafe { (*info).si_addr() }.addr();
    let holds = |slot: &&Slot| {
        let end = slot.end.load(Ordering::Acquire);
        (slot.start.load(Ordering::Acquire)..end).contains(&address)
    };
    if let Some(slot) = SLOTS.iter().find(holds) {
        let (message, size) =
            (slot.message.load(Ordering::Relaxed), slot.size.load(Ordering::Relaxed));
        // SAFETY: the message has so many bytes and is never freed; both functions may be called here.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.cast(), size);
            libc::_exit(1);
        }
    }
    // not ours: the instruction is run again and ends the process as without a handler
    // SAFETY: the default action is always valid.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}
