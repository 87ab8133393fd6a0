//! A driver that is a script: it checks every byte that it is given and answers what the script says. No GPU is behind it.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use super::call::Call;
use super::error::Error;
use super::system::{Mapping, Part, System};

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

    fn whole(&self) -> Vec<u8> {
        let mut whole = vec![0; self.size];
        self.put(&mut whole);
        whole
    }

    fn put(&self, whole: &mut [u8]) {
        for (at, bytes) in &self.words {
            whole[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// One call: what is expected, and what is written in answer.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) path: &'static str,
    pub(super) word: u32,
    pub(super) parts: Vec<Bytes>,
    pub(super) answer: Vec<Bytes>,
}

#[derive(Debug, Default)]
struct State {
    script: Vec<Line>,
    next: Cell<usize>,
    open: RefCell<Vec<String>>,
    files: Cell<i32>,
    fail_at: Cell<Option<usize>>,
}

/// A system that follows a script.
#[derive(Clone, Debug)]
pub(super) struct Fake(Rc<State>);

/// A file of it.
#[derive(Debug)]
pub(super) struct File {
    path: String,
    number: i32,
    state: Rc<State>,
}

impl Drop for File {
    fn drop(&mut self) {
        let mut open = self.state.open.borrow_mut();
        let index = open.iter().position(|path| *path == self.path).unwrap();
        open.remove(index);
    }
}

impl Fake {
    pub(super) fn new(script: Vec<Line>) -> Self {
        Self(Rc::new(State { script, files: Cell::new(10), ..State::default() }))
    }

    /// Answers the call of this number with status 0x51, without memory.
    pub(super) fn failing_at(self, call: usize) -> Self {
        self.0.fail_at.set(Some(call));
        self
    }

    pub(super) fn calls(&self) -> usize {
        self.0.next.get()
    }

    pub(super) fn open_files(&self) -> usize {
        self.0.open.borrow().len()
    }
}

impl System for Fake {
    type File = File;
    type Mapping = Memory;

    fn open(&self, path: &str) -> Result<File, Error> {
        self.0.open.borrow_mut().push(path.into());
        let number = self.0.files.get();
        self.0.files.set(number + 1);
        Ok(File { path: path.into(), number, state: Rc::clone(&self.0) })
    }

    fn descriptor(&self, file: &File) -> i32 {
        file.number
    }

    unsafe fn ioctl(&self, file: &File, call: Call, parts: &mut [Part<'_>]) -> Result<(), Error> {
        let index = self.0.next.get();
        self.0.next.set(index + 1);
        let line = self
            .0
            .script
            .get(index)
            .unwrap_or_else(|| panic!("call {index} is none of the script"));
        assert_eq!(line.path, file.path, "file of call {index}");
        assert_eq!(line.word, call.word(parts[0].bytes.len()), "word of call {index}");
        assert_eq!(line.parts.len(), parts.len(), "parts of call {index}");
        for (number, (expected, part)) in line.parts.iter().zip(&*parts).enumerate() {
            assert_eq!(expected.whole(), part.bytes, "part {number} of call {index}");
        }
        if self.0.fail_at.get() == Some(index) {
            return Err(Error::Ioctl { call: call.name, errno: 12 });
        }
        for (answer, part) in line.answer.iter().zip(parts) {
            answer.put(part.bytes);
        }
        Ok(())
    }

    fn map(&self, _: &File, address: Option<u64>, size: u64) -> Result<Memory, Error> {
        let memory = Memory::new(size);
        Ok(Memory { address: address.unwrap_or(0x7000_0000), ..memory })
    }
}

/// Memory that tells what was written to it, in which order.
#[derive(Debug)]
pub(super) struct Memory {
    address: u64,
    words: RefCell<Vec<u32>>,
    log: RefCell<Vec<String>>,
}

impl Memory {
    pub(super) fn new(size: u64) -> Self {
        let words = RefCell::new(vec![0; size as usize / 4]);
        Self { address: 0, words, log: RefCell::default() }
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        self.log.take()
    }
}

impl Mapping for Memory {
    fn address(&self) -> u64 {
        self.address
    }

    fn size(&self) -> u64 {
        self.words.borrow().len() as u64 * 4
    }

    fn read(&self, offset: u64) -> Option<u32> {
        self.words.borrow().get(offset as usize / 4).copied()
    }

    fn write(&self, offset: u64, words: &[u32]) -> bool {
        let at = offset as usize / 4;
        let mut memory = self.words.borrow_mut();
        let Some(place) = memory.get_mut(at..at + words.len()) else { return false };
        place.copy_from_slice(words);
        let words: Vec<_> = words.iter().map(|word| format!("{word:#x}")).collect();
        self.log.borrow_mut().push(format!("{offset:#x}: {}", words.join(" ")));
        true
    }

    fn fence(&self) {
        self.log.borrow_mut().push("fence".into());
    }
}
