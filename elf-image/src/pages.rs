//! Which permissions pages get.

use crate::error::{Error, ErrorKind};
use crate::image::{Image, Segments};
use elf_core::SegmentFlags;
use elf_core::names::PT_GNU_RELRO;

/// Pages of one permission, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRange {
    /// The first byte, in bytes from the first page: that begins `start() % page_size` bytes before the image.
    pub offset: u64,
    /// Bytes: whole pages.
    pub size: u64,
    /// Permissions while it is relocated; none where no segment is.
    pub flags: SegmentFlags,
    /// Only read from when relocations are done (`PT_GNU_RELRO`).
    pub is_relro: bool,
}

impl PageRange {
    /// Permissions when relocations are done.
    #[must_use]
    pub const fn final_flags(&self) -> SegmentFlags {
        if self.is_relro { self.flags.difference(SegmentFlags::WRITE) } else { self.flags }
    }
}

/// The pages of an image, in order and without gaps.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    segments: Segments<'a>,
    /// Offset of the page that comes next, counted from the start of its first page.
    next: u64,
    end: u64,
    /// Bytes of the first page before the image.
    before: u64,
    page: u64,
    /// Pages that become read-only.
    relro: (u64, u64),
    /// What was found at `next`, if that was looked at.
    ahead: Option<Same>,
}

/// Permissions of a page, whether it becomes read-only, and up to where that is so at least.
type Same = (SegmentFlags, bool, u64);

impl<'a> Image<'a> {
    /// The pages of the image, for a loader with pages of `page_size` bytes that places it by multiples of that: permissions that
    /// segments say, or several of them where they share a page.
    ///
    /// # Errors
    /// [`ErrorKind::PageSize`] if that is no power of two, [`ErrorKind::SharedPage`] if a page would be writable and executable
    /// that no segment wants so.
    pub fn pages(&self, page_size: u64) -> Result<Pages<'a>, Error> {
        let low = page_size.wrapping_sub(1);
        let too_large =
            Error::new(ErrorKind::TooLarge { address: self.start(), size: self.size() });
        if !page_size.is_power_of_two() {
            return Err(Error::new(ErrorKind::PageSize(page_size)));
        }
        let before = self.start() & low;
        let end = before.checked_add(self.size()).and_then(|end| end.checked_add(low));
        let end = end.ok_or(too_large)? & !low;
        let relro = self.relro().map_or((0, 0), |(offset, size)| {
            let start = before.saturating_add(offset);
            // as ld.so has it: the last page only if all of it is meant
            (start & !low, start.saturating_add(size) & !low)
        });
        let (segments, page) = (self.segments(), page_size);
        let pages = Pages { segments, next: 0, end, before, page, relro, ahead: None };
        // small machines have one way for all
        let may_share = cfg!(not(target_pointer_width = "64")) || self.share_pages(before, low);
        let wanted = |flags| self.segments().any(|segment| segment.flags.contains(flags));
        let both = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
        if may_share
            && !wanted(both)
            && let Some(range) = pages.clone().find(|range| range.flags.contains(both))
        {
            let address = self.start().wrapping_sub(before).wrapping_add(range.offset);
            return Err(Error::new(ErrorKind::SharedPage { address }));
        }
        Ok(pages)
    }

    /// Whether two segments are on one page; `before` is where the image begins in its first page.
    fn share_pages(&self, before: u64, low: u64) -> bool {
        let mut end = 0;
        self.segments().any(|segment| {
            let start = before.saturating_add(segment.offset);
            let is_shared = start & !low < end;
            end = end.max(start.saturating_add(segment.size).saturating_add(low) & !low);
            is_shared
        })
    }

    /// Offset and size of what becomes read-only when relocations are done (`PT_GNU_RELRO`), as the file says it.
    #[must_use]
    pub fn relro(&self) -> Option<(u64, u64)> {
        let header = self.file().segments().iter().find(|it| it.r#type == PT_GNU_RELRO)?;
        let offset = self.offset_of(header.address)?;
        Some((offset, header.memory_size.min(self.size().wrapping_sub(offset))))
    }
}

impl Pages<'_> {
    /// Permissions of the page at `at`, and up to where they are the same, as far as is known without looking at the next page.
    fn at(&self, at: u64) -> Same {
        let page_end = at.saturating_add(self.page);
        let mut flags = SegmentFlags::empty();
        let mut until = self.end;
        let low = self.page.wrapping_sub(1);
        for segment in self.segments.clone() {
            let start = self.before.saturating_add(segment.offset);
            // this one and those behind it begin on later pages
            if start & !low >= until {
                break;
            }
            let end = start.saturating_add(segment.size);
            if start < page_end && end > at {
                flags |= segment.flags;
            }
            // the first page that is another's too, or the segment's no longer, begins there
            let borders = [start & !low, end & !low, end.saturating_add(low) & !low];
            for border in borders.into_iter().filter(|border| *border > at) {
                until = until.min(border);
            }
        }
        let (start, end) = self.relro;
        for border in [start, end].into_iter().filter(|border| *border > at) {
            until = until.min(border);
        }
        let is_relro = (start..end).contains(&at) && flags.contains(SegmentFlags::WRITE);
        (flags, is_relro, until.max(page_end))
    }
}

impl Iterator for Pages<'_> {
    type Item = PageRange;

    fn next(&mut self) -> Option<PageRange> {
        let start = self.next;
        if start >= self.end {
            return None;
        }
        let (flags, is_relro, mut until) = match self.ahead.take() {
            Some(known) => known,
            None => self.at(start),
        };
        while until < self.end {
            let next = self.at(until);
            if (next.0, next.1) != (flags, is_relro) {
                self.ahead = Some(next);
                break;
            }
            until = next.2;
        }
        self.next = until;
        Some(PageRange { offset: start, size: until.wrapping_sub(start), flags, is_relro })
    }
}

impl core::iter::FusedIterator for Pages<'_> {}
