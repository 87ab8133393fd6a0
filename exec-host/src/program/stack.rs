//! The stack of a program: as large as the system would let it become (`RLIMIT_STACK`), with pages on both sides that nobody has. Who goes
//! beyond it is told so by a signal, as by the kernel's stack, and the C library finds its ends in the list of mappings.

use crate::error::Error;
use crate::memory::{Mapping, MappingOptions};
use core::mem::MaybeUninit;
use elf_core::SegmentFlags;

/// Bytes of a stack that has no limit, and at most.
const MOST: u64 = if size_of::<usize>() == 8 { 1 << 30 } else { 64 << 20 };

/// What the kernel needs itself of any.
const LEAST: u64 = 256 << 10;

/// Bytes where there is no memory for more.
const USUAL: u64 = 8 << 20;

/// As many bytes below the stack nobody has, as the kernel has it: a frame that is larger than a page would go beyond one of these.
const GUARD: u64 = 1 << 20;

/// A stack, its guards, and where the latter begin and end.
pub(super) struct Stack {
    memory: Mapping,
    size: u64,
}

impl Stack {
    /// # Errors
    /// There is no memory.
    pub(super) fn new() -> Result<Self, Error> {
        let page = rustix::param::page_size() as u64;
        let of = |size: u64| {
            let size = size.next_multiple_of(page);
            let all = size.saturating_add(2 * GUARD);
            let options = MappingOptions { size: all, alignment: 16, ..MappingOptions::default() };
            Ok(Self { memory: Mapping::new(&options)?, size })
        };
        let limit = limit();
        of(limit).or_else(|error| if limit > USUAL { of(USUAL) } else { Err(error) })
    }

    /// The address behind it.
    pub(super) fn top(&self) -> u64 {
        self.memory.address().wrapping_add(GUARD).wrapping_add(self.size)
    }

    /// Its last `size` bytes, if it has so many.
    pub(super) fn last_mut(&mut self, size: u64) -> Option<&mut [u8]> {
        let end = GUARD.saturating_add(self.size);
        let start = end.checked_sub(size).filter(|start| *start >= GUARD)?;
        self.memory.bytes_mut().get_mut(start as usize..end as usize)
    }

    /// Takes its guards away from everybody. It stays for ever.
    ///
    /// # Errors
    /// The system refuses it.
    pub(super) fn leave(self) -> Result<(), Error> {
        for offset in [0, GUARD.saturating_add(self.size)] {
            self.memory.set_permissions(offset, GUARD, SegmentFlags::empty())?;
        }
        core::mem::forget(self);
        Ok(())
    }
}

/// How many bytes a stack may have in this process.
fn limit() -> u64 {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: there is room for the result, which is there if the call succeeds.
    let soft = unsafe {
        match libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) {
            0 => limit.assume_init().rlim_cur,
            _ => return USUAL,
        }
    };
    wide(soft).clamp(LEAST, MOST)
}

/// Limits are as long as a word.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}
