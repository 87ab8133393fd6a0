//! Addresses of an arena: slabs of all kinds, so close to each other that code reaches data.

use super::slab::{Kind, SIZE, Slab};
use crate::error::Error;
use crate::machine;
use crate::memory::dual::Alias;
use crate::memory::near;
use core::ffi::c_void;
use core::ptr;
use elf_core::SegmentFlags;
use elf_layout::Segment;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Bytes of address space that a region has.
pub(crate) const SPREAD: u64 = 64 << 20;

/// What an arena has at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaStatistics {
    /// Modules in it.
    pub modules: u64,
    /// Bytes of their code.
    pub code: u64,
    /// Bytes of their read-only data.
    pub read_only: u64,
    /// Bytes of their writable data.
    pub writable: u64,
    /// Bytes of memory that it has for them, in whole slabs.
    pub mapped: u64,
}

/// What a module needs of an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need<'s> {
    /// Its segments.
    pub(crate) segments: &'s [Segment],
    /// Multiple that their addresses shall be of.
    pub(crate) alignment: u64,
    /// First address that is too high.
    pub(crate) limit: Option<u64>,
    /// An address within reach of 32-bit distances, if that can be had.
    pub(crate) near: Option<u64>,
}

const SLABS: usize = (SPREAD / SIZE as u64) as usize;

/// Where a segment is: kind, slab, offset in it, size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    slab: usize,
    start: u32,
    pub(super) size: u32,
}

impl Part {
    /// Offset in the region.
    pub(super) const fn offset(&self) -> u64 {
        self.slab as u64 * SIZE as u64 + self.start as u64
    }
}

/// Slabs side by side.
#[derive(Debug)]
pub(super) struct Region {
    /// The first address; those without a slab are mapped as nothing.
    base: *mut u8,
    slabs: Vec<Option<Slab>>,
    /// The slab of each kind that had room last.
    last: [usize; 3],
    modules: u64,
}

// SAFETY: the pages belong to no thread.
unsafe impl Send for Region {}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the addresses are ours, and no module is there: each keeps the arena.
        let _ = unsafe { munmap(self.base.cast(), SPREAD as usize) };
    }
}

impl Region {
    pub(super) fn new(need: &Need<'_>) -> Result<Self, Error> {
        let (size, protection) = (SPREAD as usize, ProtFlags::empty());
        let place = |near| near::map(near, size, protection);
        let base = match (need.limit, need.near) {
            (Some(limit), _) => near::map_low(limit, size, protection)
                .ok_or(Error::NoLowMemory { size: SPREAD, limit })?,
            (None, near) => match near.and_then(place) {
                Some(base) => base,
                None => {
                    // SAFETY: without a wish for an address no existing mapping is touched.
                    let map = || unsafe {
                        mmap_anonymous(ptr::null_mut(), size, protection, MapFlags::PRIVATE)
                    };
                    let refused = |cause: Errno| Error::Map { size: SPREAD, cause: cause.into() };
                    near::beside_blind_spots(size, map).map_err(refused)?
                }
            },
        };
        let slabs = core::iter::repeat_with(|| None).take(SLABS).collect();
        Ok(Self { base, slabs, last: [0; 3], modules: 0 })
    }

    pub(super) const fn base(&self) -> *mut u8 {
        self.base
    }

    /// Whether a module may be here.
    pub(super) fn suits(&self, need: &Need<'_>) -> bool {
        let start = self.base.addr() as u64;
        need.limit.is_none_or(|limit| start.saturating_add(SPREAD) <= limit)
            && need.near.is_none_or(|near| near::reaches(start, SPREAD, near))
    }

    /// Takes a part for each segment; nothing if one does not fit.
    pub(super) fn take(&mut self, need: &Need<'_>) -> Option<Vec<Part>> {
        let alignment = u32::try_from(need.alignment).ok()?;
        let mut parts = Vec::with_capacity(need.segments.len());
        for segment in need.segments {
            let size = u32::try_from(segment.size).ok();
            let part =
                size.and_then(|size| self.take_part(Kind::of(segment.flags), size, alignment));
            let Some(part) = part else {
                for part in parts {
                    self.give_part(&part);
                }
                return None;
            };
            parts.push(part);
        }
        self.modules = self.modules.saturating_add(1);
        Some(parts)
    }

