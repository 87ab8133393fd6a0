//! A device's primary context: what all memory, code and queues of a device belong to.

use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::{
    CUcontext, CUctx_st, CUdevice, CUdevice_attribute, CUmemAccess_flags, CUmemAccessDesc,
    CUmemLocation, CUmemLocationType, CUmemoryPool, CUstream,
};
use exec_core::{DeviceId, Sticky};

use crate::driver::{Driver, DriverId};
use crate::error::Error;

/// Results after which nothing works any more until the context is reset: of what a kernel did, or of the device itself. Among
/// them `CUDA_ERROR_CONTAINED` (226); not `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` (720), which is of a launch that was not made.
const FATAL: [u32; 14] = [46, 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];

/// Whether nothing works any more after a result.
pub(crate) fn is_fatal(code: u32) -> bool {
    FATAL.contains(&code)
}

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;

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
    /// How often it is retained.
    retains: AtomicU32,
    /// How much memory there is that the host sees, too: it must not go under the views of it.
    host_memory: Mutex<usize>,
    /// Whether the host may touch managed memory while kernels run.
    host_sees_managed: bool,
    /// The stream for transfers, and the generation that it is of.
    transfers: Mutex<Option<(u64, CUstream)>>,
}

// SAFETY: the driver's functions may be called by any thread, which makes the context its own first.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Contexts of this process, to find another device's memory by.
static ALL: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// A context as long as somebody has it, and what tells it from others: these are not held, also for a moment, by who looks for one, so that
/// whoever drops the last handle of a device has given its context back.
struct Known {
    id: DeviceId,
    driver: DriverId,
    device: CUdevice,
    context: Weak<Context>,
}

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
        // SAFETY: the place is ours.
        unsafe { driver.cuDeviceGet(&raw mut device, number)? };
        // a device has one primary context: who resets it, does so for all
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let driver_id = driver.id();
        let same = all.iter().filter(|known| known.device == device && known.driver == driver_id);
        if let Some(context) = same.filter_map(|known| known.context.upgrade()).next() {
            return Ok(context);
        }
        let mut concurrent: c_int = 0;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as u32;
        // SAFETY: the places are ours.
        unsafe {
            driver.cuDeviceGetAttribute(&raw mut concurrent, attribute, device)?;
            driver.cuDevicePrimaryCtxRetain(&raw mut handle, device)?;
        }
        let context = Arc::new(Self {
            driver: Arc::clone(driver),
            device,
            handle: AtomicPtr::new(handle),
            id: DeviceId::unique(),
            sticky: Sticky::new(),
            generation: AtomicU64::new(0),
            retains: AtomicU32::new(1),
            host_memory: Mutex::new(0),
            host_sees_managed: concurrent != 0,
            transfers: Mutex::new(None),
        });
        all.retain(|known| known.context.strong_count() > 0);
        let known = Arc::downgrade(&context);
        all.push(Known { id: context.id, driver: driver_id, device, context: known });
        Ok(context)
    }

    /// The context of another device of this crate.
    pub(crate) fn of(id: DeviceId) -> Option<Arc<Self>> {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.id == id).and_then(|known| known.context.upgrade())
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
            && is_fatal(*code)
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

    /// [`Error::Stale`] if the context was reset since handles of `generation` were made.
    pub(crate) fn check(&self, generation: u64) -> Result<(), Error> {
        if generation == self.generation() { Ok(()) } else { Err(Error::Stale) }
    }

    /// [`exec_core::Error::OtherDevice`] unless it is of this device.
    pub(crate) fn expect(&self, found: DeviceId) -> Result<(), exec_core::Error> {
        let expected = self.id;
        if found == expected {
            Ok(())
        } else {
            Err(exec_core::Error::OtherDevice { expected, found })
        }
    }

    /// Has `call` put something into a stream of its own, beside all others, and waits for it.
    pub(crate) fn transfer(
        &self,
        call: impl FnOnce(&Driver, CUstream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.run(|driver| {
            let stream = self.transfers()?;
            call(driver, stream)?;
            // SAFETY: the stream is there as long as the context.
            unsafe { driver.cuStreamSynchronize(stream) }
        })
    }

    /// Waits for all that runs in the context.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the context is this thread's.
        self.run(|driver| unsafe { driver.cuCtxSynchronize() })
    }

    /// The stream for transfers, a new one if the context was reset.
    pub(crate) fn transfers(&self) -> Result<CUstream, Error> {
        let mut known = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation();
        if let Some((of, stream)) = *known
            && of == generation
        {
            return Ok(stream);
        }
        let mut stream = ptr::null_mut();
        // SAFETY: the place is ours.
        unsafe { self.driver.cuStreamCreateWithPriority(&raw mut stream, NON_BLOCKING, 0)? };
        *known = Some((generation, stream));
        Ok(stream)
    }

    /// Has `call` take memory that the host sees, too, which is counted until it is [given back](Self::gives_host_memory).
    pub(crate) fn take_host_memory<T>(
        &self,
        call: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut count = self.host_memory.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = call()?;
        *count = count.saturating_add(1);
        Ok(taken)
    }

    /// One piece of it is not used any more.
    pub(crate) fn gives_host_memory(&self) {
        let mut count = self.host_memory.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
    }

    /// Takes the error away that sticks. The context is made anew if it was of no use any more: all memory and code is gone. Nothing is done
    /// as long as there is memory that the host sees, too.
    pub(crate) fn reset(&self) -> Option<exec_core::Error> {
        let host_memory = self.host_memory.lock().unwrap_or_else(PoisonError::into_inner);
        if *host_memory > 0 {
            return None;
        }
        let error = self.sticky.get()?;
        // it sticks until there is a context again: nobody works in one that is half gone
        self.generation.fetch_add(1, Ordering::Relaxed);
        let renewed = self.renew();
        self.sticky.take();
        if let Err(failed) = renewed {
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
        }
        self.handle.store(handle, Ordering::Relaxed);
        // SAFETY: it was just retained once more.
        let released = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
        if released.is_err() {
            self.retains.fetch_add(1, Ordering::Relaxed);
        }
        released
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
                    Err(Error::Driver { code: PEER_ACCESS_ALREADY_ENABLED, .. }) => {}
                    outcome => outcome?,
                }
                self.reach_pool(driver, peer)
            }
        })
    }

    /// The pool of the device's own. Others of the process may have made another one that which `cuMemAllocAsync` takes from: who gave that to
    /// whom is not known here, nor how long it is there.
    pub(crate) fn pool(&self, driver: &Driver) -> Result<CUmemoryPool, Error> {
        let mut pool = ptr::null_mut();
        // SAFETY: the place is ours.
        unsafe { driver.cuDeviceGetDefaultMemPool(&raw mut pool, self.device)? };
        Ok(pool)
    }

    /// Makes memory of the pool of `peer` usable here, which is not part of its context.
    fn reach_pool(&self, driver: &Driver, peer: &Self) -> Result<(), Error> {
        let location = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        };
        let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = CUmemAccessDesc { location, flags };
        // SAFETY: the place is ours, the pool is there.
        let outcome = peer
            .pool(driver)
            .and_then(|pool| unsafe { driver.cuMemPoolSetAccess(pool, &raw const access, 1) });
        match outcome {
            // without pools there is no memory of them
            Err(Error::Driver { code: NOT_SUPPORTED, .. }) => Ok(()),
            outcome => outcome,
        }
    }

    pub(crate) const fn host_sees_managed(&self) -> bool {
        self.host_sees_managed
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
        let transfers = *self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generation, stream)) = transfers {
            // SAFETY: ours, and all transfers were waited for.
            let destroy = |driver: &Driver| unsafe { driver.cuStreamDestroy_v2(stream) };
            let _ = self.release(generation, destroy);
        }
        for _ in 0..self.retains.load(Ordering::Relaxed) {
            // SAFETY: retained so often; nothing of it is left, as all that is made in it keeps it.
            let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}
