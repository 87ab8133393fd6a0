//! New bytes on their way from where they are made to where they are written.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use anyhow::Context as _;
use fatbin::{Item, raw, region_size};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::mapped::Mapped;

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

impl Blob {
    /// A region of these entries, of which one is in memory at a time.
    ///
    /// # Errors
    /// As [`write_region`](fatbin::write_region).
    pub fn region(items: &[Item<'_>]) -> Result<Self, fatbin::Error> {
        if region_size(items) > FEW
            && let Ok(spooled) = spooled(items)
        {
            return Ok(Self(Arc::new(spooled)));
        }
        fatbin::region(items).map(Self::from)
    }
}

/// A region in a file without a name: its header, and entries one after another.
fn spooled(items: &[Item<'_>]) -> anyhow::Result<Mapped> {
    const HEADER: u64 = size_of::<raw::Region>() as u64;
    let mut file = tempfile::tempfile()?;
    file.seek(SeekFrom::Start(HEADER))?;
    for item in items {
        let alone = fatbin::region(slice::from_ref(item))?;
        file.write_all(alone.get(size_of::<raw::Region>()..).unwrap_or_default())?;
    }
    let size = file.stream_position()?.saturating_sub(HEADER);
    file.rewind()?;
    let empty = fatbin::region(&[])?;
    let (header, _) = raw::Region::read_from_prefix(&empty).ok().context("no header")?;
    file.write_all(raw::Region { size: size.into(), ..header }.as_bytes())?;
    Mapped::map(&file)
}

impl From<Vec<u8>> for Blob {
    fn from(mut bytes: Vec<u8>) -> Self {
        if bytes.len() > FEW
            && let Ok(mut file) = tempfile::tempfile()
            && file.write_all(&bytes).is_ok()
            && let Ok(mapped) = Mapped::map(&file)
        {
            return Self(Arc::new(mapped));
        }
        // encoders have room for what does not become smaller
        bytes.shrink_to_fit();
        Self(Arc::new(Mapped::of(bytes)))
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self
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

    #[test]
    fn regions_are_those_of_the_crate() {
        let ptx = [".version 8.0\n.target sm_75\n//", &"x".repeat(FEW), "\0"].concat();
        let ptx = fatbin::NewEntry::ptx(ptx.as_bytes()).unwrap();
        for count in 0..4 {
            let items = vec![Item::New(ptx); count];
            assert_eq!(*Blob::region(&items).unwrap(), fatbin::region(&items).unwrap(), "{count}");
        }
    }
}
