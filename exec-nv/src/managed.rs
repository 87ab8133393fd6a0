//! Where managed memory is wanted.

use cudarc::driver::sys::CUmem_advise as Advice;
use exec_core::{Error as CoreError, LruAllocator, View};

use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;
use crate::memory::NvAllocator;
use crate::queue::NvQueue;

/// `CU_DEVICE_CPU`.
const HOST: i32 = -1;

/// A place that managed memory can be at.
#[derive(Clone, Copy, Debug)]
pub enum ManagedPlace<'a> {
    /// The memory of a device.
    Device(&'a NvDevice),
    /// The memory of the host.
    Host,
}

/// How managed memory will be used: what the driver may copy, or leave where it is.
#[derive(Clone, Copy, Debug)]
pub enum ManagedAdvice<'a> {
    /// Mostly read: who reads it gets a copy of its own.
    MostlyRead,
    /// As much written as other memory.
    NotMostlyRead,
    /// It is best at a place.
    PreferredAt(ManagedPlace<'a>),
    /// No place is better than others.
    PreferredNowhere,
    /// A place uses it, wherever it is: it is mapped there.
    UsedBy(ManagedPlace<'a>),
    /// A place does not use it any more.
    NotUsedBy(ManagedPlace<'a>),
}

impl ManagedPlace<'_> {
    /// The number by which the driver knows it.
    fn number(self) -> Result<i32, Error> {
        let Self::Device(device) = self else { return Ok(HOST) };
        moves_pages(&device.shared().context)
    }
}

/// The number of a device that managed memory goes to page by page. To others it goes as a whole, before and after kernels.
fn moves_pages(context: &Context) -> Result<i32, Error> {
    if context.host_sees_managed() {
        Ok(context.device())
    } else {
        Err(CoreError::Unsupported { what: "managed memory at a place" }.into())
    }
}

/// As the driver wants sizes.
fn bytes(size: u64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|_| CoreError::OutOfMemory { size }.into())
}

impl NvDevice {
    /// Tells the driver how a part of memory of kind [`MemoryKind::Managed`](crate::MemoryKind::Managed) will be used, in whole pages.
    ///
    /// ```no_run
    /// # use exec_core::{Buffer, Spec};
    /// # use exec_nv::{ManagedAdvice, ManagedPlace, MemoryKind, NvDevice};
    /// # fn ahead(device: &NvDevice) -> Result<(), Box<dyn std::error::Error>> {
    /// let table = Buffer::new(&device.allocator_of(MemoryKind::Managed), 1 << 30, Spec::new())?;
    /// table.host_mut()?.fill(1);
    /// device.advise(&table, ManagedAdvice::MostlyRead)?;
    /// device.queue().prefetch(&table, ManagedPlace::Device(device))?; // kernels behind it find it there
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Core`] if the buffer is freed, or managed memory goes to a device as a whole; what the driver says, of other memory too.
    pub fn advise(
        &self,
        view: &View<LruAllocator<NvAllocator>>,
        advice: ManagedAdvice<'_>,
    ) -> Result<(), Error> {
        use ManagedAdvice as Asked;
        let context = &self.shared().context;
        let here = moves_pages(context)?;
        let (advice, place) = match advice {
            Asked::MostlyRead => (Advice::CU_MEM_ADVISE_SET_READ_MOSTLY, here),
            Asked::NotMostlyRead => (Advice::CU_MEM_ADVISE_UNSET_READ_MOSTLY, here),
            Asked::PreferredAt(at) => (Advice::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at.number()?),
            Asked::PreferredNowhere => (Advice::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, here),
            Asked::UsedBy(by) => (Advice::CU_MEM_ADVISE_SET_ACCESSED_BY, by.number()?),
            Asked::NotUsedBy(by) => (Advice::CU_MEM_ADVISE_UNSET_ACCESSED_BY, by.number()?),
        };
        let (address, size) = (view.address()?, bytes(view.size())?);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: what is in the memory stays; where there is none any more, the driver says so.
        context.run(|driver| unsafe { driver.cuMemAdvise(address, size, advice as u32, place) })
    }
}

impl NvQueue {
    /// Sends a part of memory of kind [`MemoryKind::Managed`](crate::MemoryKind::Managed) to where it is wanted next, in whole pages, behind
    /// what is in the queue. It is in use until the queue is past it.
    ///
    /// # Errors
    /// [`Error::Core`] with what is wrong with the view, or if managed memory goes to a device as a whole; what the driver says, of other
    /// memory too.
    pub fn prefetch(
        &self,
        view: &View<LruAllocator<NvAllocator>>,
        to: ManagedPlace<'_>,
    ) -> Result<(), Error> {
        let context = self.stream().context();
        moves_pages(context)?;
        let (place, size, hold) = (to.number()?, bytes(view.size())?, view.hold()?);
        if size == 0 {
            return Ok(());
        }
        let (address, stream) = (hold.address(), self.stream().handle()?);
        let mut call = self.begin();
        // SAFETY: so many bytes are there, and held until the queue is past it; what is in them stays.
        context.run(|driver| unsafe { driver.cuMemPrefetchAsync(address, size, place, stream) })?;
        call.uses(hold);
        call.done();
        Ok(())
    }
}
