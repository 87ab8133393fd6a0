//! Windows lets nobody make a file shorter that is mapped.

use std::path::Path;

/// There is nothing to watch.
#[derive(Debug)]
pub(super) struct Watch;

impl Watch {
    pub(super) const fn new(_bytes: &[u8], _path: &Path) -> Option<Self> {
        Some(Self)
    }
}
