//! A linked file in memory of its own: its segments are there, nothing is relocated yet.

mod fill;

use crate::error::Error;
use crate::library::LibraryError;
use crate::library::file::OpenFile;
use crate::memory::{HUGE_PAGE, Mapping, MappingOptions, POPULATED};
use crate::word;
use core::ops::Range;
use elf_core::{File, SegmentFlags};
use elf_image::{AddressKind, Image, LoadSegment, PageRange, RelativeRows};
use fill::{LARGE, large};
use std::fs;

/// An image in memory.
#[derive(Debug)]
pub(crate) struct MappedImage {
    pub(crate) memory: Mapping,
    /// Which permissions pages are to have.
    pub(crate) pages: Vec<PageRange>,
    /// Address of the first byte of the image.
    pub(crate) base: u64,
    /// What is added to addresses of the file.
    pub(crate) bias: u64,
    /// Where the image is in the memory, in bytes: it may begin within a page.
    start: usize,
    size: usize,
    /// Only pages that stay writable, or become read-only at the end of relocation, can be written to.
    is_closed: bool,
    /// What relocations have filled is read-only.
    is_relocated: bool,
    /// All segments are there; if not, all but the [large](fill::large) one.
    is_filled: bool,
}

impl MappedImage {
    /// Copies the segments to memory, or maps them from the file that the image is of if the system lets its code be mapped, at the address
    /// that the image has if it is fixed.
    ///
    /// # Errors
    /// [`Error::WriteExecute`] if pages would be writable and executable; [`Error::Linked`], also if it is larger than `limit`; there is no
    /// memory, or not there.
    pub(crate) fn new(
        image: &Image<'_>,
        in_file: Option<&OpenFile<'_>>,
        limit: u64,
    ) -> Result<Self, Error> {
        let size = image.size();
        if size > limit {
            return Err(LibraryError::TooLarge { size, limit }.into());
        }
        let page = rustix::param::page_size() as u64;
        let pages: Vec<PageRange> = image.pages(page).map_err(LibraryError::from)?.collect();
        let both = SegmentFlags::WRITE | SegmentFlags::EXECUTE;
        if pages.iter().any(|range| range.flags.contains(both)) {
            return Err(Error::WriteExecute);
        }
        let mapped = in_file.and_then(|opened| Self::of_file(image, &pages, page, &opened.file));
        match (mapped, in_file) {
            (Some(mapped), _) => Ok(mapped),
            (None, Some(opened)) if image.file().bytes().len() as u64 != image.file().size() => {
                let whole = opened.read_whole()?;
                let whole = File::parse_segments(whole.as_ref()).map_err(elf_image::Error::from);
                let whole = whole.and_then(|file| Image::parse(file, AddressKind::Virtual));
                Self::copied(&whole.map_err(LibraryError::from)?, pages, page)
            }
            (None, _) => Self::copied(image, pages, page),
        }
    }

    /// The image in memory that is there for it.
    fn at(memory: Mapping, image: &Image<'_>, pages: Vec<PageRange>) -> Result<Self, Error> {
        let before = image.start() & (rustix::param::page_size() as u64).wrapping_sub(1);
        let base = memory.address().wrapping_add(before);
        let bias = image.bias(base).map_err(LibraryError::from)?;
        // both are within memory that there is
        let (start, size) = (before as usize, image.size() as usize);
        let (is_closed, is_relocated, is_filled) = (false, false, true);
        Ok(Self { memory, pages, base, bias, start, size, is_closed, is_relocated, is_filled })
    }

