//! Functions of an image, to be called through the device's queue.

use core::time::Duration;
use exec_core::sync::Mutex;
use std::string::String;
use std::sync::Arc;

use exec_core::{
    Allocator as _, Error, Launch, LruAllocator, Program, Scalar, Signature, Type, View,
};

use super::allocator::HostAllocator;
use super::call::{Call, Entry};
use super::event::HostEvent;
use super::image::HostImage;
use super::shared::Shared;

/// A function that a [`HostDevice`](super::HostDevice) runs.
///
/// Each call passes the buffers' addresses, then the values, then the index in the grid as a `uint32_t`. The calling
/// conventions of this machine let a function ignore arguments that it does not take: one without a grid need not have it.
#[derive(Debug)]
pub struct HostProgram {
    device: Arc<Shared>,
    name: Arc<str>,
    signature: Option<Signature>,
    address: u64,
    image: Arc<HostImage>,
    /// For the types of the latest call.
    entry: Mutex<Arc<Entry>>,
}

impl HostProgram {
    /// The function `name` of an image.
    pub(super) fn find(
        device: &Arc<Shared>,
        image: &Arc<HostImage>,
        name: &str,
        signature: Option<Signature>,
    ) -> Result<Self, Error> {
        let missing =
            |cause| Error::NoFunction { name: String::from(name), cause: Arc::new(cause) };
        let address = image.module().function(name).map_err(missing)?;
        let name: Arc<str> = name.into();
        let is_guarded = device.is_guarded;
        let entry =
            Entry::new(Arc::clone(image), Arc::clone(&name), address, is_guarded, Vec::new());
        Ok(Self {
            device: Arc::clone(device),
            name,
            signature,
            address,
            image: Arc::clone(image),
            entry: Mutex::new(Arc::new(entry)),
        })
    }

    /// Puts a call into the device's queue.
    ///
    /// # Errors
    /// As [`Program::call`]; those of the function itself are the event's.
    ///
    /// # Safety
    /// As [`Program::call`].
    pub unsafe fn submit(
        &self,
        buffers: &[&View<LruAllocator<HostAllocator>>],
        values: &[Scalar],
        launch: Launch,
    ) -> Result<HostEvent, Error> {
        Ok(self.device.queue.submit(self.prepare(buffers, values, launch)?))
    }

    /// The function's code. Good as long as this lives.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// The image that the function is of.
    #[must_use]
    pub const fn image(&self) -> &Arc<HostImage> {
        &self.image
    }

    /// Checks everything that can be checked before the call.
    fn prepare(
        &self,
        buffers: &[&View<LruAllocator<HostAllocator>>],
        values: &[Scalar],
        launch: Launch,
    ) -> Result<Call, Error> {
        self.device.queue.sticky().check()?;
        let count = match launch {
            Launch { grid: [0, _, _], .. } => return Err(Error::Launch { what: "an empty grid" }),
            Launch { grid: [count, 1, 1], block: [1, 1, 1], .. } => count,
            _ => return Err(Error::Launch { what: "the host has grids of one dimension" }),
        };
        if let Some(signature) = &self.signature {
            signature.check(buffers.iter().map(|view| view.size()), values)?;
        }
        let mut holds = Vec::with_capacity(buffers.len());
        let mut slots = Vec::with_capacity(buffers.len().saturating_add(values.len()));
        let expected = self.device.allocator.device();
        for view in buffers {
            let hold = view.hold()?;
            if hold.device() != expected {
                return Err(Error::OtherDevice { expected, found: hold.device() });
            }
            slots.push(hold.address().to_ne_bytes());
            holds.push(hold);
        }
        slots.extend(values.iter().map(Scalar::bytes));
        let entry = self.entry(buffers.len(), values);
        Ok(Call { entry, slots, count, _holds: holds })
    }

    /// The entry for arguments of these types.
    fn entry(&self, buffers: usize, values: &[Scalar]) -> Arc<Entry> {
        let types = || {
            core::iter::repeat_n(Type::Pointer, buffers).chain(values.iter().map(Scalar::r#type))
        };
        let mut entry = self.entry.lock();
        if !entry.is_for(types()) {
            *entry = Arc::new(Entry::new(
                Arc::clone(&self.image),
                Arc::clone(&self.name),
                self.address,
                self.device.is_guarded,
                types().collect(),
            ));
        }
        Arc::clone(&entry)
    }
}

impl Program for HostProgram {
    type Allocator = LruAllocator<HostAllocator>;

    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    unsafe fn call(
        &self,
        buffers: &[&View<Self::Allocator>],
        values: &[Scalar],
        launch: Launch,
    ) -> Result<Option<Duration>, Error> {
        let call = self.prepare(buffers, values, launch)?;
        if launch.wait {
            return self.device.queue.run(call).map(Some);
        }
        self.device.queue.submit(call);
        Ok(None)
    }
}
