//! Groups of channels: an engine, and a context that the channels share.

use std::sync::Arc;

use super::class;
use super::client::Handle;
use super::error::Error;
use super::gpu::Gpu;
use super::layout::{control, objects};
use super::system::System;

/// `NV2080_ENGINE_TYPE_GRAPHICS`: graphics and compute.
pub(super) const GRAPHICS: u32 = 1;
/// `NV2080_ENGINE_TYPE_COPY0`, and how many follow it.
const COPY0: (u32, u32) = (9, 10);
/// First byte of a copy engine's capabilities: it belongs to graphics and compute.
const OF_GRAPHICS: u8 = 1;

/// A group of channels, freed when the last channel of it is gone.
#[derive(Debug)]
pub(super) struct Group<S: System> {
    gpu: Arc<Gpu<S>>,
    handle: Handle,
    share: Handle,
    /// The engine that its channels run on.
    engine: u32,
}

impl<S: System> Group<S> {
    /// A group on an engine.
    pub(super) fn new(gpu: &Arc<Gpu<S>>, engine: u32) -> Result<Self, Error> {
        let client = gpu.client();
        let mut group =
            objects::NvChannelGroupAllocation { engine_type: engine, ..Default::default() };
        let handle = client.alloc(gpu.device(), class::CHANNEL_GROUP, Some(&mut group))?;
        let mut made = Self { gpu: Arc::clone(gpu), handle, share: Handle(0), engine };
        const ASYNCHRONOUS: u32 = 1;
        let mut share = objects::NvCtxshareAllocation {
            h_va_space: gpu.space().0,
            flags: ASYNCHRONOUS,
            subctx_id: 0,
        };
        made.share = client.alloc(handle, class::CONTEXT_SHARE, Some(&mut share))?;
        Ok(made)
    }

    /// A group for copies alone, on the first copy engine that shares nothing with graphics and compute.
    pub(super) fn of_copies(gpu: &Arc<Gpu<S>>) -> Result<Self, Error> {
        let mut caps = control::CeGetAllCaps::default();
        gpu.client().control(gpu.subdevice(), control::CE_GET_ALL_CAPS, &mut caps)?;
        let (first, count) = COPY0;
        let is_free = |index: &u32| {
            let own =
                caps.caps.get(*index as usize).is_some_and(|&[caps, _]| caps & OF_GRAPHICS == 0);
            own && caps.present >> index & 1 == 1
        };
        let engine = (0..count).find(is_free).ok_or(Error::NoCopyEngine)?;
        Self::new(gpu, first + engine)
    }

    pub(super) const fn gpu(&self) -> &Arc<Gpu<S>> {
        &self.gpu
    }

    pub(super) const fn handle(&self) -> Handle {
        self.handle
    }

    pub(super) const fn share(&self) -> Handle {
        self.share
    }

    pub(super) const fn engine(&self) -> u32 {
        self.engine
    }

    /// Lets its channels run.
    pub(super) fn schedule(&self) -> Result<(), Error> {
        let (client, command) = (self.gpu.client(), control::GPFIFO_SCHEDULE);
        if client.version().is_580() {
            let mut schedule = control::GpfifoSchedule580 { b_enable: 1, ..Default::default() };
            client.control(self.handle, command, &mut schedule)
        } else {
            let mut schedule = control::GpfifoSchedule570 { b_enable: 1, ..Default::default() };
            client.control(self.handle, command, &mut schedule)
        }
    }
}

impl<S: System> Drop for Group<S> {
    fn drop(&mut self) {
        // frees the share with it; the end of the client takes what is left
        let _ = self.gpu.client().free(self.gpu.device(), self.handle);
    }
}
