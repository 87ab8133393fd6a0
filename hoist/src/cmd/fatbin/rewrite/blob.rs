//! New bytes on their way from where they are made to where they are written.

use std::io::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use crate::cmd::fatbin::mapped::Mapped;

/// Bytes that are kept in memory if there are few, else in a file without a name: however many regions change, only those that are
/// being made are in memory at a time.
#[derive(Clone, Debug)]
pub struct Blob(Arc<Mapped>);

/// As many bytes are kept in memory.
const FEW: usize = 1 << 16;

impl Blob {
    /// Says that the bytes are not needed for a while.
    pub fn rest(&self) {
        self.0.done_with(0..self.len() as u64);
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() > FEW
            && let Ok(mut file) = tempfile::tempfile()
            && file.write_all(&bytes).is_ok()
            && let Ok(mapped) = Mapped::map(&file)
        {
            return Self(Arc::new(mapped));
        }
        Self(Arc::new(Mapped::of(bytes)))
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_are_kept() {
        for size in [0, FEW, FEW + 1, 5 * FEW] {
            let bytes: Vec<_> = (0..=250).cycle().take(size).collect();
            let blob = Blob::from(bytes.clone());
            blob.rest();
            assert_eq!(*blob.clone(), bytes);
        }
    }
}
