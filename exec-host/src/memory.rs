//! Memory that is written first and run then, never both at once.

mod ahead;
mod arena;
pub(crate) mod bring_in;
mod dual;
mod huge;
mod near;
mod others;
mod source;
mod spare;

use crate::error::Error;
use crate::machine;
use crate::word;
use arena::Lease;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use dual::Alias;
use elf_core::SegmentFlags;
use elf_layout::Segment;
use others::Owner;
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};
use std::sync::Arc;

pub use arena::{ArenaStatistics, CodeArena};
pub(crate) use arena::{MOST, Need, SPREAD};
pub(crate) use huge::{HUGE_PAGE, bytes_in_huge_pages};
pub use source::{ImageMemory, MemoryRequirements, MemorySource};
pub(crate) use spare::Spare;

/// From how many bytes on pages that are about to be filled are asked for at once.
pub(crate) const POPULATED: usize = 0x4000;

/// Zeroed pages of this process, given back on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    size: usize,
    /// Size of a page in bytes.
    page: usize,
    /// Of so many bytes from the start the system has brought in the pages.
    brought_in: u64,
    /// Where the pages are written, if that is elsewhere.
    alias: Option<Alias>,
    /// Pages that are still writable and shall not stay so.
    late: Option<(*mut u8, usize)>,
    /// Where they go, if not back to the system.
    spare: Option<Arc<Spare>>,
    /// What of them belongs to the module, if they are an arena's.
    lease: Option<Lease>,
    /// Who has them, if that is somebody else.
    owner: Option<Owner>,
}

// SAFETY: the mapping is owned memory: nothing in it belongs to a thread.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out addresses only.
unsafe impl Sync for Mapping {}

/// What is asked of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappingOptions<'a> {
    /// Bytes.
    pub(crate) size: u64,
    /// Multiple that the address shall be of, a power of two.
    pub(crate) alignment: u64,
    /// First address that is too high.
    pub(crate) limit: Option<u64>,
    /// An address that shall be within reach of 32-bit distances, if that can be had.
    pub(crate) near: Option<u64>,
    /// Written by way of other addresses than those where it is executed.
    pub(crate) is_dual_mapped: bool,
    /// On huge pages, where there are any.
    pub(crate) is_huge: bool,
    /// From there, and back to there, if it is nothing special.
    pub(crate) spare: Option<&'a Arc<Spare>>,
    /// From there instead.
    pub(crate) source: Option<&'a dyn MemorySource>,
}

/// How many bytes of memory begin with a huge page: so many that it is a third more at most. What is larger is written by several threads, which bring
/// small pages in as soon, and do not wait for the system to make room for many huge ones.
const LARGE: Range<usize> = HUGE_PAGE / 2 * 3..32 << 20;

impl Mapping {
    /// Memory as wished for, or at least of the size, alignment and limit, still to be written.
    pub(crate) fn new(mapping_options: &MappingOptions<'_>) -> Result<Self, Error> {
        let page = if mapping_options.is_huge { HUGE_PAGE } else { rustix::param::page_size() };
        let too_large = || Error::OutOfMemory { size: mapping_options.size };
        // no slice is larger
        let number = |number: u64| match usize::try_from(number) {
            Ok(number) if number <= isize::MAX as usize => Ok(number),
            _ => Err(too_large()),
        };
        let size = number(mapping_options.size)?.max(1).checked_next_multiple_of(page);
        let size = size.ok_or_else(too_large)?;
        let alignment = number(mapping_options.alignment)?.max(page);
        if let Some(source) = mapping_options.source {
            let (start, owner) = Owner::reserve(source, size, alignment, mapping_options.limit)?;
            let mut mapping = Self::at(start, size, rustix::param::page_size());
            mapping.owner = Some(owner);
            return Ok(mapping);
        }
        if mapping_options.is_dual_mapped {
            let mut mapping = Self::reserve(size, alignment, mapping_options, ProtFlags::empty())?;
            mapping.page = page;
            mapping.alias = Some(Alias::new(size, mapping_options.is_huge)?);
            return Ok(mapping);
        }
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        if mapping_options.is_huge && mapping_options.limit.is_none() {
            // from the pool that an administrator has set aside, if there is one
            // SAFETY: without an address that is asked for no existing mapping is touched.
            let pool = unsafe {
                mmap_anonymous(
                    ptr::null_mut(),
                    size,
                    writable,
                    MapFlags::PRIVATE | MapFlags::HUGETLB,
                )
            };
            if let Ok(start) = pool {
                let mapping = Self::at(start.cast(), size, page);
                let address = mapping.address();
                if address.is_multiple_of(alignment as u64)
                    && !near::has_blind_spot(address, size as u64)
                {
                    return Ok(mapping);
                }
            }
        }
        let plain =
            mapping_options.limit.is_none() && !mapping_options.is_huge && alignment == page;
        if plain && LARGE.contains(&size) && mapping_options.spare.is_none() {
            return Self::large(size, mapping_options);
        }
        let spare = mapping_options.spare.filter(|_| plain).cloned();
        if let Some(start) = spare.as_ref().and_then(|spare| spare.take(size)) {
            let mut mapping = Self::at(start, size, page);
            mapping.spare = spare.clone();
            if mapping_options.near.is_none_or(|near| mapping.is_near(near)) {
                return Ok(mapping);
            }
        }
        let mut mapping = Self::reserve(size, alignment, mapping_options, writable)?;
        (mapping.page, mapping.spare) = (page, spare);
        if mapping_options.is_huge {
            // SAFETY: the pages are ours; the advice changes no content. Without huge pages it is refused, and that is fine.
            let _ = unsafe { madvise(mapping.start.cast(), size, Advice::LinuxHugepage) };
        }
        Ok(mapping)
    }

