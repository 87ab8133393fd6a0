//! Memory of somebody else's as that of a module.

use super::source::{ImageMemory, MemoryRequirements, MemorySource};
use crate::error::Error;
use core::ptr;
use elf_core::SegmentFlags;
use elf_layout::Segment;

/// Memory of others.
pub(super) struct Owner(Box<dyn ImageMemory>);

impl core::fmt::Debug for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Owner").field(&self.0.address()).finish()
    }
}

impl Owner {
    /// Memory of a source, and where it is.
    pub(super) fn reserve(
        source: &dyn MemorySource,
        size: usize,
        alignment: usize,
        limit: Option<u64>,
    ) -> Result<(*mut u8, Self), Error> {
        let refused = |cause| Error::Map { size: size as u64, cause };
        let needed = MemoryRequirements { size: size as u64, alignment: alignment as u64, limit };
        let mut memory = source.reserve(&needed).map_err(refused)?;
        let address = memory.address();
        let end = address.checked_add(size as u64);
        let is_fit = address.is_multiple_of(alignment as u64)
            && end.is_some_and(|end| limit.is_none_or(|limit| end <= limit))
            && memory.bytes_mut().len() >= size;
        if !is_fit {
            return Err(refused(std::io::ErrorKind::InvalidData.into()));
        }
        Ok((ptr::with_exposed_provenance_mut(address as usize), Self(memory)))
    }

    /// All bytes, before they are protected.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    /// Has `size` bytes protected by segments, of which the read-only one with offset `late` stays writable for now. Gives them with the
    /// permissions that they have, and that one.
    pub(super) fn protect(
        &mut self,
        size: u64,
        segments: impl Iterator<Item = Segment>,
        late: Option<u64>,
    ) -> Result<(Vec<Segment>, Option<Segment>), Error> {
        let mut segments: Vec<Segment> = segments.collect();
        let both = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
        if segments.iter().any(|segment| segment.flags.contains(both)) {
            return Err(Error::WriteExecute);
        }
        let is_late = |segment: &&mut Segment| {
            let range = segment.offset..segment.offset.saturating_add(segment.size);
            late.is_some_and(|late| range.contains(&late)) && segment.flags == SegmentFlags::READ
        };
        let open = segments.iter_mut().find(is_late).map(|segment| {
            segment.flags |= SegmentFlags::WRITE;
            *segment
        });
        self.0.protect(&segments).map_err(|cause| Error::Map { size, cause })?;
        Ok((segments, open))
    }
}
