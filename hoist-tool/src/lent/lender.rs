//! Who has files that are lent.

use core::fmt::Debug;

use anyhow::Result;

/// The most that is asked for at once.
pub(super) const STEP: usize = 32 << 20;

/// Who has a file.
pub trait Lender: Debug + Send + Sync {
    /// Its size.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes from `at` on.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;
}
