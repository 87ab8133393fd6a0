//! A linked file in memory of its own: its segments are there, nothing is relocated or protected yet.

use crate::error::Error;
use crate::library::LibraryError;
use crate::library::file::FileCode;
use crate::memory::{Mapping, MappingOptions};
use core::ops::Range;
use elf_core::SegmentFlags;
use elf_image::{Image, PageRange, Segment};

/// From how many bytes of a segment on its pages are asked for at once.
const POPULATED: usize = 0x4000;

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
    /// Copies the segments to memory, but for `code`, which is mapped, at the address that the file has if it is fixed.
    ///
    /// # Errors
    /// [`Error::WriteExecute`] if pages would be writable and executable; [`Error::Linked`], also if it is larger than `limit`; there is no
    /// memory, or not there.
    pub(crate) fn new(
        image: &Image<'_>,
        code: Option<&FileCode>,
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
        for segment in image.segments() {
            mapped.fill(&segment, code)?;
        }
        Ok(mapped)
    }

    /// Copies what the file has of a segment to memory, which is zero, and maps its code.
    fn fill(&mut self, segment: &Segment<'_>, code: Option<&FileCode>) -> Result<(), Error> {
        let mut at = 0;
        if let Some(FileCode { file, parts }) = code {
            for part in parts.iter().filter(|part| part.segment == segment.number) {
                self.copy(segment, at..part.range.start);
                let place = self.offset(segment.offset.wrapping_add(part.range.start as u64));
                self.memory.map_file(place, part.range.len() as u64, file, part.offset)?;
                at = part.range.end;
            }
        }
        self.copy(segment, at..segment.data.len());
        Ok(())
    }

    /// Copies a part of what the file has of a segment.
    fn copy(&mut self, segment: &Segment<'_>, range: Range<usize>) {
        let start = segment.offset.wrapping_add(range.start as u64);
        let data = segment.data.get(range).unwrap_or_default();
        if data.len() >= POPULATED {
            self.memory.populate(self.offset(start), data.len() as u64);
        }
        // the image was checked: it is within memory that there is
        let place = self.content().get_mut(start as usize..).unwrap_or_default();
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
