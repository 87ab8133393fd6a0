//! String tables: each text once.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A string table while it is made.
pub(super) struct Strings {
    bytes: Vec<u8>,
    known: BTreeMap<Vec<u8>, u32>,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::from([0]), known: BTreeMap::from([(Vec::new(), 0)]) }
    }

    /// The offset of `text`, which is added if it is not there.
    pub(super) fn add(&mut self, text: &[u8]) -> u32 {
        if let Some(&offset) = self.known.get(text) {
            return offset;
        }
        let offset = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
        self.known.insert(text.to_vec(), offset);
        offset
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
