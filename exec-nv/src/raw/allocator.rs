//! Memory of a GPU as `exec-core` knows it.

use core::fmt;
use std::sync::Arc;

use exec_core::{Allocator, DeviceId, Error as CoreError, ExternalMemory, Spec};

use super::context::Context;
use super::error::Error;
use super::memory::{Memory, Place};
use super::status::Status;
use super::system::{Mapping, System};

/// Gives out memory of a GPU; what a [`Spec`] wants to be visible to the host is the host's.
pub struct RawAllocator<S: System> {
    context: Arc<Context<S>>,
}

/// Memory from a [`RawAllocator`].
#[derive(Debug)]
pub struct RawMemory<S: System> {
    /// Nothing if it is the caller's.
    memory: Option<Memory<S>>,
    address: u64,
    size: u64,
}

/// `NV_ERR_NO_MEMORY` and `NV_ERR_INSUFFICIENT_RESOURCES`.
const OUT_OF_MEMORY: [Status; 2] = [Status(0x51), Status(0x1a)];

impl<S: System> RawAllocator<S> {
    pub(super) const fn new(context: Arc<Context<S>>) -> Self {
        Self { context }
    }

    /// The memory, of which `size` bytes were asked for, as it was asked for.
    fn ready(
        &self,
        memory: RawMemory<S>,
        size: u64,
        spec: Spec,
    ) -> Result<RawMemory<S>, CoreError> {
        if !memory.address.is_multiple_of(spec.alignment()) {
            return Err(CoreError::Alignment { alignment: spec.alignment() });
        }
        if spec.is_zeroed() {
            // SAFETY: nobody else has the memory yet.
            unsafe { self.zero(&memory, size)? };
        }
        Ok(memory)
    }
}

impl<S: System> RawMemory<S> {
    /// `size` bytes from `at`, if they are all inside: their address.
    fn place(&self, at: u64, size: u64) -> Result<u64, CoreError> {
        match at.checked_add(size) {
            Some(end) if end <= self.size => Ok(self.address.wrapping_add(at)),
            _ => Err(CoreError::Outside { offset: at, size, available: self.size }),
        }
    }

    /// As this process sees it.
    fn view(&self) -> Option<&S::Mapping> {
        self.memory.as_ref()?.view().ok()
    }
}

impl<S: System> Allocator for RawAllocator<S> {
    type Memory = RawMemory<S>;

    fn device(&self) -> DeviceId {
        self.context.id()
    }

    fn allocate(&self, size: u64, spec: Spec) -> Result<RawMemory<S>, CoreError> {
        if size == 0 {
            return Err(CoreError::Empty);
        }
        let place = match (spec.is_host_visible(), spec.is_uncached()) {
            (false, _) => Place::Device,
            (true, false) => Place::Host,
            (true, true) => Place::HostUncached,
        };
        let made = self.context.note(Memory::new(self.context.gpu(), size, place));
        let memory = made.map_err(|error| match error {
            Error::Refused { status, .. } if OUT_OF_MEMORY.contains(&status) => {
                CoreError::OutOfMemory { size }
            }
            error => crate::Error::from(error).into(),
        })?;
        let (address, given) = (memory.address(), memory.size());
        self.ready(RawMemory { address, size: given, memory: Some(memory) }, size, spec)
    }

    fn adopt(&self, external: ExternalMemory, spec: Spec) -> Result<RawMemory<S>, CoreError> {
        let (address, size) = (external.address(), external.size());
        if size == 0 {
            return Err(CoreError::Empty);
        }
        self.ready(RawMemory { memory: None, address, size }, size, spec)
    }

    fn release(&self, memory: RawMemory<S>) -> Result<(), CoreError> {
        drop(memory);
        Ok(())
    }

    fn address(&self, memory: &RawMemory<S>) -> u64 {
        memory.address
    }

    fn is_host(&self, memory: &RawMemory<S>) -> bool {
        memory.view().is_some()
    }

    unsafe fn copy_in(&self, memory: &RawMemory<S>, at: u64, from: &[u8]) -> Result<(), CoreError> {
        let to = memory.place(at, from.len() as u64)?;
        self.context.sticky().check()?;
        if let Some(view) = memory.view() {
            let outside =
                CoreError::Outside { offset: at, size: from.len() as u64, available: memory.size };
            let stored = view.store(at, from);
            view.fence();
            return if stored { Ok(()) } else { Err(outside) };
        }
        let copied = self.context.copies().copy_in(to, from);
        Ok(self.context.note_copy(copied).map_err(crate::Error::from)?)
    }

    unsafe fn copy_out(
        &self,
        memory: &RawMemory<S>,
        at: u64,
        to: &mut [u8],
    ) -> Result<(), CoreError> {
        let from = memory.place(at, to.len() as u64)?;
        self.context.sticky().check()?;
        if let Some(view) = memory.view() {
            let outside =
                CoreError::Outside { offset: at, size: to.len() as u64, available: memory.size };
            return if view.load(at, to) { Ok(()) } else { Err(outside) };
        }
        let copied = self.context.copies().copy_out(from, to);
        Ok(self.context.note_copy(copied).map_err(crate::Error::from)?)
    }

    unsafe fn bytes<'m>(&self, memory: &'m RawMemory<S>) -> Option<&'m [u8]> {
        let size = usize::try_from(memory.size).ok()?;
        // SAFETY: the mapping has so many bytes and lives as long as the memory, and nobody writes them.
        memory
            .view()
            .map(|view| unsafe { core::slice::from_raw_parts(view.start().as_ptr(), size) })
    }

    unsafe fn bytes_mut<'m>(&self, memory: &'m RawMemory<S>) -> Option<&'m mut [u8]> {
        let size = usize::try_from(memory.size).ok()?;
        let view = memory.view()?;
        // SAFETY: the mapping has so many bytes and lives as long as the memory, and nobody else uses them.
        Some(unsafe { core::slice::from_raw_parts_mut(view.start().as_ptr(), size) })
    }
}

impl<S: System> fmt::Debug for RawAllocator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawAllocator").field("device", &self.context.id()).finish_non_exhaustive()
    }
}
