//! What the driver has made: files, objects, ranges, mappings.

use std::collections::BTreeMap;

use super::engine::Channel;
use super::{Failure, Launched, Line, Storage};
use crate::raw::local_memory::Shape;

/// What a GPU offers.
#[derive(Clone, Copy, Debug)]
pub(in crate::raw) struct Class {
    pub(in crate::raw) channel: u32,
    pub(in crate::raw) compute: u32,
    pub(in crate::raw) copy: u32,
    pub(in crate::raw) usermode: u32,
    pub(in crate::raw) sm_version: u32,
}

#[rustfmt::skip]
impl Class {
    pub(in crate::raw) const AMPERE: Self =
        Self { channel: 0xc56f, compute: 0xc6c0, copy: 0xc6b5, usermode: 0xc561, sm_version: 0x800 };
    pub(in crate::raw) const AMPERE_86: Self =
        Self { channel: 0xc56f, compute: 0xc7c0, copy: 0xc7b5, usermode: 0xc561, sm_version: 0x806 };
    pub(in crate::raw) const ADA: Self =
        Self { channel: 0xc56f, compute: 0xc9c0, copy: 0xc7b5, usermode: 0xc561, sm_version: 0x809 };
    pub(in crate::raw) const HOPPER: Self =
        Self { channel: 0xc86f, compute: 0xcbc0, copy: 0xc8b5, usermode: 0xc661, sm_version: 0x900 };
    pub(in crate::raw) const BLACKWELL: Self =
        Self { channel: 0xc96f, compute: 0xcdc0, copy: 0xc9b5, usermode: 0xc661, sm_version: 0xa00 };
    pub(in crate::raw) const BLACKWELL_12: Self =
        Self { channel: 0xca6f, compute: 0xcec0, copy: 0xcab5, usermode: 0xc761, sm_version: 0xc00 };
    pub(in crate::raw) const GENERATIONS: [Self; 6] =
        [Self::AMPERE, Self::AMPERE_86, Self::ADA, Self::HOPPER, Self::BLACKWELL, Self::BLACKWELL_12];
}

/// `NV01_ROOT_CLIENT`.
pub(super) const ROOT: u32 = 0x41;
/// The number of the first GPU's file.
pub(super) const FIRST_MINOR: u32 = 3;

/// The file of a GPU.
pub(super) fn gpu_path(minor: u32) -> String {
    format!("/dev/nvidia{minor}")
}

/// An object of a client.
#[derive(Debug)]
pub(in crate::raw) struct Object {
    /// The root that it is under.
    pub(super) client: u32,
    /// The number of its GPU, of those that there are; that of a root says nothing.
    pub(super) gpu: u32,
    pub(super) parent: u32,
    pub(super) class: u32,
    pub(super) storage: Option<Storage>,
}

/// Addresses that UVM knows, and what is mapped there.
#[derive(Debug)]
pub(in crate::raw) struct Range {
    pub(super) size: u64,
    pub(super) storage: Option<Storage>,
}

/// All of it.
#[derive(Debug)]
pub(in crate::raw) struct State {
    pub(in crate::raw) class: Class,
    pub(in crate::raw) version: &'static [u8],
    pub(in crate::raw) shape: Shape,
    /// Controls that are not passed on.
    pub(in crate::raw) unsupported: Vec<u32>,
    /// Memory that there is.
    pub(in crate::raw) free: u64,
    pub(in crate::raw) calls: Vec<Line>,
    pub(in crate::raw) fail_at: Option<(usize, Failure)>,
    /// What the next mappings fail with.
    pub(in crate::raw) map_errno: Vec<i32>,
    /// How many files open, and mappings are made, before one is not; nothing when that has been.
    pub(in crate::raw) fail_open: Option<usize>,
    pub(in crate::raw) fail_map: Option<usize>,
    /// Whether channels read anything.
    pub(in crate::raw) hangs: bool,
    /// A channel that reads nothing.
    pub(in crate::raw) stuck: Option<u32>,
    /// Whether kernels run.
    pub(in crate::raw) runs: bool,
    /// What the next launch is stopped by.
    pub(in crate::raw) fault: Option<u32>,
    /// What the MMU refused: address, kind, access.
    pub(in crate::raw) mmu_fault: Option<(u64, u32, u32)>,
    pub(in crate::raw) launched: Vec<Launched>,
    /// Pushes as the channels read them, word by word.
    pub(in crate::raw) pushes: Vec<Vec<u32>>,
    pub(in crate::raw) copies: usize,
    /// What was there when the last file was closed, in words.
    pub(in crate::raw) abandoned: String,
    /// Changes bytes of answers that hold no numbers of objects: the state of a generator.
    pub(in crate::raw) damage: Option<u64>,

