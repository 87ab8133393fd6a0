//! The channels: rings are read, methods obeyed, copies made, launches recorded.

use std::collections::BTreeMap;

use super::block::Block;
use super::driver::{long, word};
use super::objects::State;
use super::sass::{Grid, run};
use crate::raw::qmd::{V3, V4, V5, Version};

/// A channel of the GPU.
#[derive(Debug)]
pub(in crate::raw) struct Channel {
    pub(super) group: u32,
    /// Whose addresses it has.
    pub(super) space: i32,
    pub(super) token: u32,
    pub(super) engine: u32,
    pub(super) context: u64,
    pub(super) is_scheduled: bool,
    ring: u64,
    entries: u64,
    control: u64,
    notifier: u64,
    /// Words of the push buffer that was begun.
    at: usize,
    /// What was written to each method of each subchannel.
    methods: BTreeMap<(u32, u32), u32>,
    is_stopped: bool,
}

/// A launch as the GPU was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::raw) struct Launched {
    pub(in crate::raw) channel: u32,
    pub(in crate::raw) program: u64,
    pub(in crate::raw) grid: [u64; 3],
    pub(in crate::raw) block: [u64; 3],
    pub(in crate::raw) shared: u64,
    pub(in crate::raw) local: u64,
    pub(in crate::raw) registers: u64,
    pub(in crate::raw) cluster: Option<[u64; 3]>,
    /// The bytes of each bank.
    pub(in crate::raw) banks: Vec<(u32, Vec<u8>)>,
    /// The block that said so.
    pub(in crate::raw) bytes: Vec<u8>,
    /// Code at the program's address.
    pub(in crate::raw) code: Vec<u8>,
    /// Local memory as the compute object was told: address, and bytes of a TPC.
    pub(in crate::raw) local_memory: (u64, u64),
}

impl Channel {
    pub(super) fn new(state: &State, number: u32, parameters: &[u8]) -> Self {
        assert_eq!(parameters.len(), 368);
        let group = state.objects[&number].parent;
        let memory = word(parameters, 32);
        let of_handle = |handle: u32| {
            let storage = state.objects[&handle].storage.as_ref().unwrap();
            let is_it = |range: &&super::objects::Range| {
                range.storage.as_ref().is_some_and(|its| std::sync::Arc::ptr_eq(its, storage))
            };
            let found = state.ranges.iter().find(|(_, range)| is_it(range));
            *found.expect("memory that the GPU sees").0
        };
        let (space, notifier) = of_handle(word(parameters, 0));
        let ring = long(parameters, 8);
        assert_eq!(of_handle(word(parameters, 4)), (space, ring));
        assert_eq!(word(parameters, 28), 0, "no address space inside a group");
        let (its_space, control) = of_handle(memory);
        assert_eq!(its_space, space);
        Self {
            group,
            space,
            token: 0xa00 + number,
            engine: 0,
            context: 0,
            is_scheduled: false,
            ring,
            entries: word(parameters, 16).into(),
            control: control + long(parameters, 64),
            notifier,
            at: 0,
            methods: BTreeMap::new(),
            is_stopped: false,
        }
    }
}

impl State {
    fn long(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        assert!(self.read(address, &mut bytes), "nothing is mapped at {address:#x}");
        u64::from_le_bytes(bytes)
    }

    /// The doorbell: all channels go on as far as they can, as one may wait for another.
    pub(super) fn ring(&mut self, token: u32) {
        if self.hangs || !self.channels.values().any(|channel| channel.token == token) {
            return;
        }
        self.wake();
    }

    /// All channels go on with what they were told.
    pub(in crate::raw) fn wake(&mut self) {
        let numbers: Vec<u32> = self.channels.keys().copied().collect();
        while numbers.iter().any(|&number| self.step(number)) {}
    }

    /// The address that a channel waits at.
    pub(in crate::raw) fn waits_at(&self, channel: u32) -> Option<u64> {
        let methods = &self.channels[&channel].methods;
        let get = |method: u32| Some(u64::from(*methods.get(&(0, method))?));
        (get(0x6c)? & 7 == 3).then(|| Some(get(0x60)? << 32 | get(0x5c)?))?
    }

    /// Writes an error notifier of a channel: any words.
    pub(in crate::raw) fn notify(&mut self, channel: u32, words: [u32; 4]) {
        self.space = self.channels[&channel].space;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(self.write(self.channels[&channel].notifier, &bytes));
    }

    /// Tells, in a channel's control page, which entry is read next, and gives what it told before.
    pub(in crate::raw) fn tell_read(&mut self, channel: u32, entry: u32) -> u32 {
        self.space = self.channels[&channel].space;
        let control = self.channels[&channel].control;
        let before = self.long(control + 0x88) as u32;
        assert!(self.write(control + 0x88, &entry.to_le_bytes()));
        before
    }

    /// Reads one entry of a ring, or goes on with it: whether anything was done.
    fn step(&mut self, number: u32) -> bool {
        self.space = self.channels[&number].space;
        let channel = &self.channels[&number];
        let (get, put) = (
            self.long(channel.control + 0x88) as u32,
            (self.long(channel.control + 0x88) >> 32) as u32,
        );
        if get == put || channel.is_stopped || self.stuck == Some(number) {
            return false;
        }
        assert!(channel.is_scheduled, "a channel that does not run");
        let entry = self.long(channel.ring + u64::from(get) * 8);
        assert_eq!(entry >> 40 & 3, 2, "a subroutine below 2^40");
        let (address, count) = (entry & 0xff_ffff_fffc, (entry >> 42 & 0x1f_ffff) as usize);
        let mut bytes = vec![0; count * 4];
        assert!(self.read(address, &mut bytes));
        let words: Vec<u32> =
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let from = channel.at;
        let done = self.execute(number, &words, from);
        let Some(channel) = self.channels.get_mut(&number) else { return false };
        if let Err(at) = done {
            channel.at = at;
            return at > from;
        }
        channel.at = 0;
        let next = (u64::from(get) + 1) % channel.entries;
        let (control, words) = (channel.control, words);
        assert!(self.write(control + 0x88, &(next as u32).to_le_bytes()));
        self.pushes.push(words);
        true
    }

