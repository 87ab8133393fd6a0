//! The index of Arm's unwinding tables, once it is placed.

use core::num::NonZeroU32;

/// Size of an entry in bytes.
pub(crate) const ENTRY: u64 = 8;

/// The sections that make the index, and what stands behind some of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnwindIndex {
    /// The first section.
    pub(crate) first: NonZeroU32,
    /// The first one behind that is none of the index.
    pub(crate) behind: Option<NonZeroU32>,
    /// Bytes from the start of the group to its end.
    pub(crate) end: u64,
}
