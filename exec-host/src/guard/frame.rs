//! Where a guarded call was made.

#[cfg(not(target_arch = "x86_64"))]
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;
#[cfg(not(target_arch = "x86_64"))]
use core::sync::atomic::Ordering;
use exec_core::Signal;

/// What handles signals, for the machine's code to call.
pub(crate) static HANDLE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// The handler, where the kernel leaves nothing in the processor's state that is in its way: goes on to [`HANDLE`].
///
/// # Safety
/// The arguments are those of a handler.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe extern "C" fn handler(
    number: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let code = HANDLE.load(Ordering::Acquire).cast_const();
    // SAFETY: a function of this type was stored before the first signal could come.
    unsafe { core::mem::transmute::<*const (), Handler>(code)(number, info, context) };
}

/// What stopped a guarded call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) signal: Signal,
    /// What the kernel says the fault is about.
    pub(crate) address: u64,
    pub(crate) instruction: u64,
}

/// Where a guarded call was made, and what stopped it. Its first field is what the machine's code writes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) stack: u64,
    pub(crate) fault: Option<Fault>,
    /// The process that made the call: a child that is forked inside of it is not to come out of it a second time.
    pub(crate) process: i32,
}
