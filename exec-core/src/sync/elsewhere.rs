//! Where processes do not fork.

/// While this lives, no other thread forks.
#[derive(Debug)]
#[must_use]
pub struct Held;

/// Keeps others from forking for a few steps.
pub const fn hold() -> Held {
    Held
}

/// How many forks lie between the first process and this one.
pub const fn generation() -> u32 {
    0
}
