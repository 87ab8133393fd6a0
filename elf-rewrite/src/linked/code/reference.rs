//! Code that is examined, and what is found in it.

use super::super::moves::Move;

/// Code that lies at `address`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) address: u64,
    /// Whether the program is at fixed addresses.
    pub(super) fixed: bool,
}

/// An instruction that refers to a region that moves, or may do so.
#[derive(Debug)]
pub(super) struct Referring<'m> {
    pub(super) address: u64,
    pub(super) text: String,
    pub(super) to: &'m Move,
}
