//! Names of kernels: each is kept and demangled once, though every architecture and many files have it again.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use elf_core::Name;
use serde::{Serialize, Serializer};

use crate::demangle::demangled;
use crate::printable::Printable;

/// A text that several rows share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

/// A name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelName {
    /// As it is in the symbol table: mangled. What would leave its line is escaped.
    pub name: Text,
    /// As it was in the source, if it is mangled.
    pub demangled: Option<Text>,
}

/// What a mangled name is in the source, found when it is asked for: of templates it may be ten times as long.
#[derive(Clone, Debug)]
pub struct Demangled(pub Text);

impl Demangled {
    /// The name, if it is mangled.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        KernelName::known(&self.0).demangled
    }
}

impl Serialize for Demangled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text().serialize(serializer)
    }
}

/// Tables that are locked apart.
const SHARDS: usize = 64;
/// Bytes of names that are kept at most: others are demangled anew.
const MOST: usize = 64 << 20;

type Shard = HashMap<Text, Option<Text>>;

static KNOWN: LazyLock<[Mutex<Shard>; SHARDS]> =
    LazyLock::new(|| std::array::from_fn(|_| Mutex::default()));
static KEPT: AtomicUsize = AtomicUsize::new(0);

impl KernelName {
    /// The name in a symbol table.
    #[must_use]
    pub fn of(name: Name<'_>) -> Self {
        let is_plain = name.as_bytes().iter().all(|byte| matches!(byte, b' '..=b'~'));
        match name.to_str() {
            Some(text) if is_plain => Self::known(text),
            _ => Self::known(&Printable::from(name).to_string()),
        }
    }

    /// The same of a text.
    #[must_use]
    pub fn known(text: &str) -> Self {
        let shard = shard(text);
        let kept = shard.and_then(|shard| {
            let shard = lock(shard);
            let (name, demangled) = shard.get_key_value(text)?;
            Some(Self { name: name.clone(), demangled: demangled.clone() })
        });
        if let Some(kept) = kept {
            return kept;
        }
        let found = Self { name: text.into(), demangled: demangled(text).map(Text::from) };
        let size = text.len().saturating_add(found.demangled.as_ref().map_or(0, |text| text.len()));
        if let Some(shard) = shard
            && KEPT.fetch_add(size, Ordering::Relaxed).saturating_add(size) <= MOST
        {
            lock(shard).insert(found.name.clone(), found.demangled.clone());
        }
        found
    }

    /// The name alone, for rows of which few may be shown: it is demangled by then, unless there is room for both.
    #[must_use]
    pub fn mangled(name: Name<'_>) -> Text {
        match KEPT.load(Ordering::Relaxed) > MOST {
            true => Printable::from(name).to_string().into(),
            false => Self::of(name).name,
        }
    }

    /// As people wrote it, or as it is.
    #[must_use]
    pub fn readable(&self, raw: bool) -> &str {
        self.demangled.as_deref().filter(|_| !raw).unwrap_or(&self.name)
    }
}

/// The table that a name is in: long names differ at their ends, short ones in their length.
fn shard(name: &str) -> Option<&'static Mutex<Shard>> {
    let add = |sum: usize, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
    KNOWN.get(name.bytes().rev().take(16).fold(name.len(), add) % SHARDS)
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once() {
        let (one, other) = (KernelName::known("_Z3addPfS_i"), KernelName::of(Name(b"_Z3addPfS_i")));
        assert_eq!(one, other);
        assert_eq!(
            (one.readable(false), one.readable(true)),
            ("add(float*, float*, int)", "_Z3addPfS_i")
        );
        assert!(Arc::ptr_eq(&one.name.0, &other.name.0));
        let hidden = KernelName::of(Name("a\u{202e}\n".as_bytes()));
        assert_eq!((hidden.readable(false), hidden.demangled.is_some()), (r"a\u{202e}\n", false));
    }
}
