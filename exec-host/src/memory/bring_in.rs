//! Pages that the system brings in at once, instead of one at a time as they are touched.

use crate::memory::Mapping;
use core::ops::Range;
use elf_core::SegmentFlags;
use elf_layout::Segment;
use rustix::mm::{Advice, madvise};

impl Mapping {
    /// Large segments that are only read, of which all pages will be filled and are not there yet. What `most` bytes of objects cannot fill is left alone.
    pub(crate) fn worth_bringing_in(
        &self,
        segments: impl Iterator<Item = Segment>,
        most: u64,
    ) -> Vec<Range<u64>> {
        const LEAST: u64 = 0x1_0000;
        if self.alias.is_some() || self.lease.is_some() || self.owner.is_some() {
            return Vec::new();
        }
        let segments = segments.filter(|segment| (LEAST..=most).contains(&segment.size));
        let segments = segments.filter(|segment| !segment.flags.contains(SegmentFlags::WRITE));
        let ranges = segments.map(|it| it.offset..it.offset.saturating_add(it.size));
        ranges.map(|it| it.start.max(self.brought_in)..it.end).filter(|it| !it.is_empty()).collect()
    }
}

/// Has the system bring in the pages that are in `bytes` as a whole, to be written to.
pub(crate) fn bring_in(bytes: &[u8]) {
    let page = rustix::param::page_size();
    let before = bytes.as_ptr().align_offset(page);
    let whole = bytes.get(before..).unwrap_or_default();
    let size = whole.len() / page * page;
    if size > 0 {
        // SAFETY: the pages are those of the bytes; the advice changes no content. Kernels before 5.14 refuse it, and that is fine.
        let _ =
            unsafe { madvise(whole.as_ptr().cast_mut().cast(), size, Advice::LinuxPopulateWrite) };
    }
}
