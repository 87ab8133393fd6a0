//! The bytes of files, where no file can be mapped: they are lent.

use core::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::lent::{self, Slices};

/// The bytes of a file.
#[derive(Debug)]
pub struct Mapped(Content);

#[derive(Debug)]
enum Content {
    Read(Vec<u8>),
    Lent(Arc<Slices>),
}

impl Mapped {
    /// A file that is lent.
    ///
    /// # Errors
    /// If there is none of this name, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let found = lent::open(path)?;
        found
            .map(|lent| Self(Content::Lent(lent)))
            .with_context(|| format!("{}: no such file", path.display()))
    }

    /// What was read of a file that is lent.
    #[cfg(feature = "device-code")]
    pub(crate) fn lent(slices: Slices) -> Self {
        Self(Content::Lent(Arc::new(slices)))
    }

    /// Bytes that are in memory anyway.
    #[must_use]
    pub const fn of(bytes: Vec<u8>) -> Self {
        Self(Content::Read(bytes))
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Content::Read(bytes) => bytes,
            Content::Lent(lent) => lent.bytes(),
        }
    }

    /// Says that a range will be read: it is there.
    pub const fn will_read(&self, _range: Range<u64>) {}

    /// The same.
    pub const fn reads(&self, _range: Range<u64>) {}

    /// Says that a range is done with: it stays for the next command.
    pub const fn done_with(&self, _range: Range<u64>) {}
}
