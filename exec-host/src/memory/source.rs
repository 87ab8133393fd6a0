//! Memory that others have for images: arenas of their own, shared memory, another process.

use core::fmt;
use elf_layout::Segment;
use std::io;
use std::sync::Arc;

/// What objects need of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequirements {
    /// Bytes.
    pub size: u64,
    /// What the address must be a multiple of, a power of two.
    pub alignment: u64,
    /// First address that the objects may not reach, if their code has room for low addresses only.
    pub limit: Option<u64>,
}

/// Where code and data go: [`Loader::memory`](crate::Loader::memory), [`Loader::link_into`](crate::Loader::link_into).
///
/// # Safety
/// What [`reserve`](Self::reserve) gives is as [`ImageMemory`] says.
pub unsafe trait MemorySource: fmt::Debug + Send + Sync {
    /// Memory for an image.
    ///
    /// # Errors
    /// Why there is none; the load then fails.
    fn reserve(&self, needed: &MemoryRequirements) -> io::Result<Box<dyn ImageMemory>>;
}

// SAFETY: what the source inside gives.
unsafe impl<S: MemorySource + ?Sized> MemorySource for Arc<S> {
    fn reserve(&self, needed: &MemoryRequirements) -> io::Result<Box<dyn ImageMemory>> {
        (**self).reserve(needed)
    }
}

/// Memory for one image. Dropped, it is given back: nothing of the image is used any more.
///
/// # Safety
/// From [`address`](Self::address) on, as many bytes as were asked for are this image's alone, where it will run; pages of a system page's size.
/// [`protect`](Self::protect) brings there what was written to [`bytes_mut`](Self::bytes_mut), before anything runs, with the permissions
/// that the segments have, and in a loader's own process in such a way that `mprotect` can change those of data.
pub unsafe trait ImageMemory: Send + Sync {
    /// Where the first byte will be.
    fn address(&self) -> u64;

    /// Where the image is written until it is protected: zeros at first, as many as were asked for.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Everything is written: gives segments, at their offsets, their permissions. Called once.
    ///
    /// # Errors
    /// Why that cannot be; the load then fails.
    fn protect(&mut self, segments: &[Segment]) -> io::Result<()>;
}
