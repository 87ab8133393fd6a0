//! A stack for the handler: the thread's own may be what has overflowed.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Bytes: the kernel's frame alone has 11 KiB with AVX-512 and AMX.
const SIZE: usize = 1 << 16;

/// A stack for signals of this thread.
struct Stack(*mut c_void);

thread_local! {
    static STACK: Option<Stack> = Stack::new();
}

/// Gives the thread a stack for signals, unless it has one. Without memory it stays without: then overflows of the stack
/// are not caught, all else is.
pub(super) fn ensure() {
    // of a thread that ends there is nothing to ensure any more
    let _ = STACK.try_with(|_| ());
}

/// A description that says nothing.
fn none() -> libc::stack_t {
    // SAFETY: a null pointer and numbers.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

impl Stack {
    /// None if the thread has one already, as those of Rust's standard library do.
    fn new() -> Option<Self> {
        let mut current = none();
        // SAFETY: asks only.
        let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut current) };
        if asked != 0 || current.ss_flags & libc::SS_DISABLE == 0 {
            return None;
        }
        // SAFETY: touches no existing mapping.
        let memory = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let stack = Self(memory.ok()?);
        let description = libc::stack_t { ss_sp: stack.0, ss_flags: 0, ss_size: SIZE };
        // SAFETY: the memory is ours as long as the thread has it as its stack.
        let set = unsafe { libc::sigaltstack(&raw const description, ptr::null_mut()) };
        (set == 0).then_some(stack)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let mut off = none();
        off.ss_flags = libc::SS_DISABLE;
        // SAFETY: nothing runs on it: handlers are over when a thread ends.
        unsafe {
            libc::sigaltstack(&raw const off, ptr::null_mut());
            let _ = munmap(self.0, SIZE);
        }
    }
}
