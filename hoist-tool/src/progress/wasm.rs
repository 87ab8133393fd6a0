//! How far work is, where there is no terminal to show it.

/// Work that goes on.
#[derive(Debug)]
pub struct Progress;

impl Progress {
    /// Work on so many bytes.
    #[must_use]
    pub const fn of_bytes(_total: u64) -> Self {
        Self
    }

    /// So many bytes more are done.
    pub const fn advance(&self, _bytes: u64) {}

    /// Does what may print.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        print()
    }
}

/// Does work that may be long.
pub fn during<T>(_what: &'static str, work: impl FnOnce() -> T) -> T {
    work()
}
