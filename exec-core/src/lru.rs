//! Keeps freed memory for the next one who asks for as much.

use core::fmt;

use crate::allocator::{Allocator, PeerMemory};
use crate::device_id::DeviceId;
use crate::error::Error;
use crate::spec::{ExternalMemory, Spec};
use crate::sync::SpinLock;

mod class;
mod free_lists;
mod limits;

use free_lists::{FreeLists, PoolKey};
pub use limits::Limits;

/// What an [`LruAllocator`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Times that kept memory was given out.
    pub hits: u64,
    /// Times that the device was asked.
    pub misses: u64,
    /// Pieces that were given back to the device because there were too many or too much.
    pub evicted: u64,
    /// Times that everything was given back because the device had no memory left.
    pub emptied: u64,
    /// Times that the device had an error when it took memory back.
    pub failed: u64,
    /// Bytes kept at the moment.
    pub held: u64,
    /// Pieces kept at the moment.
    pub number: usize,
    /// Bytes given out at the moment, as the device counts them: with what sizes are rounded up by.
    pub used: u64,
    /// The most bytes that were kept and given out at one time.
    pub high_water: u64,
}

/// An allocator that keeps what was freed, by size class and [`Spec`], and gives the latest piece out again.
///
/// Sizes are rounded up by a fifth at the most: four classes to each power of two, from 256 bytes on. Beyond its limits, the
/// piece that was freed first goes back to the device. When the device has no memory left, everything goes back, and it is
/// asked once more, for no byte too many. Any number of threads can use it; the device is never called under its lock.
///
/// Memory comes here only when nobody uses it: a [`Buffer`](crate::Buffer) that is freed while a queued call holds it arrives
/// after the call.
pub struct LruAllocator<A: Allocator> {
    inner: A,
    limits: Limits,
    state: SpinLock<State<A::Memory>>,
}

/// Memory from an [`LruAllocator`].
#[derive(Debug)]
pub struct CachedBlock<M> {
    memory: M,
    /// As the device counts them.
    bytes: u64,
    /// `None` if it is not to be kept.
    sort: Option<PoolKey>,
}

struct State<M> {
    free_lists: FreeLists<M>,
    statistics: Statistics,
}

impl<M> State<M> {
    fn took(&mut self, bytes: u64) {
        self.statistics.used = self.statistics.used.saturating_add(bytes);
        let all = self.statistics.used.saturating_add(self.free_lists.bytes());
        self.statistics.high_water = self.statistics.high_water.max(all);
    }
}

impl<A: Allocator> LruAllocator<A> {
    /// Keeps memory of `inner` up to these limits.
    #[must_use]
    pub const fn new(inner: A, limits: Limits) -> Self {
        let state = State { free_lists: FreeLists::new(), statistics: Statistics::ZERO };
        Self { inner, limits, state: SpinLock::new(state) }
    }

    /// The allocator beneath.
    #[must_use]
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// What was done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let state = self.state.lock();
        Statistics {
            held: state.free_lists.bytes(),
            number: state.free_lists.len(),
            ..state.statistics
        }
    }

    /// Gives everything that is kept back to the device, and says how many bytes that were.
    ///
    /// # Errors
    /// What the device says first; all is given back nevertheless.
    pub fn empty(&self) -> Result<u64, Error> {
        let (mut total, mut outcome) = (0u64, Ok(()));
        loop {
            // the lock is not held while the device works
            let oldest = self.state.lock().free_lists.pop_oldest();
            let Some((memory, bytes)) = oldest else { break };
            total = total.saturating_add(bytes);
            outcome = outcome.and(self.give_back(memory));
        }
        outcome.map(|()| total)
    }

    fn give_back(&self, memory: A::Memory) -> Result<(), Error> {
        let outcome = self.inner.release(memory);
        if outcome.is_err() {
            let mut state = self.state.lock();
            state.statistics.failed = state.statistics.failed.saturating_add(1);
        }
        outcome
    }

    /// Memory that was kept.
    #[inline]
    fn reuse(&self, sort: PoolKey, bytes: u64) -> Option<A::Memory> {
        let mut state = self.state.lock();
        match state.free_lists.pop_newest(sort, bytes) {
            Some(memory) => {
                state.statistics.hits = state.statistics.hits.saturating_add(1);
                state.took(bytes);
                Some(memory)
            }
            None => {
                state.statistics.misses = state.statistics.misses.saturating_add(1);
                None
            }
        }
    }

    /// Keeps a piece for which there may not be room, and gives back what has to go, or the piece itself.
    #[cold]
    fn make_room(&self, memory: A::Memory, sort: Option<PoolKey>, bytes: u64) -> Result<(), Error> {
        let sort = sort.filter(|_| bytes <= self.limits.bytes && self.limits.number > 0);
        let Some(sort) = sort else { return self.give_back(memory) };
        let mut outcome = Ok(());
        loop {
            let mut state = self.state.lock();
            if state.free_lists.have_room(bytes, self.limits) {
                state.free_lists.push(sort, bytes, memory);
                return outcome;
            }
            let oldest = state.free_lists.pop_oldest();
            state.statistics.evicted = state.statistics.evicted.saturating_add(1);
            drop(state);
            if let Some((oldest, _)) = oldest {
                outcome = outcome.and(self.give_back(oldest));
            }
        }
    }

    /// Memory from the device: a whole class of it, or if that is too much after all, just so many bytes.
    #[cold]
    fn fresh(
        &self,
        size: u64,
        sort: Option<PoolKey>,
        spec: Spec,
    ) -> Result<CachedBlock<A::Memory>, Error> {
        let bytes = sort.map_or(size, PoolKey::bytes);
        let (memory, sort, bytes) = match self.inner.allocate(bytes, spec) {
            Ok(memory) => (memory, sort, bytes),
            Err(Error::OutOfMemory { .. }) => {
                let mut state = self.state.lock();
                state.statistics.emptied = state.statistics.emptied.saturating_add(1);
                drop(state);
                // an error of giving back is counted, and what matters is whether there is memory now
                let _ = self.empty();
                (self.inner.allocate(size, spec)?, sort.filter(|sort| sort.bytes() == size), size)
            }
            Err(error) => return Err(error),
        };
        self.state.lock().took(bytes);
        Ok(CachedBlock { memory, sort, bytes })
    }
}

