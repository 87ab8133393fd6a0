//! Copies: host to device, device to host, device to device.

use alloc::vec::Vec;

use crate::allocator::Allocator;
use crate::buffer::{Held, View};
use crate::error::Error;
use crate::uses::Use;

/// Bytes that are on the host at a time when two devices have no better way.
const CHUNK: u64 = 1 << 20;

impl<A: Allocator> View<A> {
    /// Copies `from` to byte `at` of the view and those behind it. Synchronize the device first: a buffer that queued calls use
    /// is in use.
    ///
    /// # Errors
    /// [`Error::Freed`], [`Error::InUse`], [`Error::Outside`]; what the device says.
    pub fn copy_in(&self, at: u64, from: &[u8]) -> Result<(), Error> {
        self.check(at, from.len() as u64)?;
        put(&self.begin(Use::Write)?, at, from)
    }

    /// Copies byte `at` of the view and those behind it to `to`. Synchronize the device first: a buffer that queued calls use is
    /// in use.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub fn copy_out(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        self.check(at, to.len() as u64)?;
        take(&self.begin(Use::Read)?, at, to)
    }
}

/// Copies between views of one size, on one device or two.
///
/// # Errors
/// [`Error::Sizes`], [`Error::Freed`], [`Error::InUse`]; what the devices say.
pub fn copy<A: Allocator, B: Allocator>(from: &View<A>, to: &View<B>) -> Result<(), Error> {
    if from.size() != to.size() {
        return Err(Error::Sizes { from: from.size(), to: to.size() });
    }
    if from.is_beside(to) {
        // may overlap: all of it is read before any is written
        let mut bytes = room(from.size())?;
        from.copy_out(0, &mut bytes)?;
        return to.copy_in(0, &bytes);
    }
    let (from, to) = (from.begin(Use::Read)?, to.begin(Use::Write)?);
    if let Some(bytes) = lend(&from)? {
        return put(&to, 0, bytes);
    }
    let mut chunk = room(from.size().min(CHUNK))?;
    let mut at = 0;
    while at < from.size() {
        let size = (from.size() - at).min(CHUNK);
        let Some(part) = chunk.get_mut(..size as usize) else { break };
        take(&from, at, part)?;
        put(&to, at, part)?;
        at += size;
    }
    Ok(())
}

/// The source in place, if it is memory of this process.
fn lend<A: Allocator>(from: &Held<A>) -> Result<Option<&[u8]>, Error> {
    let (allocator, memory) = from.parts()?;
    // SAFETY: `from` is a use by the host, borrowed as long as the bytes: nobody writes.
    let all = unsafe { allocator.bytes(memory) };
    let range = usize::try_from(from.offset()).ok().zip(usize::try_from(from.size()).ok());
    Ok(all.zip(range).and_then(|(all, (offset, size))| all.get(offset..)?.get(..size)))
}

/// Zeros to copy through.
fn room(size: u64) -> Result<Vec<u8>, Error> {
    let fail = Error::OutOfMemory { size };
    let Ok(size) = usize::try_from(size) else { return Err(fail) };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| fail)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Writes to a view that was begun for writing, inside of it.
fn put<A: Allocator>(to: &Held<A>, at: u64, from: &[u8]) -> Result<(), Error> {
    let (allocator, memory) = to.parts()?;
    // SAFETY: `to` is the only use of the buffer.
    unsafe { allocator.copy_in(memory, to.offset().saturating_add(at), from) }
}

/// Reads from a view that was begun for reading, inside of it.
fn take<A: Allocator>(from: &Held<A>, at: u64, to: &mut [u8]) -> Result<(), Error> {
    let (allocator, memory) = from.parts()?;
    // SAFETY: `from` is a use by the host: nobody writes.
    unsafe { allocator.copy_out(memory, from.offset().saturating_add(at), to) }
}