    /// Copies of the segments.
    fn copied(image: &Image<'_>, pages: Vec<PageRange>, page: u64) -> Result<Self, Error> {
        let (huge, size) = (HUGE_PAGE as u64, pages.iter().map(|range| range.size).sum::<u64>());
        let memory = if image.is_fixed() {
            Mapping::fixed(image.start() - image.start() % page, size)?
        } else {
            // what nearly fills a huge page gets all of it
            let is_huge = size % huge >= huge / 2;
            let size = if is_huge { size.next_multiple_of(huge) } else { size };
            let alignment = image.alignment().max(if size >= huge { huge } else { 1 });
            Mapping::new(&MappingOptions { size, alignment, ..MappingOptions::default() })?
        };
        let mut mapped = Self::at(memory, image, pages)?;
        let room = mapped.memory.size();
        if room >= huge {
            mapped.memory.advise_huge(0, room);
        }
        let filled =
            image.segments().map(|it| it.offset.saturating_add(it.data.len() as u64)).max();
        let bytes: usize = image.segments().map(|it| it.data.len()).sum();
        let filled = filled.unwrap_or(0);
        // all at once, unless there is much room between segments
        let is_dense = filled / 2 <= bytes as u64;
        let (small, end) = (room - room % huge, mapped.offset(filled));
        if is_dense && bytes >= POPULATED && end > small {
            mapped.memory.populate(small, end.wrapping_sub(small));
        }
        for segment in image.segments() {
            let LoadSegment { offset, data, .. } = segment;
            if !is_dense && data.len() >= POPULATED {
                mapped.memory.populate(mapped.offset(offset), data.len() as u64);
            }
            mapped.copy(&segment);
        }
        Ok(mapped)
    }

    /// Pages of the file, with the permissions that they keep; none if they cannot be had.
    fn of_file(image: &Image<'_>, pages: &[PageRange], page: u64, file: &fs::File) -> Option<Self> {
        if image.is_fixed() || !are_apart(image, page) {
            return None;
        }
        let first = image.segments().next()?;
        let from = first.file_offset;
        let (size, alignment) = (pages.iter().map(|range| range.size).sum(), image.alignment());
        // the first segment's pages, and room for the others
        let large = large(image).filter(|_| alignment <= page);
        let is_first = alignment <= page && large.is_none();
        let memory = if let Some(large) = &large {
            let before = image.start() % page;
            let start = before.saturating_add(large.offset);
            Mapping::huge_from(start - start % page, size)
        } else if is_first {
            Mapping::of_file(file, from - from % page, size, open_flags(&first))
        } else {
            Mapping::new(&MappingOptions { size, alignment, ..MappingOptions::default() })
        };
        let memory = memory.ok()?;
        let mut mapped = Self::at(memory, image, pages.to_vec()).ok()?;
        for segment in image.segments() {
            if large.as_ref() == Some(&segment) {
                mapped.is_filled = false;
                continue;
            }
            let place = segment.file_offset.wrapping_sub(segment.offset);
            let has_pages = is_first && place == from;
            // pages of the file that are there already get what permissions they want
            if has_pages && segment.file_size == segment.size {
                if open_flags(&segment) != open_flags(&first) {
                    let start = mapped.offset(segment.offset);
                    let in_page = start % page;
                    let size = segment.size.saturating_add(in_page);
                    let flags = open_flags(&segment);
                    mapped.memory.set_permissions(start.wrapping_sub(in_page), size, flags).ok()?;
                }
                continue;
            }
            let is_there = has_pages && segment.number == first.number;
            mapped.map(&segment, file, is_there, page).ok()?;
        }
        mapped.is_closed = true;
        if let Some((offset, size)) = image.relro()
            && (POPULATED as u64..=LARGE).contains(&size)
        {
            // most of them are about to be filled
            mapped.memory.populate(mapped.offset(offset), size);
        }
        for range in pages.iter().filter(|range| range.flags.is_empty()) {
            mapped.memory.renew(range.offset, range.size, range.flags).ok()?;
        }
        Some(mapped)
    }

    /// Copies what the file has of a segment.
    fn copy(&mut self, segment: &LoadSegment<'_>) {
        // the image was checked: it is within memory that there is
        let place = self.content().get_mut(segment.offset as usize..).unwrap_or_default();
        if let Some(place) = place.get_mut(..segment.data.len()) {
            fill::copy(place, segment.data);
        }
    }

    /// Maps what the file has of a segment, whole pages; what is behind it is zero, if the segment goes on there.
    fn map(
        &mut self,
        segment: &LoadSegment<'_>,
        file: &fs::File,
        is_there: bool,
        page: u64,
    ) -> Result<(), Error> {
        let (start, size) = (self.offset(segment.offset), segment.file_size);
        let in_page = start % page;
        let (first, size) = (start.wrapping_sub(in_page), size.saturating_add(in_page));
        let end = start.saturating_add(segment.size).next_multiple_of(page);
        let mut filled = first;
        if segment.file_size != 0 {
            filled = first.saturating_add(size).next_multiple_of(page);
            if !is_there {
                let from = (file, segment.file_offset.wrapping_sub(in_page));
                self.memory.map_file(first, size, from, open_flags(segment))?;
            }
        }
        if end > filled {
            self.memory.renew(filled, end.wrapping_sub(filled), segment.flags)?;
        }
        if segment.size > segment.file_size && filled > first {
            let rest = first.saturating_add(size) as usize..filled as usize;
            self.memory.bytes_mut().get_mut(rest).unwrap_or_default().fill(0);
        }
        Ok(())
    }

