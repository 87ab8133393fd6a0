//! What an image is known by in a cache.

use alloc::string::String;
use core::fmt;

use sha2::{Digest as _, Sha256};

/// Everything but the source that an image depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity<'a> {
    /// Which compiler.
    pub name: &'a str,
    /// Its version, in its own words.
    pub version: &'a str,
    /// What it compiles for: with the processor's features, if it uses those it finds.
    pub target: &'a str,
    /// Its options in order.
    pub options: &'a [String],
}

/// SHA-256 of everything that an image depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

/// Changes when the meaning of the parts does.
const FORMAT: &[u8] = b"hoist image 1";

impl Key {
    /// The key of what a compiler makes of a source.
    #[must_use]
    pub fn of(identity: &Identity<'_>, source: &str) -> Self {
        Self::of_identity(identity).with(source)
    }

    /// The key of a compiler, for those who ask for many sources [`with`](Self::with) it.
    #[must_use]
    pub fn of_identity(identity: &Identity<'_>) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            // with its length, so that no two lists of parts are the same bytes
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(FORMAT);
        part(identity.name.as_bytes());
        part(identity.version.as_bytes());
        part(identity.target.as_bytes());
        identity.options.iter().for_each(|option| part(option.as_bytes()));
        Self(hash.finalize().into())
    }

    /// The key of what the compiler of this key makes of a source.
    #[must_use]
    pub fn with(&self, source: &str) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(source).finalize().into())
    }

    /// The key that has these bytes.
    #[cfg(feature = "disk")]
    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_part_counts() {
        let options = [String::from("-O2"), String::from("-fPIC")];
        let joined = [String::from("-O2-fPIC")];
        let base = Identity { name: "cc", version: "1", target: "x", options: &options };
        let keys: BTreeSet<_> = [
            Key::of(&base, "a"),
            Key::of(&base, "b"),
            Key::of(&Identity { name: "cc1", version: "", ..base }, "a"),
            Key::of(&Identity { version: "2", ..base }, "a"),
            Key::of(&Identity { target: "y", ..base }, "a"),
            Key::of(&Identity { options: &joined, ..base }, "a"),
            Key::of(&Identity { options: &options[..1], ..base }, "-fPICa"),
            Key::of(&Identity { options: &[], ..base }, "a"),
        ]
        .into();
        assert_eq!(keys.len(), 8);
        assert_eq!(Key::of(&base, "a"), Key::of(&base, "a"));
    }
}
