//! What becomes of an entry that is to be compressed in another way.

use fatbin::{CompressionMethod, Item, RegionEntry};

use super::blob::Blob;

/// How an entry is stored from now on.
pub enum Stored<'a> {
    /// As before.
    Kept(RegionEntry<'a>),
    /// Compressed in another way.
    New {
        /// The entry as it was.
        entry: RegionEntry<'a>,
        /// What is stored.
        stored: Blob,
        /// How that is compressed, and the size that it unpacks to.
        compression: Option<(CompressionMethod, u64)>,
        /// The key with which NVIDIA's fatbinary obfuscated it, if that compressed it.
        obfuscation_key: Option<u64>,
    },
}

impl Stored<'_> {
    /// What is written of it.
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        match self {
            Self::Kept(entry) => Item::Kept(*entry),
            Self::New { entry, stored, compression, obfuscation_key } => Item::Repacked {
                entry: *entry,
                stored,
                compression: *compression,
                obfuscation_key: *obfuscation_key,
            },
        }
    }
}
