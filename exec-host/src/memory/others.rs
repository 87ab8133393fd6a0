//! Memory of somebody else's as that of a module.

use super::source::{MemoryRequirements, MemorySource};
use super::{Mapping, Owner};
use crate::error::Error;
use crate::machine;
use core::ptr;
use elf_core::SegmentFlags;
use elf_layout::Segment;

impl Mapping {
    /// Memory of somebody else's.
    pub(super) fn from_source(
        source: &dyn MemorySource,
        size: usize,
        alignment: usize,
        limit: Option<u64>,
    ) -> Result<Self, Error> {
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
        let start = ptr::with_exposed_provenance_mut(address as usize);
        let mut mapping = Self::at(start, size, rustix::param::page_size());
        mapping.owner = Some(Owner(memory));
        Ok(mapping)
    }

    /// Protects memory of somebody else's, as [`protect`](Self::protect) does.
    pub(super) fn protect_others(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        late: Option<u64>,
    ) -> Result<(), Error> {
        let mut segments: Vec<Segment> = segments.collect();
        let both = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
        if segments.iter().any(|segment| segment.flags.contains(both)) {
            return Err(Error::WriteExecute);
        }
        for segment in &mut segments {
            let range = segment.offset..segment.offset.saturating_add(segment.size);
            if late.is_some_and(|late| range.contains(&late)) && segment.flags == SegmentFlags::READ
            {
                self.late = self.part(segment.offset, segment.size);
                segment.flags |= SegmentFlags::WRITE;
            }
        }
        if let Some(Owner(memory)) = &mut self.owner {
            let size = self.size as u64;
            memory.protect(&segments).map_err(|cause| Error::Map { size, cause })?;
        }
        let is_code = |segment: &&Segment| segment.flags.contains(SegmentFlags::EXECUTE);
        for segment in segments.iter().filter(is_code) {
            if let Some((start, size)) = self.part(segment.offset, segment.size) {
                machine::cache::synchronize(start, size);
            }
        }
        Ok(())
    }
}
