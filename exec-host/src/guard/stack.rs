//! A stack for the handler: the thread's own may be what has overflowed.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Bytes: the kernel's frame alone has 11 KiB with AVX-512 and AMX.
const SIZE: usize = 1 << 16;

/// A stack for signals of this thread.
struct Stack {
    start: *mut c_void,
    /// What the thread had before: nothing, or one that is too small.
    before: libc::stack_t,
}

thread_local! {
    static STACK: Option<Stack> = Stack::new();
}

/// Gives the thread a stack for signals, unless it has one that is large enough. Without memory it stays without: then overflows of the
/// stack are not caught, all else is.
pub(super) fn ensure() {
    // of a thread that ends there is nothing to ensure any more
    let _ = STACK.try_with(|_| ());
}

/// What the thread has.
fn current() -> Option<libc::stack_t> {
    // SAFETY: a null pointer and numbers.
    let mut current = unsafe { MaybeUninit::<libc::stack_t>::zeroed().assume_init() };
    // SAFETY: asks only.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut current) };
    (asked == 0).then_some(current)
}

/// What our handler needs beside the kernel's frame, in bytes.
const NEEDED: usize = 4096;

/// Whether our handler can run on a stack, with handlers of others behind it.
fn is_enough(stack: &libc::stack_t) -> bool {
    // SAFETY: asks only; 0 if the kernel does not say.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let frame = frame.max(libc::MINSIGSTKSZ);
    stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_size >= frame.saturating_add(NEEDED)
}

impl Stack {
    /// None if the thread has one already, as those of Rust's standard library do.
    fn new() -> Option<Self> {
        let before = current().filter(|current| !is_enough(current))?;
        // SAFETY: touches no existing mapping.
        let memory = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let stack = Self { start: memory.ok()?, before };
        let description = libc::stack_t { ss_sp: stack.start, ss_flags: 0, ss_size: SIZE };
        // SAFETY: the memory is ours as long as the thread has it as its stack. The system refuses while a handler runs on the other one.
        let set = unsafe { libc::sigaltstack(&raw const description, ptr::null_mut()) };
        (set == 0).then_some(stack)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: nothing runs on it: handlers are over when a thread ends. Who has put another one there keeps that.
        unsafe {
            if current().is_some_and(|current| current.ss_sp == self.start) {
                libc::sigaltstack(&raw const self.before, ptr::null_mut());
            }
            let _ = munmap(self.start, SIZE);
        }
    }
}
