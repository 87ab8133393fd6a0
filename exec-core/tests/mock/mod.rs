//! A device whose memory is counted, bounded, and fails on demand.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use exec_core::{Allocator, DeviceId, Error, PeerMemory, Spec};

/// What the device does wrong, at the next allocation or at all from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    OutOfMemory,
    Broken,
}

/// Memory by number, so that nobody can have it twice.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) id: u64,
    pub(crate) spec: Spec,
    bytes: Mutex<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    live: BTreeSet<u64>,
    pub(crate) used: u64,
    pub(crate) capacity: u64,
    /// Allocations so far.
    pub(crate) calls: u64,
    /// Allocations, by number, that fail.
    pub(crate) faults: Vec<(u64, Fault)>,
    pub(crate) failing: Option<Fault>,
    pub(crate) release_fails: bool,
}

#[derive(Debug)]
pub(crate) struct Mock {
    id: DeviceId,
    next: AtomicU64,
    pub(crate) state: Mutex<State>,
    /// Mappings of other devices' memory at the moment.
    pub(crate) imports: AtomicU64,
}

impl Mock {
    pub(crate) fn new(capacity: u64) -> Self {
        let state = Mutex::new(State { capacity, ..State::default() });
        Self { id: DeviceId::unique(), next: AtomicU64::new(1), state, imports: AtomicU64::new(0) }
    }

    /// Number of pieces given out and their bytes.
    pub(crate) fn live(&self) -> (usize, u64) {
        let state = self.state.lock().unwrap();
        (state.live.len(), state.used)
    }
}

fn broken() -> Error {
    Error::Device(std::sync::Arc::new(std::io::Error::other("broken")))
}

impl Allocator for Mock {
    type Memory = Block;

    fn device(&self) -> DeviceId {
        self.id
    }

    fn allocate(&self, size: u64, spec: Spec) -> Result<Block, Error> {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        let call = state.calls;
        let planned = state.faults.iter().find(|(at, _)| *at == call).map(|(_, fault)| *fault);
        match planned.or(state.failing) {
            Some(Fault::OutOfMemory) => return Err(Error::OutOfMemory { size }),
            Some(Fault::Broken) => return Err(broken()),
            None => {}
        }
        if size > state.capacity - state.used {
            return Err(Error::OutOfMemory { size });
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        state.used += size;
        state.live.insert(id);
        let fill = if spec.is_zeroed() { 0 } else { 0xaa };
        Ok(Block { id, spec, bytes: Mutex::new(vec![fill; size as usize]) })
    }

    fn release(&self, memory: Block) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap();
        assert!(state.live.remove(&memory.id), "released twice");
        state.used -= memory.bytes.lock().unwrap().len() as u64;
        if state.release_fails { Err(broken()) } else { Ok(()) }
    }

    fn address(&self, memory: &Block) -> u64 {
        memory.id << 32
    }

    unsafe fn copy_in(&self, memory: &Block, at: u64, from: &[u8]) -> Result<(), Error> {
        let mut bytes = memory.bytes.lock().unwrap();
        bytes[at as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    unsafe fn copy_out(&self, memory: &Block, at: u64, to: &mut [u8]) -> Result<(), Error> {
        let bytes = memory.bytes.lock().unwrap();
        to.copy_from_slice(&bytes[at as usize..][..to.len()]);
        Ok(())
    }

    fn import(&self, memory: PeerMemory) -> Result<u64, Error> {
        self.imports.fetch_add(1, Ordering::Relaxed);
        Ok(memory.address + 1)
    }

    fn forget(&self, memory: PeerMemory, address: u64) {
        assert_eq!(address, memory.address + 1);
        self.imports.fetch_sub(1, Ordering::Relaxed);
    }
}
