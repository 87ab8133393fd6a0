//! Bytes that have several owners.

use core::fmt;
use core::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of an object, or of a member of an archive, which they keep as a whole. Clones are the same bytes.
#[derive(Clone)]
pub struct SharedBytes {
    all: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl SharedBytes {
    /// All that `bytes` are: `Vec<u8>`, `&'static [u8]`, a mapped file.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..bytes.as_ref().len();
        Self { all: Arc::new(bytes), range }
    }

    /// These of them; none that are not there.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let start = self.range.start.saturating_add(range.start);
        let end = self.range.start.saturating_add(range.end).min(self.range.end);
        Self { all: Arc::clone(&self.all), range: start..end }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.all).as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Arc<[u8]>> for SharedBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::new(bytes)
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl From<&[u8]> for SharedBytes {
    /// A copy of them.
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec())
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedBytes").field(&self.len()).finish()
    }
}
