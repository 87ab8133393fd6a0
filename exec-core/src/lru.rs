//! Keeps freed memory for the next one who asks for as much.

use core::fmt;

use crate::allocator::{Allocator, Foreign};
use crate::device_id::DeviceId;
use crate::error::Error;
use crate::spec::{External, Spec};
use crate::sync::Brief;

mod class;
mod limits;
mod shelves;

pub use limits::Limits;
use shelves::{Shelves, Sort};

/// What an [`LruAllocator`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
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
    state: Brief<State<A::Memory>>,
}

/// Memory from an [`LruAllocator`].
#[derive(Debug)]
pub struct Kept<M> {
    memory: M,
    /// As the device counts them.
    bytes: u64,
    /// `None` if it is not to be kept.
    sort: Option<Sort>,
}

struct State<M> {
    shelves: Shelves<M>,
    figures: Figures,
}

impl<M> State<M> {
    fn took(&mut self, bytes: u64) {
        self.figures.used = self.figures.used.saturating_add(bytes);
        let all = self.figures.used.saturating_add(self.shelves.bytes());
        self.figures.high_water = self.figures.high_water.max(all);
    }
}

impl<A: Allocator> LruAllocator<A> {
    /// Keeps memory of `inner` up to these limits.
    #[must_use]
    pub const fn new(inner: A, limits: Limits) -> Self {
        let state = State { shelves: Shelves::new(), figures: Figures::ZERO };
        Self { inner, limits, state: Brief::new(state) }
    }

    /// The allocator beneath.
    #[must_use]
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// What was done so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let state = self.state.lock();
        Figures { held: state.shelves.bytes(), number: state.shelves.len(), ..state.figures }
    }

    /// Gives everything that is kept back to the device, and says how many bytes that were.
    ///
    /// # Errors
    /// What the device says first; all is given back nevertheless.
    pub fn empty(&self) -> Result<u64, Error> {
        let (mut total, mut outcome) = (0u64, Ok(()));
        loop {
            // the lock is not held while the device works
            let oldest = self.state.lock().shelves.pop_oldest();
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
            state.figures.failed = state.figures.failed.saturating_add(1);
        }
        outcome
    }

    /// Memory that was kept.
    #[inline]
    fn reuse(&self, sort: Sort, bytes: u64) -> Option<A::Memory> {
        let mut state = self.state.lock();
        match state.shelves.pop_newest(sort, bytes) {
            Some(memory) => {
                state.figures.hits = state.figures.hits.saturating_add(1);
                state.took(bytes);
                Some(memory)
            }
            None => {
                state.figures.misses = state.figures.misses.saturating_add(1);
                None
            }
        }
    }

    /// Keeps a piece for which there may not be room, and gives back what has to go, or the piece itself.
    #[cold]
    fn make_room(&self, memory: A::Memory, sort: Option<Sort>, bytes: u64) -> Result<(), Error> {
        let sort = sort.filter(|_| bytes <= self.limits.bytes && self.limits.number > 0);
        let Some(sort) = sort else { return self.give_back(memory) };
        let mut outcome = Ok(());
        loop {
            let mut state = self.state.lock();
            if state.shelves.have_room(bytes, self.limits) {
                state.shelves.push(sort, bytes, memory);
                return outcome;
            }
            let oldest = state.shelves.pop_oldest();
            state.figures.evicted = state.figures.evicted.saturating_add(1);
            drop(state);
            if let Some((oldest, _)) = oldest {
                outcome = outcome.and(self.give_back(oldest));
            }
        }
    }

    /// Memory from the device: a whole class of it, or if that is too much after all, just so many bytes.
    #[cold]
    fn fresh(&self, size: u64, sort: Option<Sort>, spec: Spec) -> Result<Kept<A::Memory>, Error> {
        let bytes = sort.map_or(size, Sort::bytes);
        let (memory, sort, bytes) = match self.inner.allocate(bytes, spec) {
            Ok(memory) => (memory, sort, bytes),
            Err(Error::OutOfMemory { .. }) => {
                let mut state = self.state.lock();
                state.figures.emptied = state.figures.emptied.saturating_add(1);
                drop(state);
                // an error of giving back is counted, and what matters is whether there is memory now
                let _ = self.empty();
                (self.inner.allocate(size, spec)?, sort.filter(|sort| sort.bytes() == size), size)
            }
            Err(error) => return Err(error),
        };
        self.state.lock().took(bytes);
        Ok(Kept { memory, sort, bytes })
    }
}

impl Figures {
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
    type Memory = Kept<A::Memory>;

    fn device(&self) -> DeviceId {
        self.inner.device()
    }

    #[inline]
    fn allocate(&self, size: u64, spec: Spec) -> Result<Self::Memory, Error> {
        let sort = Sort::of(size, spec);
        let bytes = sort.map_or(0, Sort::bytes);
        let Some(memory) = sort.and_then(|sort| self.reuse(sort, bytes)) else {
            return self.fresh(size, sort, spec);
        };
        let kept = Kept { memory, sort, bytes };
        if spec.is_zeroed() {
            // SAFETY: the memory was kept, so that nobody else has it.
            let outcome = unsafe { self.inner.zero(&kept.memory, size) };
            if let Err(error) = outcome {
                let _ = self.release(Kept { sort: None, ..kept });
                return Err(error);
            }
        }
        Ok(kept)
    }

    fn adopt(&self, external: External, spec: Spec) -> Result<Self::Memory, Error> {
        // the device counts it as nothing
        Ok(Kept { memory: self.inner.adopt(external, spec)?, bytes: 0, sort: None })
    }

    #[inline]
    fn release(&self, memory: Self::Memory) -> Result<(), Error> {
        let Kept { memory, sort, bytes } = memory;
        let mut state = self.state.lock();
        state.figures.used = state.figures.used.saturating_sub(bytes);
        if let Some(sort) = sort
            && state.shelves.have_room(bytes, self.limits)
        {
            state.shelves.push(sort, bytes, memory);
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

    fn import(&self, memory: Foreign) -> Result<u64, Error> {
        self.inner.import(memory)
    }

    fn forget(&self, memory: Foreign, address: u64) {
        self.inner.forget(memory, address);
    }
}

impl<A: Allocator> Drop for LruAllocator<A> {
    fn drop(&mut self) {
        while let Some((memory, _)) = self.state.get_mut().shelves.pop_oldest() {
            let _ = self.inner.release(memory);
        }
    }
}

impl<A: Allocator + fmt::Debug> fmt::Debug for LruAllocator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LruAllocator")
            .field("inner", &self.inner)
            .field("limits", &self.limits)
            .field("figures", &self.figures())
            .finish()
    }
}
