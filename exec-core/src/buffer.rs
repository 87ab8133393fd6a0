//! Memory with an owner: buffers, views into them, and holds that keep them while a device works.

use alloc::sync::{Arc, Weak};
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::allocator::{Allocator, PeerMemory};
use crate::device_id::DeviceId;
use crate::error::Error;
use crate::spec::{ExternalMemory, Spec};
use crate::uses::{Use, Uses};

/// A stretch of device memory. It goes back when it is freed or dropped, or after the last queued call that uses it.
///
/// What can be done with a [`View`], can be done with it.
pub struct Buffer<A: Allocator> {
    inner: Arc<Inner<A>>,
    whole: View<A>,
}

/// A part of a buffer. It does not keep it: once the buffer is freed, everything is [`Error::Freed`].
pub struct View<A: Allocator> {
    inner: Weak<Inner<A>>,
    offset: u64,
    size: u64,
}

/// The use of a part of a buffer by a queued call. The memory stays where it is and is given to nobody else as long as this
/// lives, even if the buffer is freed meanwhile.
pub struct Hold<A: Allocator>(Held<A>);

/// A part of a buffer whose memory stays where it is, and is given to nobody else, as long as this lives, even if the buffer is freed
/// meanwhile. Nobody uses it for that: the host may read and write it. What has calls that run later, and again and again, keeps it, and
/// [holds](Self::hold) it whenever they run.
pub struct Retained<A: Allocator> {
    inner: Arc<Inner<A>>,
    offset: u64,
    size: u64,
}

/// A part of a buffer that stands in the address space of another device, as long as this lives.
pub struct Mapped<A: Allocator, B: Allocator> {
    hold: Hold<A>,
    device: Arc<B>,
    foreign: PeerMemory,
    address: u64,
}

/// What buffer, views and holds share.
struct Inner<A: Allocator> {
    allocator: Arc<A>,
    /// There until it is given back.
    memory: Option<A::Memory>,
    size: u64,
    spec: Spec,
    freed: AtomicBool,
    uses: Uses,
}

/// A use of a part of a buffer that has begun, and ends with this.
pub(crate) struct Held<A: Allocator> {
    inner: Arc<Inner<A>>,
    r#use: Use,
    offset: u64,
    size: u64,
}

impl<A: Allocator> Buffer<A> {
    /// A buffer of `size` bytes.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Alignment`]; what the allocator says.
    pub fn new(allocator: &Arc<A>, size: u64, spec: Spec) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::Empty);
        }
        if !spec.alignment.is_power_of_two() {
            return Err(Error::Alignment { alignment: spec.alignment });
        }
        Ok(Self::of(allocator, allocator.allocate(size, spec)?, size, spec))
    }

    /// A buffer of memory that is there already, and stays the caller's. It is never kept for reuse.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::Alignment`] if it is not aligned as the spec wants; what the allocator says.
    pub fn external(
        allocator: &Arc<A>,
        external: ExternalMemory,
        spec: Spec,
    ) -> Result<Self, Error> {
        let (size, spec) = (external.size(), spec.not_kept());
        if size == 0 {
            return Err(Error::Empty);
        }
        if !spec.alignment.is_power_of_two() || !external.address().is_multiple_of(spec.alignment) {
            return Err(Error::Alignment { alignment: spec.alignment });
        }
        Ok(Self::of(allocator, allocator.adopt(external, spec)?, size, spec))
    }

    fn of(allocator: &Arc<A>, memory: A::Memory, size: u64, spec: Spec) -> Self {
        let inner = Arc::new(Inner {
            allocator: Arc::clone(allocator),
            memory: Some(memory),
            size,
            spec,
            freed: AtomicBool::new(false),
            uses: Uses::default(),
        });
        let whole = View { inner: Arc::downgrade(&inner), offset: 0, size };
        Self { inner, whole }
    }

    /// Gives the memory back. If a queued call still uses it, that happens when the call has ended.
    ///
    /// # Errors
    /// What the device says; the memory is gone all the same.
    pub fn free(self) -> Result<(), Error> {
        self.inner.freed.store(true, Ordering::Release);
        // with `self` goes the other handle, unless a call holds one
        match Arc::into_inner(self.into_inner()) {
            Some(mut inner) => inner.release(),
            None => Ok(()),
        }
    }

    /// What the memory was asked to be like.
    #[must_use]
    pub fn spec(&self) -> Spec {
        self.inner.spec
    }

    /// The allocator the memory is from.
    #[must_use]
    pub fn allocator(&self) -> &Arc<A> {
        &self.inner.allocator
    }

    /// The whole buffer.
    #[must_use]
    pub fn whole(&self) -> View<A> {
        self.whole.clone()
    }

    fn into_inner(self) -> Arc<Inner<A>> {
        Arc::clone(&self.inner)
    }
}

impl<A: Allocator> Deref for Buffer<A> {
    type Target = View<A>;

    fn deref(&self) -> &View<A> {
        &self.whole
    }
}

impl<A: Allocator> Drop for Buffer<A> {
    fn drop(&mut self) {
        self.inner.freed.store(true, Ordering::Release);
    }
}

impl<A: Allocator> Inner<A> {
    fn release(&mut self) -> Result<(), Error> {
        self.memory.take().map_or(Ok(()), |memory| self.allocator.release(memory))
    }
}

impl<A: Allocator> Drop for Inner<A> {
    fn drop(&mut self) {
        // there is nobody left to tell; allocators count what fails
        let _ = self.release();
    }
}

