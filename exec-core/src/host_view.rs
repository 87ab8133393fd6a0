//! The bytes of a buffer in place, where its memory is memory of this process.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::allocator::Allocator;
use crate::buffer::{Held, View};
use crate::error::Error;
use crate::uses::Use;

/// Bytes of a buffer to read in place. No call can use the buffer meanwhile.
pub struct HostView<A: Allocator>(Held<A>);

/// Bytes of a buffer to read and write in place. Nobody else can use the buffer meanwhile.
pub struct HostViewMut<A: Allocator>(Held<A>);

const NO_HOST: Error = Error::Unsupported { what: "host views of this memory" };

impl<A: Allocator> View<A> {
    /// The bytes, to read in place.
    ///
    /// # Errors
    /// [`Error::Freed`]; [`Error::InUse`] if queued calls or a writer use the buffer; [`Error::Unsupported`] if the host cannot
    /// read the memory.
    pub fn host(&self) -> Result<HostView<A>, Error> {
        let held = self.begin(Use::Read)?;
        read(&held).ok_or(NO_HOST)?;
        Ok(HostView(held))
    }

    /// The bytes, to read and write in place.
    ///
    /// # Errors
    /// As [`host`](Self::host), and [`Error::InUse`] if anybody reads.
    pub fn host_mut(&self) -> Result<HostViewMut<A>, Error> {
        let mut held = self.begin(Use::Write)?;
        write(&mut held).ok_or(NO_HOST)?;
        Ok(HostViewMut(held))
    }
}

/// The bytes of a view that the host uses.
fn read<A: Allocator>(held: &Held<A>) -> Option<&[u8]> {
    let (allocator, memory) = held.parts().ok()?;
    // SAFETY: `held` is a use by the host: no call has the buffer, and no other writer.
    let all = unsafe { allocator.bytes(memory)? };
    all.get(usize::try_from(held.offset()).ok()?..)?.get(..usize::try_from(held.size()).ok()?)
}

/// The bytes of a view that the host writes.
fn write<A: Allocator>(held: &mut Held<A>) -> Option<&mut [u8]> {
    let (offset, size) = (held.offset(), held.size());
    let (allocator, memory) = held.parts().ok()?;
    // SAFETY: `held` is the only use of the buffer, and is borrowed as long as the bytes.
    let all = unsafe { allocator.bytes_mut(memory)? };
    all.get_mut(usize::try_from(offset).ok()?..)?.get_mut(..usize::try_from(size).ok()?)
}

impl<A: Allocator> Deref for HostView<A> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        read(&self.0).unwrap_or_default()
    }
}

impl<A: Allocator> Deref for HostViewMut<A> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        read(&self.0).unwrap_or_default()
    }
}

impl<A: Allocator> DerefMut for HostViewMut<A> {
    fn deref_mut(&mut self) -> &mut [u8] {
        write(&mut self.0).unwrap_or_default()
    }
}

impl<A: Allocator> fmt::Debug for HostView<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostView").field("size", &self.0.size()).finish()
    }
}

impl<A: Allocator> fmt::Debug for HostViewMut<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostViewMut").field("size", &self.0.size()).finish()
    }
}
