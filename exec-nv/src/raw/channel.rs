//! Channels: push buffers in their order, a count of what is done, and what stopped one.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::call::uvm;
use super::client::Handle;
use super::debugger;
use super::error::Error;
use super::gpu::Gpu;
use super::group::Group;
use super::layout::{control, objects, uvm as structures};
use super::memory::{Memory, Place};
use super::mmu_fault::MmuFault;
use super::notifier::Notification;
use super::push::PushBuffer;
use super::ring::Ring;
use super::ring_allocator::{Allocation, RingAllocator};
use super::status::Status;
use super::system::{Mapping, System};

/// Entries of a ring.
const RING_ENTRIES: u32 = 0x1_0000;
/// Bytes of a ring's memory: entries, control page, and what the channel reads.
const RING_SIZE: u64 = 3 << 20;
/// Where the control page is in it.
const CONTROL_AT: u64 = RING_ENTRIES as u64 * 8;
/// Where what the channel reads begins.
const ALLOCATED_AT: u64 = CONTROL_AT + 0x1_0000;

/// Bytes of a channel's signals: the error notifier at the start, a count of what is done, time stamps.
const SIGNALS_SIZE: u64 = 0x1_0000;
/// Where the count is: 8 bytes, and 8 of the time it was written.
const COUNT_AT: u64 = 0x1000;
/// Where pairs of time stamps are, and bytes of a pair.
const STAMPS: (u64, u64) = (0x2000, 32);

/// Addresses for a channel's context buffers, which the driver maps.
const CONTEXT_SIZE: u64 = 64 << 20;

/// How long it is polled without giving the processor away, and how long the pauses are then.
const IMPATIENT: Duration = Duration::from_micros(200);
const PAUSE: Duration = Duration::from_micros(50);

/// A channel of a group.
#[derive(Debug)]
pub(super) struct Channel<S: System> {
    inner: Mutex<Inner>,
    ring: Memory<S>,
    /// Shared with what waits for this channel: the GPU reads it until that has passed.
    signals: Arc<Memory<S>>,
    handle: Handle,
    /// The object of the channel's engine, and its class.
    object: Handle,
    class: u32,
    context: u64,
    is_registered: bool,
    // last: it frees the channel if that was not done
    group: Arc<Group<S>>,
}

#[derive(Debug)]
struct Inner {
    ring: Ring,
    allocator: RingAllocator,
    /// The latest point: what the count will be when all is done.
    latest: u64,
    stamps: u64,
}

/// A submission that is being written. Nobody else submits to the channel meanwhile.
pub(super) struct Submission<'c, S: System> {
    channel: &'c Channel<S>,
    inner: MutexGuard<'c, Inner>,
    limit: Duration,
    pub(super) push: PushBuffer,
}

/// A point of a channel, and the memory that its count is in: it stays when the channel goes.
#[derive(Debug)]
pub(super) struct Mark<S: System> {
    signals: Arc<Memory<S>>,
    point: u64,
}

/// Where a channel writes the times of a submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps(u64);

impl<S: System> Channel<S> {
    /// A channel of a group with an object of an engine's class. It runs when the group is scheduled.
    pub(super) fn new(group: &Arc<Group<S>>, class: u32) -> Result<Self, Error> {
        let gpu = Arc::clone(group.gpu());
        let ring = Memory::new(&gpu, RING_SIZE, Place::Window)?;
        let signals = Arc::new(Memory::new(&gpu, SIGNALS_SIZE, Place::HostUncached)?);
        let entries = Ring::new(0, RING_ENTRIES, CONTROL_AT, 0)?;
        let allocator = RingAllocator::new(ALLOCATED_AT, RING_SIZE - ALLOCATED_AT);
        // pages of before may have been anybody's
        let zeros = [0; (STAMPS.0 / 4) as usize];
        if !signals.view()?.write(0, &zeros) {
            return Err(Error::NotSeen);
        }
        let mut channel = Self {
            inner: Mutex::new(Inner { ring: entries, allocator, latest: 0, stamps: 0 }),
            ring,
            signals,
            handle: Handle(0),
            object: Handle(0),
            class,
            context: 0,
            is_registered: false,
            group: Arc::clone(group),
        };
        channel.make(&gpu)?;
        Ok(channel)
    }