    /// The bytes of the image, of which those can be written that are [open](Self::open_pages).
    pub(crate) fn content(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.size);
        self.memory.bytes_mut().get_mut(self.start..end).unwrap_or_default()
    }

    /// Fills what is not filled yet, and applies relocations that need no symbol, where [pages](Self::open_pages) are open; on other threads, if
    /// it is large, while this one does something else first. Gives what came of that, and how many relocations at the start of their table
    /// are done: all or none.
    pub(crate) fn fill<R>(
        &mut self,
        image: &Image<'_>,
        rows: Option<RelativeRows<'_>>,
        open: Option<&[Range<u64>]>,
        first: impl FnOnce() -> R,
    ) -> (R, usize) {
        let bias = self.bias;
        let missing = large(image).filter(|_| !core::mem::replace(&mut self.is_filled, true));
        let (range, data) = match (missing, open) {
            (Some(it), _) => (it.offset..it.offset.saturating_add(it.size), it.data),
            (None, None) => (0..self.size as u64, &[][..]),
            (None, Some([open])) => (open.start..open.end.min(self.size as u64), &[][..]),
            (None, Some(_)) => return (first(), 0),
        };
        let (at, address) = (range.start, self.base.wrapping_add(range.start));
        let range = range.start as usize..range.end as usize;
        let Some(memory) = self.content().get_mut(range) else { return (first(), 0) };
        let (found, is_done) = if image.relro().is_some_and(|(_, size)| size > LARGE) {
            fill::fill(memory, (address, at), (data, rows), bias, first)
        } else {
            let found = first();
            (found, rows.is_none_or(|rows| rows.apply(memory, at, bias)))
        };
        // what is not done is done once more, which changes nothing
        (found, if is_done { rows.map_or(0, |rows| rows.len()) } else { 0 })
    }

    /// Stores words at offsets in the image, which can be written. Whether all are within it; if not, some may be stored.
    pub(crate) fn store(&mut self, words: &[(u64, u64)]) -> bool {
        let content = self.content();
        words.iter().all(|(offset, word)| {
            let place = usize::try_from(*offset).ok().and_then(|at| content.get_mut(at..));
            let place = place.and_then(<[u8]>::first_chunk_mut);
            place.map(|place| *place = word.to_le_bytes()).is_some()
        })
    }

    /// The offset in the memory of an offset in the image.
    pub(crate) const fn offset(&self, in_image: u64) -> u64 {
        in_image.wrapping_add(self.start as u64)
    }

    /// The addresses of pages that can be read, when they are protected.
    pub(crate) fn readable(&self) -> Vec<Range<u64>> {
        let readable = SegmentFlags::READ | SegmentFlags::EXECUTE;
        let pages = self.pages.iter().filter(|range| range.flags.intersects(readable));
        let range = |range: &PageRange| {
            let start = self.memory.address().wrapping_add(range.offset);
            start..start.wrapping_add(range.size)
        };
        pages.map(range).collect()
    }

    /// Which offsets in the image can be written; nothing if all can.
    pub(crate) fn open_pages(&self) -> Option<Vec<Range<u64>>> {
        let before = self.start as u64;
        let mut open: Vec<Range<u64>> = Vec::new();
        for range in self.pages.iter().filter(|it| it.flags.contains(SegmentFlags::WRITE)) {
            let start = range.offset.saturating_sub(before);
            let end = range.offset.saturating_add(range.size).saturating_sub(before);
            match open.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => open.push(start..end),
            }
        }
        self.is_closed.then_some(open)
    }

    /// Whether so many bytes from an offset in the image can be written.
    pub(crate) fn is_open(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size);
        let mut open = self.open_pages().into_iter().flatten();
        !self.is_closed || open.any(|range| range.start <= offset && end <= range.end)
    }

    /// Whether so many bytes from an offset in the memory can be written until relocations are done.
    pub(crate) fn is_writable(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size);
        let is_inside = |range: &PageRange| {
            offset >= range.offset && end <= range.offset.saturating_add(range.size)
        };
        let mut writable = self.pages.iter().filter(|it| it.flags.contains(SegmentFlags::WRITE));
        writable.any(is_inside)
    }

    /// Makes all pages writable, up to [`protect`](Self::protect).
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.is_closed = false;
        let both = SegmentFlags::READ | SegmentFlags::WRITE;
        let closed = self.pages.iter().filter(|range| !range.flags.contains(SegmentFlags::WRITE));
        { closed }.try_for_each(|it| self.memory.set_permissions(it.offset, it.size, both))
    }

    /// Gives all pages their permissions that do not stay writable; what relocations fill (`PT_GNU_RELRO`) too if that `is_done`.
    pub(crate) fn protect(&mut self, is_done: bool) -> Result<(), Error> {
        if self.is_closed {
            return if is_done { self.end_relocation() } else { Ok(()) };
        }
        (self.is_closed, self.is_relocated) = (true, is_done);
        let flags = |range: &PageRange| if is_done { range.final_flags() } else { range.flags };
        let is_closed = |range: &PageRange| !flags(range).contains(SegmentFlags::WRITE);
        let runs = self.pages.chunk_by(|one, next| is_closed(one) == is_closed(next));
        for run in runs.filter(|run| run.first().is_some_and(is_closed)) {
            let others = run.iter().filter(|range| flags(range) != SegmentFlags::READ);
            let (count, mut all) = (others.clone().count(), 0..0);
            if count.saturating_add(1) < run.len()
                && let (Some(first), Some(last)) = (run.first(), run.last())
            {
                // two calls for what would be three or more
                all = first.offset..last.offset.saturating_add(last.size);
                let size = all.end.wrapping_sub(all.start);
                self.memory.set_permissions(all.start, size, SegmentFlags::READ)?;
            }
            for range in run {
                if all.is_empty() || flags(range) != SegmentFlags::READ {
                    self.memory.set_permissions(range.offset, range.size, flags(range))?;
                }
            }
        }
        Ok(())
    }

    /// Makes read-only what relocations have filled (`PT_GNU_RELRO`), if it is not.
    pub(crate) fn end_relocation(&mut self) -> Result<(), Error> {
        if core::mem::replace(&mut self.is_relocated, true) {
            return Ok(());
        }
        self.pages.iter().filter(|range| range.is_relro).try_for_each(|range| {
            self.memory.set_permissions(range.offset, range.size, range.final_flags())
        })
    }
}

