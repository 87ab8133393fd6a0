//! Memory and marks of other processes.

use core::ffi::c_char;
use core::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUipcEventHandle, CUipcMemHandle};
use exec_core::{Buffer, LruAllocator};

use crate::context::Context;
use crate::device::NvDevice;
use crate::error::Error;
use crate::memory::NvAllocator;
use crate::stream::NvEvent;

/// A name that another process knows memory by. Bytes that can be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpcMemoryHandle(pub [u8; 64]);

/// A name that another process knows a mark by. Bytes that can be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpcEventHandle(pub [u8; 64]);

/// Memory of another process, until this is dropped: nothing on a device uses it then.
#[derive(Debug)]
pub struct IpcMemory {
    context: Arc<Context>,
    address: u64,
    generation: u64,
}

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_PEER_ACCESS: u32 = 1;

impl NvDevice {
    /// A name for the memory of a buffer of kind [`MemoryKind::Device`](crate::MemoryKind::Device), for other processes. The buffer is
    /// not freed as long as they use it.
    ///
    /// ```no_run
    /// # use exec_core::{Buffer, Device as _, ExternalMemory, Spec};
    /// # fn both(device: &exec_nv::NvDevice) -> Result<(), Box<dyn std::error::Error>> {
    /// let buffer = device.buffer(1 << 20, Spec::new())?;
    /// let handle = device.share_memory(&buffer)?;
    /// // in the other process, with the bytes of `handle`:
    /// let there = device.open_memory(handle)?;
    /// // SAFETY: so many bytes are there, as long as `there` is; nobody writes them meanwhile.
    /// let memory = unsafe { ExternalMemory::new(there.address(), 1 << 20) };
    /// let view = Buffer::external(device.allocator(), memory, Spec::new())?;
    /// # drop(view);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Core`] of a buffer that is freed, or another device's; [`Error::Inside`] of memory that is part of a larger piece, as what others lend may be; what the driver says, of memory of other kinds
    /// too.
    pub fn share_memory(
        &self,
        buffer: &Buffer<LruAllocator<NvAllocator>>,
    ) -> Result<IpcMemoryHandle, Error> {
        let address = buffer.address()?;
        self.shared().context.expect(buffer.device()?)?;
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        self.shared().context.run(|driver| {
            let (mut start, mut size) = (0, 0);
            // SAFETY: the places are ours.
            unsafe {
                driver.cuMemGetAddressRange_v2(&raw mut start, &raw mut size, address)?;
                // a name is one of a whole piece: who opens it gets the start
                if start != address {
                    return Err(Error::Inside { offset: address.wrapping_sub(start) });
                }
                driver.cuIpcGetMemHandle(&raw mut handle, address)
            }
        })?;
        Ok(IpcMemoryHandle(handle.reserved.map(|byte| byte as u8)))
    }

    /// Memory that another process has named. A process cannot open what it has itself.
    ///
    /// # Errors
    /// What the driver says.
    pub fn open_memory(&self, handle: IpcMemoryHandle) -> Result<IpcMemory, Error> {
        let (context, mut address) = (&self.shared().context, 0);
        let handle = CUipcMemHandle { reserved: handle.0.map(|byte| byte as c_char) };
        // SAFETY: the place is ours.
        context.run(|driver| unsafe {
            driver.cuIpcOpenMemHandle_v2(&raw mut address, handle, LAZY_PEER_ACCESS)
        })?;
        let generation = context.generation();
        Ok(IpcMemory { context: Arc::clone(context), address, generation })
    }

    /// A mark that another process has named.
    ///
    /// # Errors
    /// What the driver says.
    pub fn open_event(&self, handle: IpcEventHandle) -> Result<NvEvent, Error> {
        let (context, mut event) = (&self.shared().context, ptr::null_mut());
        let handle = CUipcEventHandle { reserved: handle.0.map(|byte| byte as c_char) };
        // SAFETY: the place is ours.
        let open =
            |driver: &crate::Driver| unsafe { driver.cuIpcOpenEventHandle(&raw mut event, handle) };
        context.run(open)?;
        Ok(NvEvent::adopt(context, event))
    }
}

impl NvEvent {
    /// A name for a mark that was [recorded to be shared](crate::NvQueue::record_shareable), for other processes.
    ///
    /// # Errors
    /// What the driver says, of other marks too.
    pub fn share(&self) -> Result<IpcEventHandle, Error> {
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        self.check()?;
        let event = self.handle();
        // SAFETY: the place is ours, the event is there.
        let get =
            |driver: &crate::Driver| unsafe { driver.cuIpcGetEventHandle(&raw mut handle, event) };
        self.context().run(get)?;
        Ok(IpcEventHandle(handle.reserved.map(|byte| byte as u8)))
    }
}

impl IpcMemory {
    /// Where it begins.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for IpcMemory {
    fn drop(&mut self) {
        let address = self.address;
        // SAFETY: opened by us.
        let close = |driver: &crate::Driver| unsafe { driver.cuIpcCloseMemHandle(address) };
        let _ = self.context.release(self.generation, close);
    }
}