    fn make(&mut self, gpu: &Gpu<S>) -> Result<(), Error> {
        let client = gpu.client();
        let mut parameters = objects::NvChannelAllocParams {
            h_object_error: self.signals.handle().0,
            h_object_buffer: self.ring.handle().0,
            gp_fifo_offset: self.ring.address(),
            gp_fifo_entries: RING_ENTRIES,
            h_context_share: self.group.share().0,
            engine_type: if self.is_of_copies() { self.group.engine() } else { 0 },
            ..Default::default()
        };
        if let (Some(memory), Some(offset)) =
            (parameters.h_userd_memory.first_mut(), parameters.userd_offset.first_mut())
        {
            (*memory, *offset) = (self.ring.handle().0, CONTROL_AT);
        }
        self.handle =
            client.alloc(self.group.handle(), gpu.classes().channel, Some(&mut parameters))?;
        const BY_ENGINE: u32 = 1;
        let mut copy = objects::Nvb0b5AllocationParameters {
            version: BY_ENGINE,
            engine_type: self.group.engine(),
        };
        let parameters = self.is_of_copies().then_some(&mut copy);
        self.object = client.alloc(self.handle, self.class, parameters)?;

        let mut token = control::GpfifoGetWorkSubmitToken::default();
        client.control(self.handle, control::GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
        self.lock().ring.token = token.work_submit_token;

        let no_room = Error::NoAddresses { size: CONTEXT_SIZE };
        self.context = gpu.take_context(CONTEXT_SIZE).ok_or(no_room)?;
        let mut register = structures::RegisterChannel {
            gpu_uuid: gpu.uuid(),
            rm_ctrl_fd: client.control_descriptor(),
            h_client: client.root().0,
            h_channel: self.handle.0,
            base: self.context,
            length: CONTEXT_SIZE,
            ..Default::default()
        };
        client.uvm(uvm::REGISTER_CHANNEL, &mut register)?;
        Status(register.rm_status).of(uvm::REGISTER_CHANNEL)?;
        self.is_registered = true;
        Ok(())
    }

    /// Number of the object of the channel's engine.
    pub(super) const fn class(&self) -> u32 {
        self.class
    }

    /// Whether its group is on a copy engine.
    fn is_of_copies(&self) -> bool {
        self.group.engine() != super::group::GRAPHICS
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a submission. Where the channel is behind, it waits for it no longer than `limit`.
    pub(super) fn begin(&self, limit: Duration) -> Submission<'_, S> {
        Submission { channel: self, inner: self.lock(), limit, push: PushBuffer::new() }
    }

    /// The point that the channel has come to.
    pub(super) fn reached(&self) -> Result<u64, Error> {
        self.word(COUNT_AT)
    }

    /// The latest point that was submitted.
    pub(super) fn latest(&self) -> u64 {
        self.lock().latest
    }

    /// The latest point, for another channel to wait for.
    pub(super) fn mark(&self) -> Mark<S> {
        Mark { signals: Arc::clone(&self.signals), point: self.latest() }
    }

    /// Device address of the count.
    fn count_address(&self) -> u64 {
        self.signals.address().saturating_add(COUNT_AT)
    }

    /// 8 bytes of the signals. The lower half is read again if the upper one changes meanwhile.
    fn word(&self, at: u64) -> Result<u64, Error> {
        let view = self.signals.view()?;
        let half = |at| view.read(at).ok_or(Error::NotSeen);
        loop {
            let high = half(at + 4)?;
            let low = half(at)?;
            if half(at + 4)? == high {
                return Ok(u64::from(high) << 32 | u64::from(low));
            }
        }
    }

    /// What stopped the channel, if anything did.
    pub(super) fn fault(&self) -> Result<(), Error> {
        let view = self.signals.view()?;
        let mut words = [0; 4];
        for (word, at) in words.iter_mut().zip((0..).step_by(4)) {
            *word = view.read(at).ok_or(Error::NotSeen)?;
        }
        let [low, high, info32, rest] = words;
        let notification = Notification {
            time_stamp: [low, high],
            info32,
            info16: rest as u16,
            status: (rest >> 16) as u16,
        };
        match notification.error() {
            Some(error) => {
                let fault = self.mmu_fault();
                Err(Error::Stopped { error, info: notification.info16, fault })
            }
            None => Ok(()),
        }
    }

    /// The access that the channel was stopped for, if it computes and the driver tells.
    fn mmu_fault(&self) -> Option<MmuFault> {
        let gpu = self.group.gpu();
        // the fault itself is known already: what hinders the question hides nothing
        let asked =
            (self.class == gpu.classes().compute).then(|| debugger::mmu_fault(gpu, self.object));
        asked.and_then(Result::ok).flatten()
    }

    /// Waits until the channel has come to `point`.
    ///
    /// # Errors
    /// [`Error::Stopped`] if it was stopped, [`Error::TimeOut`] after `limit`.
    pub(super) fn wait(&self, point: u64, limit: Duration) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let reached = self.reached()?;
            if reached >= point {
                return Ok(());
            }
            self.fault()?;
            let waited = start.elapsed();
            if waited >= limit {
                return Err(Error::TimeOut { limit, wanted: point, reached });
            }
            if waited < IMPATIENT {
                core::hint::spin_loop();
            } else {
                std::thread::sleep(PAUSE.min(limit.saturating_sub(waited)));
            }
        }
    }

    /// The time between the two stamps of a submission that is done.
    pub(super) fn time(&self, stamps: Stamps) -> Result<Duration, Error> {
        let (start, end) = (self.word(stamps.0 + 8)?, self.word(stamps.0 + 24)?);
        Ok(Duration::from_nanos(end.saturating_sub(start)))
    }
}

