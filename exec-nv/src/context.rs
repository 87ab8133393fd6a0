//! A device's primary context: what all memory, code and queues of a device belong to.

use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::{CUcontext, CUctx_st, CUdevice};
use exec_core::{DeviceId, Sticky};

use crate::driver::Driver;
use crate::error::Error;

/// Results after which nothing works any more until the context is reset: of what a kernel did, or of the device itself. Among
/// them `CUDA_ERROR_CONTAINED` (226); not `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` (720), which is of a launch that was not made.
const FATAL: [u32; 14] = [46, 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;

/// A device's primary context, retained.
pub(crate) struct Context {
    driver: Arc<Driver>,
    device: CUdevice,
    handle: AtomicPtr<CUctx_st>,
    id: DeviceId,
    sticky: Sticky,
    /// How often it was reset: handles from before are gone.
    generation: AtomicU64,
}

// SAFETY: the driver's functions may be called by any thread, which makes the context its own first.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Contexts of this process, to find another device's memory by.
static ALL: Mutex<Vec<(DeviceId, Weak<Context>)>> = Mutex::new(Vec::new());

impl Context {
    pub(crate) fn retain(driver: &Arc<Driver>, ordinal: u32) -> Result<Arc<Self>, Error> {
        let count = driver.device_count()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
        let number = match number {
            Some(number) => number,
            None if count == 0 => return Err(Error::NoDevice),
            None => return Err(Error::NoSuchDevice { ordinal, count }),
        };
        let (mut device, mut handle) = (0, ptr::null_mut());
        // SAFETY: the places are ours.
        unsafe {
            driver.cuDeviceGet(&raw mut device, number)?;
            driver.cuDevicePrimaryCtxRetain(&raw mut handle, device)?;
        }
        let context = Arc::new(Self {
            driver: Arc::clone(driver),
            device,
            handle: AtomicPtr::new(handle),
            id: DeviceId::unique(),
            sticky: Sticky::new(),
            generation: AtomicU64::new(0),
        });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, context)| context.strong_count() > 0);
        all.push((context.id, Arc::downgrade(&context)));
        Ok(context)
    }

    /// The context of another device of this crate.
    pub(crate) fn of(id: DeviceId) -> Option<Arc<Self>> {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(other, _)| *other == id).and_then(|(_, context)| context.upgrade())
    }

    /// Makes the context this thread's.
    pub(crate) fn enter(&self) -> Result<&Driver, Error> {
        // SAFETY: the context is retained as long as this lives.
        unsafe { self.driver.cuCtxSetCurrent(self.handle())? };
        Ok(&self.driver)
    }

    /// Keeps an error that nothing works after.
    pub(crate) fn note<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(error @ Error::Driver { code, .. }) = &outcome
            && FATAL.contains(code)
        {
            self.sticky.set(exec_core::Error::Device(Arc::new(error.clone())));
        }
        outcome
    }

    /// Runs `call` in the context, unless an error sticks to it.
    pub(crate) fn run<T>(
        &self,
        call: impl FnOnce(&Driver) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.sticky.check().map_err(Error::Core)?;
        let outcome = self.enter().and_then(call);
        self.note(outcome)
    }

    /// Runs `call` in the context if handles of `generation` are still there. For giving things back.
    pub(crate) fn release(
        &self,
        generation: u64,
        call: impl FnOnce(&Driver) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if generation != self.generation() {
            return Ok(());
        }
        let outcome = self.enter().and_then(call);
        self.note(outcome)
    }

    /// Takes the error away that sticks. The context is made anew if it was of no use any more: all memory and code is gone.
    pub(crate) fn reset(&self) -> Option<exec_core::Error> {
        let error = self.sticky.take()?;
        self.generation.fetch_add(1, Ordering::Relaxed);
        if let Err(failed) = self.renew() {
            self.sticky.set(exec_core::Error::Device(Arc::new(failed)));
        }
        Some(error)
    }

    /// The context anew, retained once as before.
    fn renew(&self) -> Result<(), Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: what was made in the context is not used again: its generation is over. The place is ours.
        unsafe {
            self.driver.cuDevicePrimaryCtxReset_v2(self.device)?;
            self.driver.cuDevicePrimaryCtxRetain(&raw mut handle, self.device)?;
            self.driver.cuDevicePrimaryCtxRelease_v2(self.device)?;
        }
        self.handle.store(handle, Ordering::Relaxed);
        Ok(())
    }

    /// Makes memory of `peer` usable here.
    pub(crate) fn reach(&self, peer: &Self) -> Result<(), Error> {
        if peer.id == self.id {
            return Ok(());
        }
        let mut can: c_int = 0;
        self.run(|driver| {
            // SAFETY: the place is ours, both contexts are there.
            unsafe {
                driver.cuDeviceCanAccessPeer(&raw mut can, self.device, peer.device)?;
                if can == 0 {
                    return Err(Error::NoPeerAccess);
                }
                match driver.cuCtxEnablePeerAccess(peer.handle(), 0) {
                    Err(Error::Driver { code: PEER_ACCESS_ALREADY_ENABLED, .. }) => Ok(()),
                    outcome => outcome,
                }
            }
        })
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(crate) const fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    pub(crate) const fn device(&self) -> CUdevice {
        self.device
    }

    pub(crate) fn handle(&self) -> CUcontext {
        self.handle.load(Ordering::Relaxed)
    }

    pub(crate) const fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) const fn sticky(&self) -> &Sticky {
        &self.sticky
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once; nothing of it is left, as all that is made in it keeps it.
        let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