/// Where words begin that can be written, which [pages](MappedImage::open_pages) are open to, if those are one stretch.
pub(crate) fn open_words(open: Option<&[Range<u64>]>) -> Range<u64> {
    match open {
        None => 0..u64::MAX,
        Some([open]) => open.start..open.end.saturating_sub(word::SIZE - 1),
        Some(_) => 0..0,
    }
}

/// Whether a segment is filled with a copy of what the file has of it, even where others are mapped from it.
pub(crate) fn is_large(image: &Image<'_>) -> bool {
    large(image).is_some()
}

/// The permissions of a segment's pages while it is relocated.
fn open_flags(segment: &LoadSegment<'_>) -> SegmentFlags {
    let is_writable = segment.flags.contains(SegmentFlags::WRITE);
    if is_writable { segment.flags | SegmentFlags::READ } else { segment.flags }
}

/// Whether each segment has pages of its own, which the file has at places of pages, and none is filled up with zeros that nobody writes to.
fn are_apart(image: &Image<'_>, page: u64) -> bool {
    let mut end = 0;
    image.segments().all(|segment| {
        let start = image.start().wrapping_add(segment.offset);
        let is_even = (start ^ segment.file_offset).is_multiple_of(page);
        let is_apart = start - start % page >= end;
        end = start.saturating_add(segment.size);
        let is_whole = segment.file_size == segment.size;
        is_even
            && is_apart
            && !segment.flags.is_empty()
            && (is_whole || segment.flags.contains(SegmentFlags::WRITE))
    })
}
