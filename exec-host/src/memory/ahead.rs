//! Memory for an image whose size is not known yet, of which the system brings in pages meanwhile.

use super::{LARGE, Mapping, MappingOptions};
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::mm::ProtFlags;

/// After so many bytes it is asked whether that shall end.
const STEP: usize = 1 << 18;

impl Mapping {
    /// From how many bytes on that will be written memory is brought in ahead: smaller images may begin with a huge page.
    pub(crate) const LEAST_AHEAD: u64 = LARGE.end as u64;

    /// Room for `most` bytes, of which the first `least` will all be written to: they are brought in, unless it is said before that this
    /// shall end. Nothing if there is no such room.
    ///
    /// Each page is touched. To have the system bring in many at once (`MADV_POPULATE_WRITE`) takes less time by itself, but locks the
    /// memory of the process again and again, and a thread that maps some meanwhile may wait for four milliseconds each time.
    pub(crate) fn ahead(most: u64, least: u64, shall_end: &AtomicBool) -> Option<Self> {
        let page = rustix::param::page_size();
        let size = usize::try_from(most).ok()?.checked_next_multiple_of(page)?;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let mut mapping = Self::reserve(size, page, &MappingOptions::default(), writable).ok()?;
        let least = usize::try_from(least).unwrap_or(usize::MAX);
        let mut brought_in = 0u64;
        let filled = mapping.bytes_mut().get_mut(..least).unwrap_or_default();
        for step in filled.chunks_mut(STEP) {
            if shall_end.load(Ordering::Relaxed) {
                break;
            }
            step.iter_mut().step_by(page).for_each(|byte| *byte = 0);
            brought_in = brought_in.saturating_add(step.len() as u64);
        }
        mapping.brought_in = brought_in;
        Some(mapping)
    }

    /// The beginning of such room, if that is memory as wished for.
    pub(crate) fn cut_to(mut self, mapping_options: &MappingOptions<'_>) -> Option<Self> {
        let MappingOptions { size, alignment, limit, near, .. } = *mapping_options;
        let size = usize::try_from(size).ok()?.max(1).checked_next_multiple_of(self.page)?;
        if size > self.size || alignment > self.page as u64 || limit.is_some() {
            return None;
        }
        self.trim(size, self.page, 0);
        near.is_none_or(|near| self.is_near(near)).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elf_core::SegmentFlags;

    /// As many bytes as the largest pages have.
    const PAGE: u64 = 1 << 16;

    fn options(size: u64) -> MappingOptions<'static> {
        MappingOptions { size, alignment: 16, ..MappingOptions::default() }
    }

    fn ahead(most: u64, least: u64, shall_end: bool) -> Mapping {
        Mapping::ahead(most, least, &AtomicBool::new(shall_end)).unwrap()
    }

    #[test]
    fn the_beginning_is_brought_in() {
        let mut mapping = ahead(64 * PAGE, 40 * PAGE + 7, false);
        assert_eq!((mapping.size(), mapping.brought_in), (64 * PAGE, 40 * PAGE + 7));
        assert!(mapping.bytes_mut().iter().all(|byte| *byte == 0));
        let segment =
            |offset, size| elf_layout::Segment { offset, size, flags: SegmentFlags::READ };
        let segments =
            [segment(0, 20 * PAGE), segment(20 * PAGE, 30 * PAGE), segment(50 * PAGE, PAGE)];
        let left = mapping.worth_bringing_in(segments.into_iter(), 64 * PAGE);
        assert_eq!(left, [40 * PAGE + 7..50 * PAGE, 50 * PAGE..51 * PAGE]);
        assert_eq!(ahead(64 * PAGE, 40 * PAGE, true).brought_in, 0);
        assert!(Mapping::ahead(u64::MAX, 1, &AtomicBool::new(false)).is_none());
    }

    #[test]
    fn what_is_not_needed_goes_back() {
        let mapping = ahead(64 * PAGE, PAGE, false);
        let start = mapping.address();
        let mapping = mapping.cut_to(&options(10 * PAGE - 7)).unwrap();
        assert_eq!((mapping.address(), mapping.size()), (start, 10 * PAGE));
        assert_eq!(ahead(PAGE, PAGE, false).cut_to(&options(PAGE)).unwrap().size(), PAGE);
    }

    #[test]
    fn what_will_not_do_goes_back() {
        let refused = |wish: MappingOptions<'_>| {
            let mapping = ahead(4 * PAGE, PAGE, false);
            assert!(mapping.cut_to(&wish).is_none());
        };
        refused(options(4 * PAGE + 1));
        refused(MappingOptions { alignment: 2 * PAGE, ..options(PAGE) });
        refused(MappingOptions { limit: Some(u64::MAX), ..options(PAGE) });
        #[cfg(target_pointer_width = "64")]
        refused(MappingOptions { near: Some(0), ..options(PAGE) });
    }
}