impl Statistics {
    const ZERO: Self = Self {
        hits: 0,
        misses: 0,
        evicted: 0,
        emptied: 0,
        failed: 0,
        held: 0,
        number: 0,
        used: 0,
        high_water: 0,
    };
}

impl<A: Allocator> Allocator for LruAllocator<A> {
    type Memory = CachedBlock<A::Memory>;

    fn device(&self) -> DeviceId {
        self.inner.device()
    }

    #[inline]
    fn allocate(&self, size: u64, spec: Spec) -> Result<Self::Memory, Error> {
        let sort = PoolKey::of(size, spec);
        let bytes = sort.map_or(0, PoolKey::bytes);
        let memory = loop {
            match sort.and_then(|sort| self.reuse(sort, bytes)) {
                None => return self.fresh(size, sort, spec),
                Some(memory) if self.inner.check(&memory).is_ok() => break memory,
                // it is of before a reset
                Some(memory) => drop(self.release(CachedBlock { memory, sort: None, bytes })),
            }
        };
        let kept = CachedBlock { memory, sort, bytes };
        if spec.is_zeroed() {
            // SAFETY: the memory was kept, so that nobody else has it.
            let outcome = unsafe { self.inner.zero(&kept.memory, size) };
            if let Err(error) = outcome {
                let _ = self.release(CachedBlock { sort: None, ..kept });
                return Err(error);
            }
        }
        Ok(kept)
    }

    fn adopt(&self, external: ExternalMemory, spec: Spec) -> Result<Self::Memory, Error> {
        // the device counts it as nothing
        Ok(CachedBlock { memory: self.inner.adopt(external, spec)?, bytes: 0, sort: None })
    }

    #[inline]
    fn release(&self, memory: Self::Memory) -> Result<(), Error> {
        let CachedBlock { memory, sort, bytes } = memory;
        let mut state = self.state.lock();
        state.statistics.used = state.statistics.used.saturating_sub(bytes);
        if let Some(sort) = sort
            && state.free_lists.have_room(bytes, self.limits)
        {
            state.free_lists.push(sort, bytes, memory);
            return Ok(());
        }
        drop(state);
        self.make_room(memory, sort, bytes)
    }

    fn address(&self, memory: &Self::Memory) -> u64 {
        self.inner.address(&memory.memory)
    }

    fn is_host(&self, memory: &Self::Memory) -> bool {
        self.inner.is_host(&memory.memory)
    }

    fn check(&self, memory: &Self::Memory) -> Result<(), Error> {
        self.inner.check(&memory.memory)
    }

    unsafe fn copy_in(&self, memory: &Self::Memory, at: u64, from: &[u8]) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.inner.copy_in(&memory.memory, at, from) }
    }

    unsafe fn copy_out(&self, memory: &Self::Memory, at: u64, to: &mut [u8]) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.inner.copy_out(&memory.memory, at, to) }
    }

    unsafe fn zero(&self, memory: &Self::Memory, size: u64) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.inner.zero(&memory.memory, size) }
    }

    unsafe fn bytes<'m>(&self, memory: &'m Self::Memory) -> Option<&'m [u8]> {
        // SAFETY: as the caller says.
        unsafe { self.inner.bytes(&memory.memory) }
    }

    unsafe fn bytes_mut<'m>(&self, memory: &'m Self::Memory) -> Option<&'m mut [u8]> {
        // SAFETY: as the caller says.
        unsafe { self.inner.bytes_mut(&memory.memory) }
    }

    fn import(&self, memory: PeerMemory) -> Result<u64, Error> {
        self.inner.import(memory)
    }

    fn forget(&self, memory: PeerMemory, address: u64) {
        self.inner.forget(memory, address);
    }
}

impl<A: Allocator> Drop for LruAllocator<A> {
    fn drop(&mut self) {
        while let Some((memory, _)) = self.state.get_mut().free_lists.pop_oldest() {
            let _ = self.inner.release(memory);
        }
    }
}

impl<A: Allocator + fmt::Debug> fmt::Debug for LruAllocator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LruAllocator")
            .field("inner", &self.inner)
            .field("limits", &self.limits)
            .field("statistics", &self.statistics())
            .finish()
    }
}
