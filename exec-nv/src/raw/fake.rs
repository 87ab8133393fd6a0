//! A driver and a GPU that are not there: it answers ioctls, counts what was made and not given back, keeps what it was told byte by
//! byte, can fail at any call, and does what channels are told. What is launched is recorded, and code of Hopper runs where a test asks for it.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::call::Call;
use super::error::Error;
use super::system::{Mapping, Part, System};

mod block;
mod driver;
mod engine;
mod objects;
mod sass;

pub(super) use block::Block;
pub(super) use engine::Launched;
pub(super) use objects::{Class, State};

/// Bytes that are zero but for some words, given by offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    size: usize,
    words: Vec<(usize, Vec<u8>)>,
}

impl Bytes {
    pub(super) fn zeros(size: usize) -> Self {
        Self { size, words: Vec::new() }
    }

    pub(super) fn u32(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub(super) fn u64(self, at: usize, value: u64) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub(super) fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.words.push((at, bytes.to_vec()));
        self
    }

    pub(super) fn whole(&self) -> Vec<u8> {
        let mut whole = vec![0; self.size];
        for (at, bytes) in &self.words {
            whole[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        whole
    }
}

/// A call as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) path: String,
    pub(super) word: u32,
    pub(super) parts: Vec<Vec<u8>>,
}

/// How a call fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The kernel answers with a number.
    Errno,
    /// The driver writes status 0x51, without memory, where the call has its status.
    Status,
}

/// Memory of the GPU or the host: words that both sides see.
pub(super) type Storage = Arc<[AtomicU32]>;

/// A system with a driver and one or more GPUs.
#[derive(Clone, Debug)]
pub(super) struct Fake(pub(super) Arc<Mutex<State>>);

/// A file of it.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) number: i32,
    state: Arc<Mutex<State>>,
}

impl Drop for File {
    fn drop(&mut self) {
        lock(&self.state).close(self.number);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Whether it is the one that was counted down to.
fn counted(left: &mut Option<usize>) -> bool {
    *left = match *left {
        Some(0) => {
            *left = None;
            return true;
        }
        left => left.map(|left| left - 1),
    };
    false
}

impl Fake {
    /// A system whose GPU offers the classes of a generation.
    pub(super) fn new(class: Class) -> Self {
        Self(Arc::new(Mutex::new(State::new(class))))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Fails at the call of this number, counted from 0 and from now on.
    pub(super) fn fail_at(&self, call: usize, failure: Failure) {
        let mut state = self.state();
        state.calls.clear();
        state.fail_at = Some((call, failure));
    }

    /// What is still there, in words; empty if nothing is.
    pub(super) fn left(&self) -> String {
        self.state().left()
    }
}

impl System for Fake {
    type File = File;
    type Mapping = Memory;

    fn open(&self, path: &str) -> Result<File, Error> {
        let mut state = self.state();
        let refused = |errno| Error::Open { path: path.into(), errno };
        if counted(&mut state.fail_open) {
            return Err(refused(24));
        }
        let number = state.open(path).ok_or_else(|| refused(2))?;
        Ok(File { path: path.into(), number, state: Arc::clone(&self.0) })
    }

    fn descriptor(&self, file: &File) -> i32 {
        file.number
    }

    unsafe fn ioctl(&self, file: &File, call: Call, parts: &mut [Part<'_>]) -> Result<(), Error> {
        let mut state = self.state();
        let word = call.word(parts[0].bytes.len());
        let line = Line {
            path: file.path.clone(),
            word,
            parts: parts.iter().map(|part| part.bytes.to_vec()).collect(),
        };
        state.calls.push(line);
        let failure = state.failure();
        if let Some(Failure::Errno) = failure {
            return Err(Error::Ioctl { call: call.name, errno: 12 });
        }
        let mut parts: Vec<&mut [u8]> = parts.iter_mut().map(|part| &mut *part.bytes).collect();
        state.ioctl(file.number, call, &mut parts, failure.is_some());
        Ok(())
    }

    fn map(&self, file: &File, address: Option<u64>, size: u64) -> Result<Memory, Error> {
        let mut state = self.state();
        if let Some(errno) = state.map_errno.pop() {
            return Err(Error::Map { size, errno });
        }
        if counted(&mut state.fail_map) {
            return Err(Error::Map { size, errno: 12 });
        }
        let storage = state.map(file.number, size);
        let is_doorbell = storage.is_none();
        let storage = storage.unwrap_or_else(|| objects::storage(size));
        state.mappings += 1;
        let address = address.unwrap_or(0x7000_0000);
        Ok(Memory {
            address,
            storage,
            is_doorbell,
            state: Some(Arc::clone(&self.0)),
            log: Mutex::default(),
        })
    }
}

/// Memory as the process sees it. It tells what was written to it, in which order.
#[derive(Debug)]
pub(super) struct Memory {
    address: u64,
    storage: Storage,
    is_doorbell: bool,
    state: Option<Arc<Mutex<State>>>,
    log: Mutex<Vec<String>>,
}

impl Memory {
    /// Memory that belongs to nothing.
    pub(super) fn new(size: u64) -> Self {
        let storage = objects::storage(size);
        Self { address: 0, storage, is_doorbell: false, state: None, log: Mutex::default() }
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        core::mem::take(&mut self.log.lock().unwrap())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            lock(state).mappings -= 1;
        }
    }
}

// SAFETY: the bytes are its own.
unsafe impl Mapping for Memory {
    fn address(&self) -> u64 {
        self.address
    }

    fn size(&self) -> u64 {
        self.storage.len() as u64 * 4
    }

    fn read(&self, offset: u64) -> Option<u32> {
        self.storage.get(offset as usize / 4).map(|word| word.load(Ordering::Relaxed))
    }

    fn write(&self, offset: u64, words: &[u32]) -> bool {
        let at = offset as usize / 4;
        let Some(place) = self.storage.get(at..at + words.len()) else { return false };
        for (place, word) in place.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        if self.state.is_none() {
            let words: Vec<_> = words.iter().map(|word| format!("{word:#x}")).collect();
            self.log.lock().unwrap().push(format!("{offset:#x}: {}", words.join(" ")));
        }
        if let (true, Some(state)) = (self.is_doorbell, &self.state) {
            assert_eq!(offset, super::ring::DOORBELL);
            lock(state).ring(words[0]);
        }
        true
    }

    fn start(&self) -> NonNull<u8> {
        NonNull::from(&*self.storage).cast()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        objects::store(&self.storage, offset, bytes)
    }

    fn load(&self, offset: u64, bytes: &mut [u8]) -> bool {
        objects::load(&self.storage, offset, bytes)
    }

    fn fence(&self) {
        if self.state.is_none() {
            self.log.lock().unwrap().push("fence".into());
        }
    }
}
