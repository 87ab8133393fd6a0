//! What a device sets aside for kernels.

/// What a device sets aside for what kernels do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NvLimit {
    /// Bytes of stack of a thread where the image does not say how much it takes.
    Stack = 0,
    /// Bytes for what `printf` of kernels writes before somebody reads it, which is when a queue is synchronized: the oldest lines are lost
    /// when there are more.
    PrintfFifo = 1,
    /// Bytes that `malloc` of kernels has.
    MallocHeap = 2,
    /// How deep kernels that launch kernels may wait for each other.
    SyncDepth = 3,
    /// Launches of kernels by kernels that may wait.
    PendingLaunches = 4,
    /// Bytes that the level 2 cache fetches at once, a hint.
    L2Fetch = 5,
    /// Bytes of the level 2 cache for what stays there.
    PersistingL2 = 6,
}
