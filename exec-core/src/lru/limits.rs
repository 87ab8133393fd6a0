//! How much is kept.

/// How much freed memory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes.
    pub bytes: u64,
    /// Pieces.
    pub number: usize,
}
