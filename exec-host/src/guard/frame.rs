//! Where a guarded call was made.

use core::sync::atomic::AtomicPtr;
use exec_core::Signal;

/// What handles signals, for the machine's code to call.
pub(crate) static HANDLE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

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
