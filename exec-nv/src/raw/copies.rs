//! Copies by a copy engine: between device addresses, and through memory of the host to and from this process.

use core::time::Duration;
use std::sync::Arc;

use super::channel::Channel;
use super::error::Error;
use super::gpu::Gpu;
use super::memory::{Memory, Place};
use super::system::{Mapping, System};

/// Bytes that are on their way at a time, twice.
const HALF: u64 = 2 << 20;

/// A channel of a copy engine, and memory to copy through.
#[derive(Debug)]
pub(super) struct Copies<S: System> {
    channel: Channel<S>,
    halves: Memory<S>,
    limit: Duration,
}

impl<S: System> Copies<S> {
    pub(super) fn new(
        gpu: &Arc<Gpu<S>>,
        channel: Channel<S>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let halves = Memory::new(gpu, 2 * HALF, Place::Host)?;
        let mut submission = channel.begin(limit);
        submission.push.set_up_copy(gpu.classes().copy)?;
        let point = submission.submit()?;
        channel.wait(point, limit)?;
        Ok(Self { channel, halves, limit })
    }

    /// Copies between device addresses: gives the point that the channel comes to then.
    fn start(&self, to: u64, from: u64, size: u64) -> Result<u64, Error> {
        let mut submission = self.channel.begin(self.limit);
        submission.push.copy(to, from, size)?;
        submission.submit()
    }

    /// Copies between device addresses.
    pub(super) fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), Error> {
        let point = self.start(to, from, size)?;
        self.channel.wait(point, self.limit)
    }

    /// Copies bytes of this process to a device address: the next half is filled while one is copied.
    pub(super) fn copy_in(&mut self, to: u64, from: &[u8]) -> Result<(), Error> {
        // a copy that failed before may have left pieces on their way through the halves
        let mut points = [self.channel.latest(); 2];
        for (index, part) in from.chunks(HALF as usize).enumerate() {
            let half = (index % 2) as u64 * HALF;
            let point = points.get_mut(index % 2).ok_or(Error::NotSeen)?;
            self.channel.wait(*point, self.limit)?;
            let view = self.halves.view()?;
            if !view.store(half, part) {
                return Err(Error::NotSeen);
            }
            view.fence();
            let to = to.saturating_add(index as u64 * HALF);
            *point = self.start(to, self.halves.address() + half, part.len() as u64)?;
        }
        self.channel.wait(points.into_iter().max().unwrap_or(0), self.limit)
    }

    /// Copies from a device address to this process: the next half is on its way while one is read.
    pub(super) fn copy_out(&mut self, from: u64, to: &mut [u8]) -> Result<(), Error> {
        let mut on_the_way: Option<(u64, u64, &mut [u8])> = None;
        for (index, part) in to.chunks_mut(HALF as usize).enumerate() {
            let half = (index % 2) as u64 * HALF;
            let from = from.saturating_add(index as u64 * HALF);
            let point = self.start(self.halves.address() + half, from, part.len() as u64)?;
            if let Some(before) = on_the_way.replace((point, half, part)) {
                self.arrived(before)?;
            }
        }
        on_the_way.map_or(Ok(()), |last| self.arrived(last))
    }

    fn arrived(&self, (point, half, part): (u64, u64, &mut [u8])) -> Result<(), Error> {
        self.channel.wait(point, self.limit)?;
        if self.halves.view()?.load(half, part) { Ok(()) } else { Err(Error::NotSeen) }
    }
}
