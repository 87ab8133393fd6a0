//! Where a guarded call was made.

use exec_core::Signal;

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
}
