//! Bytes that a load keeps: lent by Python as long as nobody can change them, else a copy.

use crate::buffer::Lent;
use pyo3::prelude::*;
use std::sync::Arc;

/// Bytes of objects from which on work on them is long enough to give up the interpreter's lock for it: fewer are done in less time
/// than it may take to get the lock back.
pub(crate) const LONG: usize = 1 << 16;

/// Bytes of Python's or of our own. Clones are the same bytes.
#[derive(Clone)]
pub(crate) struct Held(Arc<Bytes>);

enum Bytes {
    Lent(Lent),
    Owned(Vec<u8>),
}

impl Held {
    /// The bytes of `object`: without a copy if it is constant (`bytes`, a read-only `memoryview` or `mmap`).
    ///
    /// # Errors
    /// If it has no contiguous bytes.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lent = Lent::of(object)?;
        // who keeps a file parsed relies on its bytes
        let bytes = if lent.is_constant() {
            Bytes::Lent(lent)
        } else {
            Bytes::Owned(lent.bytes().to_vec())
        };
        Ok(Self(Arc::new(bytes)))
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        match &*self.0 {
            Bytes::Lent(lent) => lent.bytes(),
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Held {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Bytes::Owned(bytes)))
    }
}
