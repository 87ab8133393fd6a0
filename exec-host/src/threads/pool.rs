//! Blocks of thread-local variables at one TP offset in all threads, out of a few that the C library knows of.
//!
//! The C library has little room there, and gets it back in the order of a stack only: "load the new one, then drop the old one" would use
//! it up. So what is free again is kept and used again, which needs the initial values in every thread ([`everywhere`]), and small
//! blocks share a library.
//!
//! The dynamic loader is asked for regions, and given them back, while the pool is not locked: it may wait for a thread that runs
//! constructors of another library, and these may load something. One thread at a time does so, since the order counts.

use super::everywhere;
use super::library::{DynamicRelocation, Library};
use crate::error::Error;
use crate::free_ranges::FreeRanges;
use core::time::Duration;
use elf_layout::TlsBlock;
use exec_core::sync::{Mutex, MutexGuard, generation};
use std::time::Instant;

/// Alignment of regions; what wants more is not from here.
const ALIGNMENT: u64 = 64;
/// Bytes that are asked of the C library at least, if it has so many.
const CHUNK: u64 = 512;
/// How long a load waits for another one that asks the dynamic loader. That one may wait for this: then two ask at once, and the C library
/// may lose the room of one.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it looks.
const POLL: Duration = Duration::from_micros(100);

/// What is shared by loads.
struct Pool {
    /// By rising distance from the thread pointer, be it in front of that or behind: as the C library gives them out.
    regions: Vec<Region>,
    /// A thread asks the dynamic loader for one, or gives one back: one of this process, of the forks that lie between the first and this.
    changing: Option<u32>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { regions: Vec::new(), changing: None });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock()
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
    /// What nobody has.
    pub(super) free: FreeRanges,
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
        if let Some(share) = pool().take(block, values) {
            return Ok(share);
        }
        let size = block.size.checked_next_multiple_of(ALIGNMENT).ok_or_else(|| refused("size"))?;
        let turn = Turn::wait();
        // others may have come and gone meanwhile
        if let Some(share) = pool().take(block, values) {
            return Ok(share);
        }
        let region = Region::open(size.max(CHUNK)).or_else(|_| Region::open(size));
        let region = region.map_err(|error| error.of_size(block.size))?;
        let share = {
            let mut pool = pool();
            pool.add(region);
            pool.take(block, values)
        };
        drop(turn);
        share.ok_or_else(|| refused("some thread cannot be reached"))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut pool = pool();
        let offset_in = |region: &Region| self.tp_offset.wrapping_sub(region.tp_offset);
        let region = pool.regions.iter_mut().find(|region| {
            let offset = offset_in(region);
            region.module == self.module && offset >= 0 && offset.cast_unsigned() < region.size
        });
        let Some(region) = region else { return };
        let start = offset_in(region).cast_unsigned();
        region.free.give(start..start.wrapping_add(self.size));
        // who has the turn looks at the end of it
        if !pool.is_changing() && pool.has_surplus() {
            pool.changing = Some(generation());
            drop(pool);
            end_turn();
        }
    }
}

/// Adds what an executable has set aside, unless it is there already.
pub(super) fn add(region: Region) {
    let mut pool = pool();
    if !pool.regions.iter().any(|known| known.tp_offset == region.tp_offset) {
        // before those of the C library, which others may need
        pool.regions.insert(0, region);
    }
}

/// The turn of a thread to ask the dynamic loader. At the end it gets back what is free where it can use it again.
struct Turn;

impl Turn {
    fn wait() -> Self {
        let begin = Instant::now();
        loop {
            let mut pool = pool();
            if !pool.is_changing() || begin.elapsed() >= PATIENCE {
                pool.changing = Some(generation());
                return Self;
            }
            drop(pool);
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        end_turn();
    }
}

fn end_turn() {
    loop {
        let mut pool = pool();
        let Some(surplus) = pool.take_surplus() else {
            pool.changing = None;
            return;
        };
        drop(pool);
        drop(surplus);
    }
}

impl Pool {
    /// Whether a thread asks the dynamic loader that is there: a child has none of its parent's but the one that forked.
    fn is_changing(&self) -> bool {
        self.changing.is_some_and(|of| of == generation())
    }

    fn take(&mut self, block: &TlsBlock, values: &[u8]) -> Option<Share> {
        self.regions.iter_mut().find_map(|region| region.take(block, values))
    }

    fn add(&mut self, region: Region) {
        let tp_offset = region.tp_offset.unsigned_abs();
        let is_nearer =
            |known: &Region| known.library.is_none() || known.tp_offset.unsigned_abs() < tp_offset;
        let place = self.regions.partition_point(is_nearer);
        self.regions.insert(place, region);
    }

    /// Whether the last region is the C library's, and free.
    fn has_surplus(&self) -> bool {
        self.regions.last().is_some_and(|last| last.library.is_some() && last.is_free())
    }

    /// The last region, if the C library can have it back.
    fn take_surplus(&mut self) -> Option<Region> {
        if self.has_surplus() { self.regions.pop() } else { None }
    }
}

impl Region {
    /// One of `size` zeros, a library of its own.
    fn open(size: u64) -> Result<Self, Error> {
        let block = TlsBlock { offset: 0, file_size: size, size, alignment: ALIGNMENT };
        let relocations = [DynamicRelocation::DtpModule, DynamicRelocation::TpOffset];
        let (library, [module, tp_offset]) = Library::new(&block, &[], &relocations, &[])?;
        let values = InitialValues { address: library.values(), is_read_only: false };
        Ok(Self {
            library: Some(library),
            module,
            start: 0,
            tp_offset: tp_offset.cast_signed(),
            size,
            values,
            clean: 0,
            free: FreeRanges::of(size),
        })
    }

    fn is_free(&self) -> bool {
        self.free.largest() == self.size
    }

    /// A part for a block, with its initial values in all threads.
    fn take(&mut self, block: &TlsBlock, values: &[u8]) -> Option<Share> {
        let size = usize::try_from(block.size).ok().filter(|&size| values.len() <= size)?;
        let base = self.tp_offset.cast_unsigned();
        let start = self.free.take(block.size, block.alignment.max(1), base)?;
        let end = start.saturating_add(block.size);
        let mut content = values.to_vec();
        content.resize(size, 0);
        let tp_offset = self.tp_offset.wrapping_add_unsigned(start);
        let are_zeros = self.clean <= start && content.iter().all(|byte| *byte == 0);
        // SAFETY: nobody has this part, in no thread, and threads that come copy the values only.
        let is_done = are_zeros
            || unsafe {
                self.values.write(start, &content) && everywhere::write(tp_offset, &content)
            };
        self.clean = self.clean.max(end);
        if !is_done {
            self.free.give(start..end);
            return None;
        }
        let start = self.start.wrapping_add(start);
        Some(Share { module: self.module, start, tp_offset, size: block.size })
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
        // SAFETY: as the caller guarantees.
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

    /// The dynamic loader, asked for a region, may wait for a thread that wants one itself: neither waits for ever.
    #[test]
    fn who_waits_too_long_goes_on() {
        let first = Turn::wait();
        let other = std::thread::spawn(|| drop(Turn::wait()));
        other.join().unwrap();
        drop(first);
        let block = TlsBlock { offset: 0, file_size: 0, size: 16, alignment: 16 };
        if !everywhere::is_possible() {
            return;
        }
        let share = Share::new(&block, &[]).unwrap();
        let is_near = |region: &Region| region.module == share.module;
        assert!(pool().regions.iter().any(is_near));
        drop(share);
        assert!(!pool().has_surplus(), "the C library has it again");
    }
}
