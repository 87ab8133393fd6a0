//! A linked file in memory of its own: its segments are there, nothing is relocated or protected yet.

use crate::error::Error;
use crate::library::LibraryError;
use crate::library::file::FilePages;
use crate::memory::{Mapping, MappingOptions, POPULATED};
use core::ops::Range;
use elf_core::SegmentFlags;
use elf_image::{Image, PageRange, Segment};
use std::fs::File;

/// An image in memory that is writable still.
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
}

impl MappedImage {
    /// Copies the segments to memory, or maps them from the file that the image is of, at the address that it has if it is fixed.
    ///
    /// # Errors
    /// [`Error::WriteExecute`] if pages would be writable and executable; [`Error::Linked`], also if it is larger than `limit`; there is no
    /// memory, or not there.
    pub(crate) fn new(
        image: &Image<'_>,
        in_file: Option<&FilePages>,
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
        let before = image.start() & page.wrapping_sub(1);
        let size = pages.iter().map(|range| range.size).sum();
        let memory = if image.is_fixed() {
            Mapping::fixed(image.start().wrapping_sub(before), size)?
        } else {
            Mapping::new(&MappingOptions {
                size,
                alignment: image.alignment(),
                ..MappingOptions::default()
            })?
        };
        let base = memory.address().wrapping_add(before);
        let bias = image.bias(base).map_err(LibraryError::from)?;
        // both are within memory that there is
        let (start, size) = (before as usize, image.size() as usize);
        let mut mapped = Self { memory, pages, base, bias, start, size };
        let in_file = in_file.filter(|_| are_apart(image, page));
        for segment in image.segments() {
            match in_file {
                Some(FilePages(file)) => mapped.map(image, &segment, file)?,
                None => mapped.copy(&segment),
            }
        }
        if in_file.is_some()
            && let Some((offset, size)) = image.relro().filter(|(_, size)| *size > POPULATED as u64)
        {
            // most of them are about to be filled
            mapped.memory.populate(mapped.offset(offset), size);
        }
        Ok(mapped)
    }

    /// Maps what the file has of a segment, whole pages; what is behind it is zero, if the segment goes on there.
    fn map(&mut self, image: &Image<'_>, segment: &Segment<'_>, file: &File) -> Result<(), Error> {
        let header = usize::try_from(segment.number).ok();
        let header = header.and_then(|number| image.file().segments().get(number));
        let Some(header) = header.filter(|_| !segment.data.is_empty()) else { return Ok(()) };
        let page = rustix::param::page_size() as u64;
        let (start, size) = (self.offset(segment.offset), segment.data.len() as u64);
        let in_page = start % page;
        let (first, size) = (start.wrapping_sub(in_page), size.saturating_add(in_page));
        self.memory.map_file(first, size, file, header.offset.wrapping_sub(in_page))?;
        if segment.size > segment.data.len() as u64 {
            let end = first.saturating_add(size) as usize;
            let rest = self.memory.bytes_mut().get_mut(end..end.next_multiple_of(page as usize));
            rest.unwrap_or_default().fill(0);
        }
        Ok(())
    }

    /// Copies what the file has of a segment to memory, which is zero.
    fn copy(&mut self, segment: &Segment<'_>) {
        let Segment { offset, data, .. } = *segment;
        if data.len() >= POPULATED {
            self.memory.populate(self.offset(offset), data.len() as u64);
        }
        // the image was checked: it is within memory that there is
        let place = self.content().get_mut(offset as usize..).unwrap_or_default();
        if let Some(place) = place.get_mut(..data.len()) {
            place.copy_from_slice(data);
        }
    }

    /// The bytes of the image, before they are protected.
    pub(crate) fn content(&mut self) -> &mut [u8] {
        let end = self.start.saturating_add(self.size);
        self.memory.bytes_mut().get_mut(self.start..end).unwrap_or_default()
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

    /// Gives all pages their permissions that do not stay writable for now.
    pub(crate) fn protect(&self) -> Result<(), Error> {
        self.pages.iter().filter(|range| !range.flags.contains(SegmentFlags::WRITE)).try_for_each(
            |range| self.memory.set_permissions(range.offset, range.size, range.flags),
        )
    }

    /// Makes read-only what relocations have filled (`PT_GNU_RELRO`).
    pub(crate) fn end_relocation(&self) -> Result<(), Error> {
        self.pages.iter().filter(|range| range.is_relro).try_for_each(|range| {
            self.memory.set_permissions(range.offset, range.size, range.final_flags())
        })
    }
}

/// Whether each segment has pages of its own, which the file has at places of pages.
fn are_apart(image: &Image<'_>, page: u64) -> bool {
    let headers = image.file().segments();
    let mut end = 0;
    image.segments().all(|segment| {
        let header = usize::try_from(segment.number).ok().and_then(|number| headers.get(number));
        let is_even = header.is_some_and(|it| (it.address ^ it.offset).is_multiple_of(page));
        let start = image.start().wrapping_add(segment.offset);
        let is_apart = start - start % page >= end;
        end = start.saturating_add(segment.size);
        is_even && is_apart
    })
}
