//! Blocks of thread-local variables at one TP offset in all threads, out of a few that the C library knows of.
//!
//! The C library has little room there, and gets it back in the order of a stack only: "load the new one, then drop the old one" would use
//! it up. So what is free again is kept and used again, which needs the initial values in every thread ([`everywhere`]), and small
//! blocks share a library.

use super::everywhere;
use super::library::{Library, Wanted};
use crate::error::Error;
use core::ops::Range;
use elf_layout::TlsBlock;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of regions; what wants more is not from here.
const ALIGNMENT: u64 = 64;
/// Bytes that are asked of the C library at least, if it has so many.
const CHUNK: u64 = 512;

static POOL: Mutex<Vec<Region>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<Region>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Initial values that the C library copies into new threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialValues {
    pub(super) address: u64,
    /// They were made read-only after relocation.
    pub(super) is_read_only: bool,
}

/// Bytes that all threads have, parts of which belong to loads.
#[derive(Debug)]
pub(super) struct Region {
    /// Dropped, the C library has the room again. None of what the executable has.
    pub(super) library: Option<Library>,
    /// The number of the block that it is in, for `__tls_get_addr`, and its offset there.
    pub(super) module: u64,
    pub(super) start: u64,
    /// Bytes from the thread pointer to it.
    pub(super) tp_offset: i64,
    pub(super) size: u64,
    pub(super) values: InitialValues,
    /// From here on, all threads have zeros, those that will come as well.
    pub(super) clean: u64,
    /// What nobody has, by rising offset, no two beside each other.
    pub(super) free: Vec<Range<u64>>,
}

/// A part of a region, given back on drop.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) module: u64,
    /// Offset in that module's block.
    pub(super) start: u64,
    pub(super) tp_offset: i64,
    size: u64,
}

impl Share {
    /// Room for a block with these initial values, the same in all threads.
    ///
    /// # Errors
    /// [`Error::ThreadLocal`] if there is none, or the threads of this process cannot be reached from here.
    pub(super) fn new(block: &TlsBlock, values: &[u8]) -> Result<Self, Error> {
        let refused = |cause: &str| Error::ThreadLocal {
            size: block.size,
            cause: cause.into(),
            text: Box::default(),
        };
        if block.alignment > ALIGNMENT {
            return Err(refused("its alignment is that of a library of its own"));
        }
        if !everywhere::is_possible() {
            return Err(refused("the system does not say where threads have theirs"));
        }
        let mut pool = pool();
        if let Some(share) = pool.iter_mut().find_map(|region| region.take(block, values)) {
            return Ok(share);
        }
        let size = block.size.checked_next_multiple_of(ALIGNMENT).ok_or_else(|| refused("size"))?;
        let region = Region::open(size.max(CHUNK)).or_else(|_| Region::open(size));
        pool.push(region.map_err(|error| error.of_size(block.size))?);
        let share = pool.last_mut().and_then(|region| region.take(block, values));
        if share.is_none() {
            give_back(&mut pool);
        }
        share.ok_or_else(|| refused("some thread cannot be reached"))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut pool = pool();
        let offset_in = |region: &Region| self.tp_offset.wrapping_sub(region.tp_offset);
        let region = pool.iter_mut().find(|region| {
            let offset = offset_in(region);
            region.module == self.module && offset >= 0 && offset.cast_unsigned() < region.size
        });
        let Some(region) = region else { return };
        let start = offset_in(region).cast_unsigned();
        region.give(start..start.wrapping_add(self.size));
        give_back(&mut pool);
    }
}

/// Adds what an executable has set aside, unless it is there already.
pub(super) fn add(region: Region) {
    let mut pool = pool();
    if !pool.iter().any(|known| known.tp_offset == region.tp_offset) {
        // before those of the C library, which others may need
        pool.insert(0, region);
    }
}

/// Gives the C library back what is free at the end, where it can use it again.
fn give_back(pool: &mut Vec<Region>) {
    while pool.last().is_some_and(|last| last.library.is_some() && last.is_free()) {
        pool.pop();
    }
}

impl Region {
    /// One of `size` zeros, a library of its own.
    fn open(size: u64) -> Result<Self, Error> {
        let block = TlsBlock { offset: 0, file_size: size, size, alignment: ALIGNMENT };
        let zeros = vec![0; usize::try_from(size).map_err(|_| Error::OutOfMemory { size })?];
        let wanted = [Wanted::Module, Wanted::Distance];
        let (library, [module, tp_offset]) = Library::new(&block, &zeros, &wanted, &[])?;
        let values = InitialValues { address: library.values(), is_read_only: false };
        Ok(Self {
            library: Some(library),
            module,
            start: 0,
            tp_offset: tp_offset.cast_signed(),
            size,
            values,
            clean: 0,
            free: core::iter::once(0..size).collect(),
        })
    }

