//! How much a command may take and write for what a file asks for: a small file may ask for any amount.

use core::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

use crate::number::number;

/// How much may be taken, in the words of the command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Limits {
    /// The most bytes to take or write for what files ask for: decimal, or hexadecimal after 0x; otherwise what the size of the
    /// files explains.
    #[arg(long, value_name = "BYTES", value_parser = number)]
    pub limit: Option<u64>,
    /// Opens the files that a thin archive names wherever they are, not only in its folder and below.
    #[arg(long)]
    pub thin_anywhere: bool,
}

/// Bytes that the entries of a file may unpack to, whatever its size.
pub const FLOOR: u64 = 1 << 28;
/// How many times the bytes of a file its entries may unpack to, beyond that: more than real ones do.
pub const TIMES: u64 = 64;

/// What is left to be taken.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    left: AtomicU64,
}

impl Budget {
    /// At most `limit` bytes; without one, `floor` and `times` the size of the input.
    #[must_use]
    pub fn new(limit: Option<u64>, floor: u64, times: u64, input: u64) -> Self {
        let limit = limit.unwrap_or(input.saturating_mul(times).saturating_add(floor));
        Self { limit, left: AtomicU64::new(limit) }
    }

    /// Bytes that may be taken in all.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes bytes for `what`.
    ///
    /// # Errors
    /// If there are not so many left: what asked.
    pub fn take(&self, what: impl Display, bytes: u64) -> Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(left) => bail!(
                "{what} asks for {bytes} bytes, and {left} are left of the limit of {} (--limit)",
                self.limit
            ),
        }
    }
}

/// A writer that takes what it writes from a budget.
pub struct Metered<'b, 'o> {
    budget: &'b Budget,
    out: &'o mut dyn Write,
}

impl<'b, 'o> Metered<'b, 'o> {
    /// Writes to `out` as long as something is left.
    pub fn new(budget: &'b Budget, out: &'o mut dyn Write) -> Self {
        Self { budget, out }
    }
}

impl Write for Metered<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let limit = self.budget.limit();
        if self.budget.take("", bytes.len() as u64).is_err() {
            let message = format!("more than {limit} bytes are to be printed of it (--limit)");
            return Err(io::Error::other(message));
        }
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone() {
        let budget = Budget::new(None, 10, 2, 20);
        assert!(budget.limit() == 50 && budget.take("a", 45).is_ok() && budget.left() == 5);
        let error = budget.take("section .bss", 6).unwrap_err().to_string();
        let message = "section .bss asks for 6 bytes, and 5 are left of the limit of 50 (--limit)";
        assert_eq!(error, message);
        let mut out = Vec::new();
        let mut metered = Metered::new(&budget, &mut out);
        metered.write_all(b"12345").unwrap();
        assert!(metered.write_all(b"6").unwrap_err().to_string().contains("more than 50 bytes"));
        assert_eq!(Budget::new(Some(7), 10, 2, 20).limit(), 7);
    }
}