    /// How many GPUs there are.
    pub(in crate::raw) gpus: u32,

    pub(super) files: BTreeMap<i32, String>,
    next_file: i32,
    /// Clients by their control files.
    pub(super) roots: BTreeMap<i32, u32>,
    next_root: u32,
    pub(super) objects: BTreeMap<u32, Object>,
    next_object: u32,
    /// Whose addresses are meant: a file of UVM, each of which has an address space of its own.
    pub(super) space: i32,
    pub(super) ranges: BTreeMap<(i32, u64), Range>,
    pub(super) channels: BTreeMap<u32, Channel>,
    /// What mapping a file shows: an object's number.
    pub(super) tied: BTreeMap<i32, u32>,
    pub(in crate::raw) mappings: usize,
    /// GPUs, address spaces and channels that UVM knows, by its files.
    pub(super) registered: Vec<(i32, String)>,
    pub(super) clock: u64,
}

impl State {
    pub(in crate::raw) fn new(class: Class) -> Self {
        Self {
            class,
            version: b"580.95.05",
            shape: Shape { gpcs: 8, tpcs_per_gpc: 9, sms_per_tpc: 2, warps_per_sm: 64 },
            unsupported: Vec::new(),
            free: 64 << 30,
            calls: Vec::new(),
            fail_at: None,
            map_errno: Vec::new(),
            fail_open: None,
            fail_map: None,
            hangs: false,
            stuck: None,
            runs: false,
            fault: None,
            mmu_fault: None,
            launched: Vec::new(),
            pushes: Vec::new(),
            copies: 0,
            abandoned: String::new(),
            damage: None,
            gpus: 1,
            files: BTreeMap::new(),
            next_file: 10,
            roots: BTreeMap::new(),
            next_root: 0xc1d0_0001,
            objects: BTreeMap::new(),
            next_object: 0x101,
            space: 0,
            ranges: BTreeMap::new(),
            channels: BTreeMap::new(),
            tied: BTreeMap::new(),
            mappings: 0,
            registered: Vec::new(),
            clock: 1000,
        }
    }

    pub(super) fn open(&mut self, path: &str) -> Option<i32> {
        let of_gpu =
            |path: &str| (FIRST_MINOR..FIRST_MINOR + self.gpus).any(|it| gpu_path(it) == path);
        if !["/dev/nvidiactl", "/dev/nvidia-uvm"].contains(&path) && !of_gpu(path) {
            return None;
        }
        let number = self.next_file;
        self.next_file += 1;
        self.files.insert(number, path.into());
        Some(number)
    }

    /// Closing the file of a client frees all that is left of it, as a driver does, and of UVM what is in its address space; tests look before.
    pub(super) fn close(&mut self, number: i32) {
        self.files.remove(&number);
        self.tied.remove(&number);
        let mut abandoned: Vec<String> = Vec::new();
        if let Some(root) = self.roots.remove(&number) {
            let left: Vec<u32> = self
                .objects
                .iter()
                .filter(|(_, it)| it.client == root)
                .map(|(it, _)| *it)
                .collect();
            abandoned.extend(left.iter().map(|it| self.objects[it].words()));
            for object in left {
                self.remove(object);
            }
        }
        let is_there = |space: i32| space == number;
        abandoned.extend(
            self.ranges
                .keys()
                .filter(|(space, _)| is_there(*space))
                .map(|(_, start)| range_words(*start)),
        );
        abandoned.extend(
            self.registered
                .iter()
                .filter(|(space, _)| is_there(*space))
                .map(|(_, what)| registered_words(what)),
        );
        self.ranges.retain(|(space, _), _| !is_there(*space));
        self.registered.retain(|(space, _)| !is_there(*space));
        if self.files.is_empty() {
            abandoned.push(self.left());
        }
        abandoned.retain(|words| !words.is_empty());
        self.abandoned.extend(abandoned.iter().map(|words| format!("{words}\n")));
    }

