//! Devices: what has memory and runs programs.

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::allocator::Allocator;
use crate::buffer::Buffer;
use crate::device_id::DeviceId;
use crate::error::Error;
use crate::program::Program;
use crate::signature::Signature;
use crate::spec::Spec;
use crate::sync::Mutex;

/// What sort of device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor that this process runs on.
    Host,
    /// A GPU.
    Gpu,
}

/// How much memory a device has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// All of it.
    pub total: u64,
    /// What can be allocated now, roughly.
    pub available: u64,
}

/// Something that has memory and runs programs.
///
/// An error of the device itself, or of a running function, sticks: it is what every later call returns, queued ones
/// included, until [`reset`](Self::reset).
pub trait Device: Send + Sync {
    /// What its memory is from.
    type Allocator: Allocator;
    /// A loaded image.
    type Image: Send + Sync;
    /// A function of an image.
    type Program: Program<Allocator = Self::Allocator>;

    /// Its identity.
    fn id(&self) -> DeviceId;

    /// What people call it.
    fn name(&self) -> String;

    /// What sort of device it is.
    fn kind(&self) -> DeviceKind;

    /// How much memory it has.
    ///
    /// # Errors
    /// What the device says.
    fn memory(&self) -> Result<MemoryInfo, Error>;

    /// What its memory is from.
    fn allocator(&self) -> &Arc<Self::Allocator>;

    /// Loads an image; constructors in it do not run yet.
    ///
    /// # Errors
    /// [`Error::Load`], and what sticks to the device.
    fn load(&self, image: &[u8]) -> Result<Arc<Self::Image>, Error>;

    /// A function of an image. If its parameters are known, calls are checked against them.
    ///
    /// # Errors
    /// [`Error::NoFunction`], and what sticks to the device.
    fn program(
        &self,
        image: &Arc<Self::Image>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<Self::Program, Error>;

    /// Waits until everything in the queue is done.
    ///
    /// # Errors
    /// What sticks to the device.
    fn synchronize(&self) -> Result<(), Error>;

    /// What sticks to the device, if anything.
    fn fault(&self) -> Option<Error>;

    /// Makes the device usable after an error, and says what that was.
    fn reset(&self) -> Option<Error>;

    /// A buffer of the device's memory.
    ///
    /// # Errors
    /// As [`Buffer::new`], and what sticks to the device.
    fn buffer(&self, size: u64, spec: Spec) -> Result<Buffer<Self::Allocator>, Error> {
        match self.fault() {
            Some(error) => Err(error),
            None => Buffer::new(self.allocator(), size, spec),
        }
    }
}

/// An error that stays until it is taken away: the first one, as what follows is often its consequence.
#[derive(Debug, Default)]
pub struct Sticky {
    is_set: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Sticky {
    /// No error yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { is_set: AtomicBool::new(false), error: Mutex::new(None) }
    }

    /// Nothing, or the error.
    ///
    /// # Errors
    /// The error that sticks.
    pub fn check(&self) -> Result<(), Error> {
        if !self.is_set.load(Ordering::Acquire) {
            return Ok(());
        }
        self.get().map_or(Ok(()), Err)
    }

    /// The error that sticks.
    #[must_use]
    pub fn get(&self) -> Option<Error> {
        self.error.lock().clone()
    }

    /// Keeps an error, unless there is one.
    pub fn set(&self, error: Error) {
        let mut kept = self.error.lock();
        kept.get_or_insert(error);
        self.is_set.store(true, Ordering::Release);
    }

    /// Takes the error away.
    pub fn take(&self) -> Option<Error> {
        let mut error = self.error.lock();
        self.is_set.store(false, Ordering::Release);
        error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_stays_until_taken() {
        let sticky = Sticky::new();
        assert!(sticky.check().is_ok());
        sticky.set(Error::InUse);
        sticky.set(Error::Empty);
        assert!(matches!(sticky.check(), Err(Error::InUse)));
        assert!(matches!(sticky.check(), Err(Error::InUse)));
        assert!(matches!(sticky.take(), Some(Error::InUse)));
        assert!(sticky.check().is_ok() && sticky.take().is_none());
    }
}