    /// Much memory, which begins with a huge page: the system brings such pages in sooner than as many small ones. What nearly fills the last one
    /// gets all of it.
    fn large(size: usize, mapping_options: &MappingOptions<'_>) -> Result<Self, Error> {
        let is_near = size % HUGE_PAGE >= HUGE_PAGE / 2;
        let rounded = if is_near { size.checked_next_multiple_of(HUGE_PAGE) } else { Some(size) };
        let size = rounded.ok_or(Error::OutOfMemory { size: size as u64 })?;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Self::reserve(size, HUGE_PAGE, mapping_options, writable)?;
        mapping.advise_huge(0, (size - size % HUGE_PAGE) as u64);
        Ok(mapping)
    }

    /// Room in an arena for the segments, which are to be [placed](elf_layout::Layout::place_segments) at these offsets.
    pub(crate) fn in_arena(arena: &CodeArena, need: &Need<'_>) -> Result<(Self, Vec<u64>), Error> {
        let lease = arena.lease(need)?;
        let offsets = lease.offsets().collect();
        let mut mapping = Self::at(lease.base(), SPREAD as usize, rustix::param::page_size());
        mapping.lease = Some(lease);
        Ok((mapping, offsets))
    }

    /// The addresses that belong to the module.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        match &self.lease {
            Some(lease) => lease.ranges().collect(),
            None => {
                let start = self.address();
                core::iter::once(start..start.saturating_add(self.size())).collect()
            }
        }
    }

    /// Zeroed pages for `size` bytes, of which a huge page begins `offset` bytes from the start, and huge ones are asked for from there on.
    /// What nearly fills the last one gets all of it.
    pub(crate) fn huge_from(offset: u64, size: u64) -> Result<Self, Error> {
        let too_large = || Error::OutOfMemory { size };
        let (huge, page) = (HUGE_PAGE as u64, rustix::param::page_size());
        let in_huge = size.saturating_sub(offset);
        let is_near = in_huge % huge >= huge / 2;
        let rounded = in_huge.next_multiple_of(if is_near { huge } else { page as u64 });
        let total = usize::try_from(offset.saturating_add(rounded)).ok();
        let reserved = total.and_then(|total| total.checked_add(HUGE_PAGE));
        let (Some(total), Some(reserved)) = (total, reserved) else { return Err(too_large()) };
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let mut mapping = Self::reserve(reserved, page, &MappingOptions::default(), writable)?;
        mapping.trim(total, HUGE_PAGE, offset as usize);
        mapping.advise_huge(offset, rounded);
        Ok(mapping)
    }

    /// Zeroed pages at one address, if nobody has them.
    pub(crate) fn fixed(address: u64, size: u64) -> Result<Self, Error> {
        let too_large = || Error::OutOfMemory { size };
        let bytes = usize::try_from(size).map_err(|_| too_large())?;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let start = near::map_at(core::iter::once(address), bytes, writable);
        let cause = || std::io::Error::from(Errno::EXIST);
        let start = start.ok_or_else(|| Error::Map { size, cause: cause() })?;
        Ok(Self::at(start, bytes, rustix::param::page_size()))
    }

    /// `size` bytes of pages that are mapped at `start`, and ours.
    const fn at(start: *mut u8, size: usize, page: usize) -> Self {
        Self {
            start,
            size,
            page,
            brought_in: 0,
            alias: None,
            late: None,
            spare: None,
            lease: None,
            owner: None,
        }
    }

    /// `size` bytes, whole pages, at a multiple of `alignment`, below the limit if there is one.
    fn reserve(
        size: usize,
        alignment: usize,
        mapping_options: &MappingOptions<'_>,
        protection: ProtFlags,
    ) -> Result<Self, Error> {
        let limit = mapping_options.limit;
        let page = rustix::param::page_size();
        let slack = alignment.saturating_sub(page);
        let reserved = size.checked_add(slack).ok_or(Error::OutOfMemory { size: size as u64 })?;
        let start = if let Some(limit) = limit {
            near::map_low(limit, reserved, protection)
                .ok_or(Error::NoLowMemory { size: size as u64, limit })?
        } else {
            // SAFETY: without an address that is asked for no existing mapping is touched.
            let map = || unsafe {
                mmap_anonymous(ptr::null_mut(), reserved, protection, MapFlags::PRIVATE)
            };
            let failed =
                |cause: rustix::io::Errno| Error::Map { size: size as u64, cause: cause.into() };
            near::beside_blind_spots(reserved, map).map_err(failed)?
        };
        let mut mapping = Self::at(start, reserved, page);
        if let Some(near) =
            mapping_options.near.filter(|&near| limit.is_none() && !mapping.is_near(near))
            && let Some(start) = near::map(near, reserved, protection)
        {
            // the other one goes
            mapping = Self::at(start, reserved, page);
        }
        if slack > 0 {
            mapping.trim(size, alignment, 0);
        }
        let end = mapping.address().saturating_add(mapping.size as u64);
        match limit {
            Some(limit) if end > limit => Err(Error::NoLowMemory { size: size as u64, limit }),
            _ => Ok(mapping),
        }
    }

    /// Gives back what is before the first address that is `offset` bytes before a multiple of `alignment`, and behind `size` bytes from there.
    fn trim(&mut self, size: usize, alignment: usize, offset: usize) {
        let before = self.start.wrapping_add(offset).align_offset(alignment);
        let Some(behind) = self.size.checked_sub(before).and_then(|rest| rest.checked_sub(size))
        else {
            return;
        };
        let unmap = |at: *mut u8, size: usize| {
            if size > 0 {
                // SAFETY: the pages are ours, whole, and outside of what is kept.
                let _ = unsafe { munmap(at.cast(), size) };
            }
        };
        let kept = self.start.wrapping_add(before);
        unmap(self.start, before);
        unmap(kept.wrapping_add(size), behind);
        (self.start, self.size) = (kept, size);
    }

    /// Whether 32-bit distances from all of it reach an address.
    fn is_near(&self, address: u64) -> bool {
        near::reaches(self.address(), self.size as u64, address)
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Number of bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size as u64
    }

    /// All bytes, before they are [protected](Self::protect).
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if let Some(lease) = &mut self.lease {
            return lease.bytes_mut();
        }
        if let Some(owner) = &mut self.owner {
            return owner.bytes_mut();
        }
        let start = self.alias.as_ref().map_or(self.start, Alias::start);
        // SAFETY: the pages are mapped, writable as long as `protect` was not called, and ours alone.
        unsafe { core::slice::from_raw_parts_mut(start, self.size) }
    }

    /// Has the system bring in the pages that `size` bytes from `offset` on are in.
    pub(crate) fn populate(&self, offset: u64, size: u64) {
        let in_page = offset % self.page as u64;
        if let Some((start, size)) = self.part(offset - in_page, size.saturating_add(in_page)) {
            // SAFETY: the pages are ours; the advice changes no content. Kernels before 5.14 refuse it, and that is fine.
            let _ = unsafe { madvise(start.cast(), size, Advice::LinuxPopulateWrite) };
        }
    }

    /// Maps whole pages of a file in the place of these, private, with these permissions. Where the file ends within the last one, zeros
    /// follow.
    pub(crate) fn map_file(
        &mut self,
        offset: u64,
        size: u64,
        (file, from): (&std::fs::File, u64),
        flags: SegmentFlags,
    ) -> Result<(), Error> {
        let is_whole = (offset | from).is_multiple_of(self.page as u64);
        let part = self.part(offset, size).filter(|_| is_whole);
        let (start, bytes) = part.ok_or(Error::OutOfMemory { size })?;
        let how = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the pages are inside of the mapping, and ours alone; no reference to their bytes is alive.
        let mapped = unsafe { mmap(start.cast(), bytes, protection(flags), how, file, from) };
        mapped.map(drop).map_err(|cause| Error::Map { size, cause: cause.into() })
    }

    /// Pages of a file for `size` bytes from `from` on, private, with these permissions. Those that are behind its end nobody may touch.
    pub(crate) fn of_file(
        file: &std::fs::File,
        from: u64,
        size: u64,
        flags: SegmentFlags,
    ) -> Result<Self, Error> {
        let page = rustix::param::page_size();
        let bytes = usize::try_from(size).ok().and_then(|size| size.checked_next_multiple_of(page));
        let bytes = bytes.ok_or(Error::OutOfMemory { size })?;
        let (start, how) = (ptr::null_mut(), MapFlags::PRIVATE);
        // SAFETY: without an address that is asked for no existing mapping is touched.
        let map = || unsafe { mmap(start, bytes, protection(flags), how, file, from) };
        let start = near::beside_blind_spots(bytes, map)
            .map_err(|cause| Error::Map { size, cause: cause.into() })?;
        Ok(Self::at(start, bytes, page))
    }

    /// Maps zeroed pages in the place of these, with these permissions.
    pub(crate) fn renew(
        &mut self,
        offset: u64,
        size: u64,
        flags: SegmentFlags,
    ) -> Result<(), Error> {
        let (start, bytes) = self.part(offset, size).ok_or(Error::OutOfMemory { size })?;
        let flags = protection(flags);
        let how = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the pages are inside of the mapping, and ours alone; no reference to their bytes is alive.
        let mapped = unsafe { mmap_anonymous(start.cast(), bytes, flags, how) };
        mapped.map(drop).map_err(|cause| Error::Map { size, cause: cause.into() })
    }

    /// Asks for huge pages where these have room for them.
    pub(crate) fn advise_huge(&self, offset: u64, size: u64) {
        if let Some((start, size)) = self.part(offset, size) {
            // SAFETY: the pages are ours; the advice changes no content. Without huge pages it is refused, and that is fine.
            let _ = unsafe { madvise(start.cast(), size, Advice::LinuxHugepage) };
        }
    }

    /// `size` bytes from `offset`, which `protect` made readable; nothing if they are not all inside.
    ///
    /// # Safety
    /// They are protected, and nobody writes to them as long as the result lives.
    pub(crate) unsafe fn bytes(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let (start, size) = self.part(offset, size)?;
        // SAFETY: the range lies inside the mapping; the caller guarantees the rest.
        Some(unsafe { core::slice::from_raw_parts(start, size) })
    }

    /// Gives the pages of all segments their permissions. What was written elsewhere is theirs now. Read-only pages of the segment with
    /// offset `late` stay writable up to [`end_writing`](Self::end_writing).
    pub(crate) fn protect(
        &mut self,
        segments: impl Iterator<Item = Segment>,
        late: Option<u64>,
    ) -> Result<(), Error> {
        if let Some(lease) = &mut self.lease {
            return lease.commit();
        }
        if let Some(owner) = &mut self.owner {
            let (segments, open) = owner.protect(self.size as u64, segments, late)?;
            for segment in &segments {
                let Some((start, size)) = self.part(segment.offset, segment.size) else { continue };
                if segment.flags.contains(SegmentFlags::EXECUTE) {
                    machine::cache::synchronize(start, size);
                }
            }
            self.late = open.and_then(|segment| self.part(segment.offset, segment.size));
            return Ok(());
        }
        let alias = self.alias.take().map(Alias::seal);
        for segment in segments {
            let mut flags = segment.flags;
            if flags.contains(SegmentFlags::WRITE | SegmentFlags::EXECUTE) {
                return Err(Error::WriteExecute);
            }
            let (start, size) = self
                .part(segment.offset, segment.size)
                .ok_or(Error::OutOfMemory { size: segment.size })?;
            let range = segment.offset..segment.offset.saturating_add(segment.size);
            if late.is_some_and(|late| range.contains(&late)) && flags == SegmentFlags::READ {
                self.late = Some((start, size));
                flags |= SegmentFlags::WRITE;
            }
            let refused = |cause: Errno| Error::Map { size: size as u64, cause: cause.into() };
            if let Some(written) = &alias {
                // SAFETY: the range lies inside the mapping, which is reserved for this, and no reference to it is alive.
                unsafe { written.show(start, size, segment.offset, flags) }.map_err(refused)?;
            }
            let is_code = flags.contains(SegmentFlags::EXECUTE);
            if is_code {
                machine::cache::synchronize(start, size);
            }
            if alias.is_some() || flags.contains(SegmentFlags::WRITE) {
                continue;
            }
            let flags = if is_code {
                MprotectFlags::READ | MprotectFlags::EXEC
            } else {
                MprotectFlags::READ
            };
            // SAFETY: the range lies inside the mapping, and no reference to its bytes is alive.
            unsafe { mprotect(start.cast::<c_void>(), size, flags) }.map_err(refused)?;
        }
        Ok(())
    }

    /// Gives whole pages these permissions. They have no writer any more, or get one.
    pub(crate) fn set_permissions(
        &self,
        offset: u64,
        size: u64,
        flags: SegmentFlags,
    ) -> Result<(), Error> {
        let (start, size) = self.part(offset, size).ok_or(Error::OutOfMemory { size })?;
        if flags.contains(SegmentFlags::WRITE | SegmentFlags::EXECUTE) {
            return Err(Error::WriteExecute);
        }
        let protection = MprotectFlags::from_bits_retain(protection(flags).bits());
        if flags.contains(SegmentFlags::EXECUTE) {
            machine::cache::synchronize(start, size);
        }
        // SAFETY: the range lies inside the mapping, and no reference to its bytes is alive.
        let done = unsafe { mprotect(start.cast::<c_void>(), size, protection) };
        done.map_err(|cause| Error::Map { size: size as u64, cause: cause.into() })
    }

    /// Stores bytes in pages that are writable; nothing if they are not all inside.
    pub(crate) fn store(&self, offset: u64, value: &[u8]) {
        if let Some(start) = usize::try_from(offset)
            .ok()
            .filter(|&start| start.checked_add(value.len()).is_some_and(|end| end <= self.size))
        {
            let to = self.start.wrapping_add(start);
            // SAFETY: the bytes are inside of the mapping, and writable; no reference to them is alive.
            unsafe { ptr::copy_nonoverlapping(value.as_ptr(), to, value.len()) };
        }
    }

    /// Stores a word in read-only data while others read it.
    pub(crate) fn write_word(&self, address: u64, value: u64) -> Result<(), Error> {
        let refused = |cause: Errno| Error::Map { size: word::SIZE, cause: cause.into() };
        let offset = address.wrapping_sub(self.address());
        let (start, size) = self
            .part(offset - offset % self.page as u64, self.page as u64)
            .ok_or(Error::OutOfMemory { size: offset })?;
        let writable = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the page lies inside the mapping; who reads it may do so all the time.
        unsafe { mprotect(start.cast::<c_void>(), size, writable) }.map_err(refused)?;
        // SAFETY: the word is in the page, aligned, and nobody has a reference to it but as an atomic one.
        unsafe { word::store(address, value) };
        // SAFETY: as above. Should it stay writable, no harm is done.
        let _ = unsafe { mprotect(start.cast::<c_void>(), size, MprotectFlags::READ) };
        Ok(())
    }

    /// Makes what was left writable read-only.
    pub(crate) fn end_writing(&self) {
        if let Some((start, size)) = self.late {
            // SAFETY: the range lies inside the mapping, and nobody writes to it any more. Should it stay writable, no harm is done.
            let _ = unsafe { mprotect(start.cast::<c_void>(), size, MprotectFlags::READ) };
        }
    }

    /// The pages of `size` bytes from `offset`.
    fn part(&self, offset: u64, size: u64) -> Option<(*mut u8, usize)> {
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        let size = match self.lease {
            Some(_) => size,
            None => size.checked_next_multiple_of(self.page)?,
        };
        offset.checked_add(size).filter(|&end| end <= self.size)?;
        Some((self.start.wrapping_add(offset), size))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.lease.is_some() || self.owner.is_some() {
            return;
        }
        match self.spare.take() {
            // SAFETY: the pages are ours, and functions that are given out do not outlive us.
            Some(spare) => unsafe { spare.give(self.start, self.size) },
            // SAFETY: as above.
            None => drop(unsafe { munmap(self.start.cast(), self.size) }),
        }
    }
}

/// What the system calls these permissions.
fn protection(flags: SegmentFlags) -> ProtFlags {
    let mut protection = ProtFlags::empty();
    for (flag, allowed) in [
        (SegmentFlags::READ, ProtFlags::READ),
        (SegmentFlags::WRITE, ProtFlags::WRITE),
        // code is read by who looks at it, tables beside it by the code
        (SegmentFlags::EXECUTE, ProtFlags::READ | ProtFlags::EXEC),
    ] {
        if flags.contains(flag) {
            protection |= allowed;
        }
    }
    protection
}