impl<S: System> Submission<'_, S> {
    /// The point that the channel comes to when it is done.
    pub(super) fn point(&self) -> u64 {
        self.inner.latest.saturating_add(1)
    }

    /// Waits for a point of another channel. The mark has to stay until this submission is done.
    pub(super) fn wait_for(&mut self, mark: &Mark<S>) -> Result<(), Error> {
        let address = mark.signals.address().saturating_add(COUNT_AT);
        self.push.acquire(address, mark.point)?;
        Ok(())
    }

    /// Puts bytes where the channel can read them until it has come to the point: their device address.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let last = if rest.is_empty() { None } else { Some(u32::from_le_bytes(last)) };
        let words = words.iter().map(|&word| u32::from_le_bytes(word));
        let words: Vec<u32> = words.chain(last).collect();
        self.put_words(&words)
    }

    fn put_words(&mut self, words: &[u32]) -> Result<u64, Error> {
        let (point, size) = (self.point(), (words.len() as u64).saturating_mul(4));
        let at = loop {
            match self.inner.allocator.allocate(size, point)? {
                Allocation::At(at) => break at,
                Allocation::After(before) => self.channel.wait(before, self.limit)?,
            }
            self.inner.allocator.reached(self.channel.reached()?);
        };
        if !self.channel.ring.view()?.write(at, words) {
            return Err(Error::NotSeen);
        }
        Ok(self.channel.ring.address().saturating_add(at))
    }

    /// Has the time written, now and, with [`stamp_end`](Self::stamp_end), later.
    pub(super) fn stamp(&mut self) -> Result<Stamps, Error> {
        let (start, size) = STAMPS;
        let count = (SIGNALS_SIZE - start) / size;
        let stamps = Stamps(start + self.inner.stamps % count * size);
        self.inner.stamps = self.inner.stamps.wrapping_add(1);
        self.push.release(self.channel.signals.address() + stamps.0, 1)?;
        Ok(stamps)
    }

    /// The second time of `stamps`.
    pub(super) fn stamp_end(&mut self, stamps: Stamps) -> Result<(), Error> {
        self.push.release(self.channel.signals.address() + stamps.0 + 16, 1)?;
        Ok(())
    }

    /// Hands it to the GPU: gives the point that the channel comes to when it is done.
    pub(super) fn submit(mut self) -> Result<u64, Error> {
        let point = self.point();
        self.push.release(self.channel.count_address(), point)?;
        let push = core::mem::take(&mut self.push);
        let address = self.put_words(push.words())?;
        let count = push.words().len();
        let (ring, bell) = (self.channel.ring.view()?, self.channel.group.gpu().doorbell());
        let start = Instant::now();
        while self.inner.ring.is_full(ring)? {
            self.channel.fault()?;
            if start.elapsed() >= self.limit {
                let reached = self.channel.reached()?;
                return Err(Error::TimeOut { limit: self.limit, wanted: point, reached });
            }
            std::thread::sleep(PAUSE);
        }
        self.inner.ring.submit(ring, bell, address, count)?;
        self.inner.latest = point;
        Ok(point)
    }
}

impl<S: System> Channel<S> {
    fn unregister(&self) -> Result<(), Error> {
        let gpu = self.group.gpu();
        let (client, call) = (gpu.client(), uvm::UNREGISTER_CHANNEL);
        let (h_client, h_channel) = (client.root().0, self.handle.0);
        let status = if client.version().is_595() {
            let mut channel =
                structures::UnregisterChannel595 { h_client, h_channel, rm_status: 0 };
            client.uvm(call, &mut channel)?;
            channel.rm_status
        } else {
            let gpu_uuid = gpu.uuid();
            let mut channel =
                structures::UnregisterChannel590 { gpu_uuid, h_client, h_channel, rm_status: 0 };
            client.uvm(call, &mut channel)?;
            channel.rm_status
        };
        Status(status).of(call)
    }
}

impl<S: System> Drop for Channel<S> {
    /// Frees the channel before its memory. What fails is left to the end of the client.
    fn drop(&mut self) {
        let gpu = Arc::clone(self.group.gpu());
        let unregistered = if self.is_registered { self.unregister() } else { Ok(()) };
        if self.handle != Handle(0) {
            let _ = gpu.client().free(self.group.handle(), self.handle);
        }
        if self.context != 0 && unregistered.is_ok() {
            gpu.give_context(self.context, CONTEXT_SIZE);
        }
    }
}
