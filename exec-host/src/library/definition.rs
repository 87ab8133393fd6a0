//! What a symbol was found to be.

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// At an address; 0 if it is asked for weakly and nobody has it.
    Address(u64),
    /// Where the resolver at this address says (`STT_GNU_IFUNC`).
    Indirect(u64),
    /// A thread-local variable.
    ThreadLocal {
        /// The number by which `__tls_get_addr` knows its block.
        module: u64,
        /// Its offset there.
        offset: u64,
        /// From the thread pointer, if that is the same in every thread.
        tp_offset: Option<i64>,
    },
}
