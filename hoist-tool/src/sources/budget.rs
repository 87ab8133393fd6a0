//! What archives may cost: one that unpacks to more than it should is an error, not a full disk.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is unpacked at most.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Budget {
    /// The most bytes that archives may unpack to, all together: otherwise 4 GiB and 64 times their size.
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    unpack_at_most: Option<u64>,
}

impl Budget {
    /// Archives in archives, compression counted.
    pub(super) const DEPTH: usize = 12;
}

/// What is left of a budget.
#[derive(Debug)]
pub(super) struct Left {
    limit: u64,
    used: AtomicU64,
}

impl Left {
    /// Of archives of so many bytes.
    pub(super) fn new(budget: &Budget, size: u64) -> Self {
        let usual = size.saturating_mul(64).saturating_add(4 << 30);
        Self { limit: budget.unpack_at_most.unwrap_or(usual), used: AtomicU64::new(0) }
    }

    /// Counts what is read.
    pub(super) const fn counted<R: Read>(&self, reader: R) -> Counted<'_, R> {
        Counted { reader, left: self }
    }
}

/// A reader of unpacked bytes.
pub(super) struct Counted<'l, R> {
    reader: R,
    left: &'l Left,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(into)?;
        let before = self.left.used.fetch_add(count as u64, Ordering::Relaxed);
        if before.saturating_add(count as u64) > self.left.limit {
            let limit = self.left.limit;
            return Err(io::Error::other(format!(
                "archives unpack to more than {limit} bytes: --unpack-at-most allows more"
            )));
        }
        Ok(count)
    }
}