    /// Obeys methods from one word on; stops at a wait that is not over.
    fn execute(&mut self, number: u32, words: &[u32], mut at: usize) -> Result<(), usize> {
        while at < words.len() {
            let header = words[at];
            let (opcode, count) = (header >> 29, (header >> 16 & 0x1fff) as usize);
            let (subchannel, mut method) = (header >> 13 & 7, (header & 0x1fff) << 2);
            for index in 0..count {
                if !self.method(number, subchannel, method, words[at + 1 + index]) {
                    return Err(at);
                }
                if self.channels[&number].is_stopped {
                    return Err(at);
                }
                if opcode == 1 {
                    method += 4;
                }
            }
            at += 1 + count;
        }
        Ok(())
    }

    /// Obeys one method; not if it has to wait.
    fn method(&mut self, number: u32, subchannel: u32, method: u32, value: u32) -> bool {
        let channel = self.channels.get_mut(&number).unwrap();
        channel.methods.insert((subchannel, method), value);
        let methods = channel.methods.clone();
        let get = |method: u32| methods.get(&(subchannel, method)).copied().unwrap_or(0);
        let wide = |high: u32, low: u32| u64::from(get(high)) << 32 | u64::from(get(low));
        match (subchannel, method) {
            (1 | 4, 0) => assert_eq!(value, channel.engine, "the object of the channel"),
            (0, 0x6c) => {
                let (address, payload) = (wide(0x60, 0x5c), wide(0x68, 0x64));
                self.clock += 500;
                match value & 7 {
                    1 => {
                        assert_ne!(value & 1 << 20, 0, "after what is before");
                        assert!(self.write(address, &payload.to_le_bytes()), "{address:#x}");
                        let clock = self.clock;
                        assert!(self.write(address + 8, &clock.to_le_bytes()));
                    }
                    3 => return self.long(address).wrapping_sub(payload) as i64 >= 0,
                    operation => panic!("semaphore operation {operation}"),
                }
            }
            (1, 0x2c0) => {
                assert_eq!(value, 3);
                let local = (wide(0x790, 0x794), wide(0x2e4, 0x2e8));
                assert_ne!((get(0x7b0), get(0x2a0)), (0, 0), "windows");
                self.launch(number, u64::from(get(0x2b4)) << 8, local);
            }
            (4, 0x300) => {
                assert_eq!(value, 0x182);
                let mut bytes = vec![0; get(0x418) as usize];
                assert_eq!(get(0x41c), 1);
                let (from, to) = (wide(0x400, 0x404), wide(0x408, 0x40c));
                assert!(self.read(from, &mut bytes) && self.write(to, &bytes), "{from:#x} {to:#x}");
                self.copies += 1;
            }
            _ => {}
        }
        true
    }

    /// Stops a channel, and says why.
    fn stop(&mut self, number: u32, error: u32) {
        let channel = self.channels.get_mut(&number).unwrap();
        channel.is_stopped = true;
        let notifier = channel.notifier;
        let mut notification = [0; 16];
        notification[8..12].copy_from_slice(&error.to_le_bytes());
        notification[12..16].copy_from_slice(&[1, 0, 0xff, 0xff]);
        assert!(self.write(notifier, &notification));
    }

    /// How the GPU's compute class has its blocks.
    pub(in crate::raw) fn block_version(&self) -> &'static Version {
        match self.class.compute {
            0xcdc0.. => &V5,
            0xcbc0 => &V4,
            _ => &V3,
        }
    }

    /// Records a launch, and those that depend on it.
    fn launch(&mut self, number: u32, address: u64, local_memory: (u64, u64)) {
        if let Some(error) = self.fault.take() {
            return self.stop(number, error);
        }
        assert!(address.is_multiple_of(256));
        let version = self.block_version();
        let mut bytes = vec![0; version.size];
        assert!(self.read(address, &mut bytes));
        let reading =
            Block { bytes: &bytes, version }.read().unwrap_or_else(|error| panic!("{error}"));
        let bank = |&(index, address, size): &(u32, u64, u64)| {
            let mut bytes = vec![0; size as usize];
            assert!(self.read(address, &mut bytes), "bank {index}");
            (index, bytes)
        };
        let program = reading.program;
        let mut code = vec![0; 128];
        assert!(self.read(program, &mut code), "code at {program:#x}");
        let launched = Launched {
            channel: number,
            program,
            grid: reading.grid,
            block: reading.block,
            shared: reading.shared,
            local: reading.local,
            registers: reading.registers,
            cluster: reading.cluster,
            banks: reading.banks.iter().map(bank).collect(),
            bytes,
            code,
            local_memory,
        };
        if self.runs {
            let sides = |sides: [u64; 3]| sides.map(|side| side as u32);
            let version = self.class.sm_version;
            let grid = Grid {
                program,
                sm: (version >> 8) * 10 + (version & 0xf),
                grid: sides(launched.grid),
                block: sides(launched.block),
                banks: launched.banks.clone(),
                shared: launched.shared as usize,
                local: launched.local as usize,
            };
            if let Err(error) = run(&grid, self) {
                assert!(self.mmu_fault.is_some(), "{error}");
                return self.stop(number, 31);
            }
        }
        self.launched.push(launched);
        if let Some(next) = reading.next {
            self.launch(number, next, local_memory);
        }
    }
}