    fn is_free(&self) -> bool {
        matches!(self.free.as_slice(), [all] if *all == (0..self.size))
    }

    /// A part for a block, with its initial values in all threads.
    fn take(&mut self, block: &TlsBlock, values: &[u8]) -> Option<Share> {
        let alignment = block.alignment.max(1);
        let (index, part) = self.free.iter().enumerate().find_map(|(index, free)| {
            let address = self.tp_offset.wrapping_add_unsigned(free.start).cast_unsigned();
            let start = free.start.checked_add(address.wrapping_neg() % alignment)?;
            let end = start.checked_add(block.size).filter(|&end| end <= free.end)?;
            Some((index, start..end))
        })?;
        let tp_offset = self.tp_offset.wrapping_add_unsigned(part.start);
        let mut content = vec![0; usize::try_from(block.size).ok()?];
        content.get_mut(..values.len())?.copy_from_slice(values);
        let are_zeros = self.clean <= part.start && content.iter().all(|byte| *byte == 0);
        if !are_zeros {
            // SAFETY: nobody has this part, in no thread, and threads that come copy the values only.
            let is_done = unsafe {
                self.values.write(part.start, &content) && everywhere::write(tp_offset, &content)
            };
            self.clean = self.clean.max(part.end);
            if !is_done {
                return None;
            }
        }
        self.clean = self.clean.max(part.end);
        let free = self.free.get(index)?.clone();
        let rest = [free.start..part.start, part.end..free.end];
        self.free.splice(index..=index, rest.into_iter().filter(|rest| !rest.is_empty()));
        let start = self.start.wrapping_add(part.start);
        Some(Share { module: self.module, start, tp_offset, size: block.size })
    }

    /// Makes a part free again.
    fn give(&mut self, mut part: Range<u64>) {
        let index = self.free.partition_point(|free| free.start < part.start);
        let mut replaced = index..index;
        if let Some(after) = self.free.get(index).filter(|after| after.start == part.end) {
            part.end = after.end;
            replaced.end = index.saturating_add(1);
        }
        let before = index.checked_sub(1).and_then(|before| self.free.get(before));
        if let Some(before) = before.filter(|before| before.end == part.start) {
            part.start = before.start;
            replaced.start = index.saturating_sub(1);
        }
        self.free.splice(replaced, [part]);
    }
}

impl InitialValues {
    /// Changes them from `offset` on; whether that was done.
    ///
    /// # Safety
    /// They are mapped, so many, and nobody but the C library reads them.
    unsafe fn write(self, offset: u64, content: &[u8]) -> bool {
        use rustix::mm::{MprotectFlags, mprotect};
        let start = self.address.wrapping_add(offset) as usize;
        let page = rustix::param::page_size();
        let first = start & !page.wrapping_sub(1);
        let size = start.wrapping_add(content.len()).wrapping_sub(first).next_multiple_of(page);
        let pages = core::ptr::with_exposed_provenance_mut::<core::ffi::c_void>(first);
        let writable = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the pages were writable while the executable was relocated; nobody executes them.
        if self.is_read_only && unsafe { mprotect(pages, size, writable) }.is_err() {
            return false;
        }
        let place = core::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: as the caller vouches.
        unsafe { core::ptr::copy_nonoverlapping(content.as_ptr(), place, content.len()) };
        if self.is_read_only {
            // SAFETY: as above. Should they stay writable, no harm is done.
            let _ = unsafe { mprotect(pages, size, MprotectFlags::READ) };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_again() {
        let values = InitialValues { address: 0, is_read_only: false };
        let mut region = Region {
            library: None,
            module: 2,
            start: 0,
            tp_offset: -64,
            size: 64,
            values,
            clean: 0,
            free: core::iter::once(0..64).collect(),
        };
        let block = |size, alignment| TlsBlock { offset: 0, file_size: 0, size, alignment };
        let taken = [(4, 4), (8, 16), (32, 32)];
        let taken = taken.map(|(size, alignment)| {
            let share = region.take(&block(size, alignment), &[]).unwrap();
            core::mem::ManuallyDrop::new(share).tp_offset
        });
        assert_eq!(taken, [-64, -48, -32]);
        assert_eq!(region.free, [4..16, 24..32]);
        assert!(region.take(&block(16, 1), &[]).is_none());
        for part in [16..24, 0..4, 32..64] {
            region.give(part);
        }
        assert!(region.is_free(), "{:?}", region.free);
    }
}
