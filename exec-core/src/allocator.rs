//! Where memory comes from: what an executor implements.

use alloc::vec;

use crate::device_id::DeviceId;
use crate::error::Error;
use crate::spec::{ExternalMemory, Spec};

/// Memory of one device that another is to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerMemory {
    /// The device it is of.
    pub device: DeviceId,
    /// Where it is there.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether the address is also one of this process.
    pub is_host: bool,
}

/// Gives and takes memory of one device. [`Buffer`](crate::Buffer) is what users have of it.
///
/// Every memory has at least the bytes asked for, initialized (to whatever), at an address aligned as asked for.
pub trait Allocator: Send + Sync {
    /// What stands for a stretch of memory. Whoever has it, owns it.
    type Memory: Send + Sync;

    /// The device whose memory it is.
    fn device(&self) -> DeviceId;

    /// `size` bytes of memory. `size` is not 0 and the alignment a power of two.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Alignment`], [`Error::Unsupported`], or what the device says.
    fn allocate(&self, size: u64, spec: Spec) -> Result<Self::Memory, Error>;

    /// All of a stretch of memory that is there already, and stays the caller's.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if that cannot be; [`Error::Empty`], [`Error::Alignment`].
    fn adopt(&self, external: ExternalMemory, spec: Spec) -> Result<Self::Memory, Error> {
        let _ = (external, spec);
        Err(Error::Unsupported { what: "memory of the caller's" })
    }

    /// Takes memory back. External memory stays what it is.
    ///
    /// # Errors
    /// What the device says; the memory is gone all the same.
    fn release(&self, memory: Self::Memory) -> Result<(), Error>;

    /// Where the memory is, as programs of the device see it.
    fn address(&self, memory: &Self::Memory) -> u64;

    /// Whether the address is also one of this process.
    fn is_host(&self, _memory: &Self::Memory) -> bool {
        false
    }

    /// Whether the memory is still there: asked before each use.
    ///
    /// # Errors
    /// [`Error::Lost`] if it went with a reset of the device.
    fn check(&self, _memory: &Self::Memory) -> Result<(), Error> {
        Ok(())
    }

    /// Copies `from` to byte `at` and those behind it.
    ///
    /// # Errors
    /// [`Error::Outside`], or what the device says.
    ///
    /// # Safety
    /// Nobody else reads or writes the memory meanwhile.
    unsafe fn copy_in(&self, memory: &Self::Memory, at: u64, from: &[u8]) -> Result<(), Error>;

    /// Copies byte `at` and those behind it to `to`.
    ///
    /// # Errors
    /// [`Error::Outside`], or what the device says.
    ///
    /// # Safety
    /// Nobody else writes the memory meanwhile.
    unsafe fn copy_out(&self, memory: &Self::Memory, at: u64, to: &mut [u8]) -> Result<(), Error>;

    /// Sets the first `size` bytes to zero.
    ///
    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    ///
    /// # Safety
    /// As for [`copy_in`](Self::copy_in).
    unsafe fn zero(&self, memory: &Self::Memory, size: u64) -> Result<(), Error> {
        let zeros = vec![0; size.min(1 << 16) as usize];
        let mut at = 0;
        while at < size {
            let some = zeros.get(..(size - at).min(1 << 16) as usize).unwrap_or(&zeros);
            // SAFETY: as the caller says.
            unsafe { self.copy_in(memory, at, some)? };
            at = at.saturating_add(some.len() as u64);
        }
        Ok(())
    }

    /// The bytes themselves, if they are memory of this process.
    ///
    /// # Safety
    /// As long as the reference lives, nobody writes the memory.
    unsafe fn bytes<'m>(&self, _memory: &'m Self::Memory) -> Option<&'m [u8]> {
        None
    }

    /// The bytes themselves, if they are memory of this process.
    ///
    /// # Safety
    /// As long as the reference lives, nobody else reads or writes the memory.
    #[expect(clippy::mut_from_ref, reason = "the memory is not the value that stands for it")]
    unsafe fn bytes_mut<'m>(&self, _memory: &'m Self::Memory) -> Option<&'m mut [u8]> {
        None
    }

    /// Makes memory of another device usable by programs of this one: its address here.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no way, or what the device says.
    fn import(&self, _memory: PeerMemory) -> Result<u64, Error> {
        Err(Error::Unsupported { what: "memory of that other device" })
    }

    /// Ends what [`import`](Self::import) began.
    fn forget(&self, _memory: PeerMemory, _address: u64) {}
}