    fn take_part(&mut self, kind: Kind, size: u32, alignment: u32) -> Option<Part> {
        let last = self.last.get_mut(kind as usize)?;
        // from the one that had room last, and round
        for slab in (*last..SLABS).chain(0..*last) {
            let Some(known) = self.slabs.get_mut(slab)?.as_mut().filter(|it| it.kind == kind)
            else {
                continue;
            };
            if let Some(start) = known.take(size, alignment) {
                *last = slab;
                return Some(Part { kind, slab, start, size });
            }
        }
        let slab = self.slabs.iter().position(Option::is_none)?;
        let mut new = Slab::new(kind);
        let start = new.take(size, alignment)?;
        *last = slab;
        *self.slabs.get_mut(slab)? = Some(new);
        let protection = match kind {
            // its pages come with the code
            Kind::Code => MprotectFlags::empty(),
            Kind::ReadOnly => MprotectFlags::READ,
            Kind::Writable => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        // SAFETY: nothing is in this slab.
        if unsafe { mprotect(self.at(slab).cast(), SIZE as usize, protection) }.is_err() {
            *self.slabs.get_mut(slab)? = None;
            return None;
        }
        Some(Part { kind, slab, start, size })
    }

    fn at(&self, slab: usize) -> *mut u8 {
        self.base.wrapping_add(slab.wrapping_mul(SIZE as usize))
    }

    /// Makes a part free that was not written to.
    fn give_part(&mut self, part: &Part) {
        let Some(known) = self.slabs.get_mut(part.slab) else { return };
        let Some(slab) = known else { return };
        slab.give(part.start, part.size);
        if slab.taken == 0 {
            *known = None;
            let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
            // SAFETY: the slab is ours, and nobody has a part of it any more. Should it fail, its pages stay, and become others later.
            let _ = unsafe {
                let start = self.at(part.slab).cast::<c_void>();
                mmap_anonymous(start, SIZE as usize, ProtFlags::empty(), flags)
            };
        }
    }

    /// Gives all parts of a module back. Its code becomes traps, if its slab stays.
    ///
    /// # Safety
    /// Nobody uses them, and nobody will.
    pub(super) unsafe fn give(&mut self, parts: &[Part]) {
        for part in parts {
            let is_last = |slab: &Slab| slab.taken <= part.size.next_multiple_of(16);
            let slab = self.slabs.get(part.slab).and_then(Option::as_ref);
            if part.kind == Kind::Code && slab.is_some_and(|slab| !is_last(slab)) {
                let traps = machine::cache::TRAP.iter().copied().cycle();
                let traps: Vec<u8> = traps.take(part.size as usize).collect();
                // Should it fail, the code stays until the room is used again.
                // SAFETY: the caller guarantees that nobody executes it.
                let _ = unsafe { self.write_code(part, &traps) };
            }
            self.give_part(part);
        }
        self.modules = self.modules.saturating_sub(1);
    }

    /// Writes a part.
    ///
    /// # Safety
    /// It was taken, and nobody but the caller uses it.
    pub(super) unsafe fn write(&mut self, part: &Part, bytes: &[u8]) -> Result<(), Error> {
        let refused = |cause: Errno| Error::Map { size: part.size.into(), cause: cause.into() };
        let place = self.at(part.slab).wrapping_add(part.start as usize);
        let copy = || {
            // SAFETY: the part is as large, writable by now, and nobody else's.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        };
        match part.kind {
            // SAFETY: as the caller guarantees.
            Kind::Code => unsafe { self.write_code(part, bytes) }.map_err(refused),
            Kind::Writable => {
                copy();
                Ok(())
            }
            Kind::ReadOnly => {
                let page = rustix::param::page_size();
                let start = part.start as usize & !page.wrapping_sub(1);
                let end = (part.start as usize).saturating_add(bytes.len());
                let size = end.next_multiple_of(page).saturating_sub(start);
                let pages = self.at(part.slab).wrapping_add(start).cast::<c_void>();
                let writable = MprotectFlags::READ | MprotectFlags::WRITE;
                // SAFETY: the pages are data of modules, which those may read all the time; the arena's lock is held.
                unsafe { mprotect(pages, size, writable) }.map_err(refused)?;
                copy();
                // SAFETY: as above.
                unsafe { mprotect(pages, size, MprotectFlags::READ) }.map_err(refused)
            }
        }
    }

    /// Writes a part of code: to a copy of the slab, which then takes its place.
    ///
    /// # Safety
    /// Nobody executes the part; the arena's lock is held.
    unsafe fn write_code(&mut self, part: &Part, bytes: &[u8]) -> Result<(), Errno> {
        let start = self.at(part.slab);
        let slab = self.slabs.get_mut(part.slab).and_then(Option::as_mut);
        let Some(slab) = slab else { return Ok(()) };
        let end = (slab.end() as usize).max((part.start as usize).saturating_add(bytes.len()));
        let mut copy = Alias::new(SIZE as usize, false).map_err(|_| Errno::NOMEM)?;
        let new = copy.bytes_mut();
        if slab.has_code {
            // SAFETY: the slab is mapped and can be read up to the end of its file.
            let old = unsafe { core::slice::from_raw_parts(start, SIZE as usize) };
            if let (Some(new), Some(old)) = (new.get_mut(..end), old.get(..end)) {
                new.copy_from_slice(old);
            }
        }
        let place = new.get_mut(part.start as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        if let Some(place) = place {
            place.copy_from_slice(bytes);
        }
        let code = SegmentFlags::READ | SegmentFlags::EXECUTE;
        // SAFETY: the addresses are the slab's; code that threads execute there is the same as before.
        unsafe { copy.seal().show(start, SIZE as usize, 0, code) }?;
        slab.has_code = true;
        machine::cache::synchronize(start.wrapping_add(part.start as usize), bytes.len());
        Ok(())
    }

    pub(super) fn add_to(&self, sum: &mut ArenaStatistics) {
        sum.modules = sum.modules.saturating_add(self.modules);
        for slab in self.slabs.iter().flatten() {
            let bytes = match slab.kind {
                Kind::Code => &mut sum.code,
                Kind::ReadOnly => &mut sum.read_only,
                Kind::Writable => &mut sum.writable,
            };
            *bytes = bytes.saturating_add(slab.taken.into());
            sum.mapped = sum.mapped.saturating_add(SIZE.into());
        }
    }
}