    pub(super) fn failure(&mut self) -> Option<Failure> {
        let (call, failure) = self.fail_at?;
        (call + 1 == self.calls.len()).then_some(failure)
    }

    /// Gives a number to an object, to a root by the control file that it is made with.
    pub(super) fn insert(&mut self, object: Object, file: i32) -> u32 {
        let next = if object.class == ROOT { &mut self.next_root } else { &mut self.next_object };
        let number = *next;
        *next += 1;
        let client = if object.class == ROOT { number } else { object.client };
        if object.class == ROOT {
            assert!(self.roots.insert(file, number).is_none(), "a root for each control file");
        }
        self.objects.insert(number, Object { client, ..object });
        number
    }

    /// Frees an object and what is under it.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let under: Vec<u32> = self
            .objects
            .iter()
            .filter(|(child, object)| object.parent == number && **child != number)
            .map(|(child, _)| *child)
            .collect();
        for child in under {
            self.remove(child);
        }
        self.channels.remove(&number);
        let Some(object) = self.objects.remove(&number) else { return false };
        if let (Some(storage), 0x40) = (&object.storage, object.class) {
            self.free += storage.len() as u64 * 4;
        }
        true
    }

    pub(super) fn map(&mut self, file: i32, size: u64) -> Option<Storage> {
        let object = self.tied.remove(&file).expect("a file that MAP_MEMORY was called with");
        let storage = self.objects[&object].storage.clone()?;
        assert_eq!(storage.len() as u64 * 4, size);
        Some(storage)
    }

    /// What is mapped at a device address: the words from there on.
    pub(super) fn at(&self, address: u64) -> Option<(Storage, u64)> {
        let first = (self.space, 0);
        let ((_, start), range) = self.ranges.range(first..=(self.space, address)).next_back()?;
        let offset = address - start;
        (offset < range.size)
            .then(|| (range.storage.clone(), offset))
            .and_then(|(s, o)| Some((s?, o)))
    }

    pub(in crate::raw) fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.at(address).is_some_and(|(storage, offset)| load(&storage, offset, bytes))
    }

    pub(in crate::raw) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        self.at(address).is_some_and(|(storage, offset)| store(&storage, offset, bytes))
    }

    pub(in crate::raw) fn files(&self) -> usize {
        self.files.len()
    }

    /// Channels, oldest first.
    pub(in crate::raw) fn channels(&self) -> Vec<u32> {
        self.channels.keys().copied().collect()
    }

    /// How many ranges of addresses are taken.
    pub(in crate::raw) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// What there is beside files, in words.
    pub(in crate::raw) fn left(&self) -> String {
        let mut left: Vec<String> = Vec::new();
        left.extend(self.objects.values().map(Object::words));
        left.extend(self.ranges.keys().map(|(_, start)| range_words(*start)));
        left.extend(self.channels.keys().map(|channel| format!("channel {channel:#x}")));
        left.extend(self.registered.iter().map(|(_, what)| registered_words(what)));
        left.extend((0..self.mappings).map(|_| "mapping".to_owned()));
        left.extend(self.files.values().map(|path| format!("file {path}")));
        left.join("\n")
    }
}

impl Object {
    fn words(&self) -> String {
        format!("object of class {:#x}", self.class)
    }
}

fn range_words(start: u64) -> String {
    format!("range at {start:#x}")
}

fn registered_words(what: &str) -> String {
    format!("registered {what}")
}

pub(super) fn storage(size: u64) -> Storage {
    // SAFETY: zeros are words.
    unsafe { Storage::new_zeroed_slice(size as usize / 4).assume_init() }
}

/// Where bytes of memory are, if they all lie inside.
fn place(storage: &Storage, offset: u64, count: usize) -> Option<*mut u8> {
    let at = offset as usize;
    let start = storage.as_ptr().cast::<u8>().cast_mut();
    (at.checked_add(count)? <= storage.len() * 4).then(|| start.wrapping_add(at))
}

pub(super) fn store(storage: &Storage, offset: u64, bytes: &[u8]) -> bool {
    let Some(to) = place(storage, offset, bytes.len()) else { return false };
    // SAFETY: inside of the words, which are cells; both sides are of one thread.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    true
}

pub(super) fn load(storage: &Storage, offset: u64, bytes: &mut [u8]) -> bool {
    let Some(from) = place(storage, offset, bytes.len()) else { return false };
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    true
}