impl<A: Allocator> View<A> {
    /// `size` bytes at `offset` of this view. It depends on the buffer, not on this view.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub fn view(&self, offset: u64, size: u64) -> Result<Self, Error> {
        self.check(offset, size)?;
        // does not overflow: it is inside of the buffer
        Ok(Self {
            inner: Weak::clone(&self.inner),
            offset: self.offset.saturating_add(offset),
            size,
        })
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes from the start of the buffer.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Where it is, as programs of its device see it. Good until the buffer is freed.
    ///
    /// # Errors
    /// [`Error::Freed`], [`Error::Lost`].
    pub fn address(&self) -> Result<u64, Error> {
        let inner = self.live()?;
        Ok(inner.address().saturating_add(self.offset))
    }

    /// The device whose memory it is.
    ///
    /// # Errors
    /// [`Error::Freed`].
    pub fn device(&self) -> Result<DeviceId, Error> {
        Ok(self.live()?.allocator.device())
    }

    /// Keeps the memory for a call.
    ///
    /// # Errors
    /// [`Error::Freed`], [`Error::Lost`]; [`Error::InUse`] if a host view is open.
    pub fn hold(&self) -> Result<Hold<A>, Error> {
        self.begin(Use::Call).map(Hold)
    }

    /// Makes the memory usable by programs of another device, as long as what is given out lives.
    ///
    /// # Errors
    /// [`Error::Freed`], [`Error::InUse`], [`Error::Unsupported`]; what the other device says.
    pub fn map_on<B: Allocator>(&self, device: &Arc<B>) -> Result<Mapped<A, B>, Error> {
        let hold = self.hold()?;
        let inner = &hold.0.inner;
        let foreign = PeerMemory {
            device: inner.allocator.device(),
            address: hold.address(),
            size: self.size,
            is_host: inner.memory.as_ref().is_some_and(|memory| inner.allocator.is_host(memory)),
        };
        let address = device.import(foreign)?;
        Ok(Mapped { hold, device: Arc::clone(device), foreign, address })
    }

    /// Begins a use.
    pub(crate) fn begin(&self, r#use: Use) -> Result<Held<A>, Error> {
        let inner = self.live()?;
        inner.uses.begin(r#use)?;
        Ok(Held { inner, r#use, offset: self.offset, size: self.size })
    }

    /// Whether both are views of one buffer.
    pub(crate) fn is_beside<B: Allocator>(&self, other: &View<B>) -> bool {
        self.inner.as_ptr().cast::<()>() == other.inner.as_ptr().cast::<()>()
    }

    pub(crate) const fn check(&self, offset: u64, size: u64) -> Result<(), Error> {
        match offset.checked_add(size) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Error::Outside { offset, size, available: self.size }),
        }
    }

    fn live(&self) -> Result<Arc<Inner<A>>, Error> {
        let inner = self.inner.upgrade().ok_or(Error::Freed)?;
        if inner.freed.load(Ordering::Acquire) {
            return Err(Error::Freed);
        }
        inner.check()?;
        Ok(inner)
    }
}

impl<A: Allocator> Inner<A> {
    fn check(&self) -> Result<(), Error> {
        self.memory.as_ref().map_or(Ok(()), |memory| self.allocator.check(memory))
    }

    fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| self.allocator.address(memory))
    }
}

impl<A: Allocator> Hold<A> {
    /// Where the bytes are, as programs of the device see it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.inner.address().saturating_add(self.0.offset)
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.0.size
    }

    /// The device whose memory it is.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.0.inner.allocator.device()
    }
}

impl<A: Allocator> Hold<A> {
    /// Keeps the memory for calls that come later.
    #[must_use]
    pub fn retain(&self) -> Retained<A> {
        Retained { inner: Arc::clone(&self.0.inner), offset: self.0.offset, size: self.0.size }
    }
}

impl<A: Allocator> Retained<A> {
    /// Keeps it for a call.
    ///
    /// # Errors
    /// [`Error::InUse`] if a host view is open; [`Error::Lost`].
    pub fn hold(&self) -> Result<Hold<A>, Error> {
        self.inner.check()?;
        self.inner.uses.begin(Use::Call)?;
        let inner = Arc::clone(&self.inner);
        Ok(Hold(Held { inner, r#use: Use::Call, offset: self.offset, size: self.size }))
    }
}

impl<A: Allocator> Held<A> {
    /// The allocator and its memory.
    pub(crate) fn parts(&self) -> Result<(&A, &A::Memory), Error> {
        Ok((&self.inner.allocator, self.inner.memory.as_ref().ok_or(Error::Freed)?))
    }

    /// Bytes from the start of the buffer.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }
}

impl<A: Allocator> Drop for Held<A> {
    fn drop(&mut self) {
        self.inner.uses.end(self.r#use);
    }
}

impl<A: Allocator, B: Allocator> Mapped<A, B> {
    /// Where the bytes are, as programs of the other device see it.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.hold.size()
    }
}

impl<A: Allocator, B: Allocator> Drop for Mapped<A, B> {
    fn drop(&mut self) {
        self.device.forget(self.foreign, self.address);
    }
}

impl<A: Allocator> Clone for View<A> {
    fn clone(&self) -> Self {
        Self { inner: Weak::clone(&self.inner), offset: self.offset, size: self.size }
    }
}

impl<A: Allocator> fmt::Debug for View<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("offset", &self.offset).field("size", &self.size).finish()
    }
}

impl<A: Allocator> fmt::Debug for Buffer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, spec) = (self.inner.size, self.inner.spec);
        f.debug_struct("Buffer").field("size", &size).field("spec", &spec).finish()
    }
}

impl<A: Allocator> fmt::Debug for Retained<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retained")
            .field("offset", &self.offset)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl<A: Allocator> fmt::Debug for Hold<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("address", &self.address())
            .field("size", &self.size())
            .finish()
    }
}

impl<A: Allocator, B: Allocator> fmt::Debug for Mapped<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("foreign", &self.foreign)
            .field("address", &self.address)
            .finish()
    }
}
