//! What is needed of the operating system: files, ioctls, mappings. [`Linux`](super::Linux) has them.

use core::ptr::NonNull;

use super::call::Call;
use super::error::Error;

/// A structure that an ioctl reads and writes. Where it holds a pointer to the next one of a call, that is filled in by the system.
#[derive(Debug)]
pub struct Part<'a> {
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// Offset of the pointer to the part behind this one.
    pub pointer: Option<usize>,
}

/// An operating system with the driver's files, or a test that answers like one.
pub trait System: core::fmt::Debug + Send + Sync + 'static {
    /// An open file, closed on drop.
    type File: core::fmt::Debug + Send + Sync;
    /// Memory of a GPU, or of the system for it, as this process sees it; unmapped on drop.
    type Mapping: Mapping + core::fmt::Debug + Send + Sync;

    /// Opens a file for reading and writing; it is closed when another program is executed.
    ///
    /// # Errors
    /// [`Error::Open`].
    fn open(&self, path: &str) -> Result<Self::File, Error>;

    /// Number of a file in this process.
    fn descriptor(&self, file: &Self::File) -> i32;

    /// Makes a call. Each part's pointer is made to point to the next part.
    ///
    /// # Errors
    /// [`Error::Ioctl`]. What the driver itself says is in the first part.
    ///
    /// # Safety
    /// The parts are the structures of the call, and what addresses of this process they hold may be read and written there.
    unsafe fn ioctl(
        &self,
        file: &Self::File,
        call: Call,
        parts: &mut [Part<'_>],
    ) -> Result<(), Error>;

    /// Maps `size` bytes of a file for reading and writing, at `address` if one is given: nothing may be there.
    ///
    /// # Errors
    /// [`Error::Map`].
    fn map(
        &self,
        file: &Self::File,
        address: Option<u64>,
        size: u64,
    ) -> Result<Self::Mapping, Error>;
}

/// Memory that a GPU reads and writes too.
///
/// # Safety
/// As long as it lives, as many bytes as it says can be read and written where it says.
pub unsafe trait Mapping {
    /// Where this process sees it.
    fn address(&self) -> u64;

    /// Bytes.
    fn size(&self) -> u64;

    /// Reads a word of 4 bytes; nothing outside of the mapping or at an odd place.
    fn read(&self, offset: u64) -> Option<u32>;

    /// Writes words of 4 bytes, in order. Says whether they lie inside; nothing is written otherwise.
    #[must_use]
    fn write(&self, offset: u64, words: &[u32]) -> bool;

    /// Its first byte.
    fn start(&self) -> NonNull<u8>;

    /// Copies bytes into it from `offset` on. Says whether they lie inside; nothing is written otherwise.
    #[must_use]
    fn store(&self, offset: u64, bytes: &[u8]) -> bool;

    /// Copies its bytes from `offset` on. Says whether they lie inside; nothing is read otherwise.
    #[must_use]
    fn load(&self, offset: u64, bytes: &mut [u8]) -> bool;

    /// What was written before is seen by the GPU before what is written later.
    fn fence(&self);
}
