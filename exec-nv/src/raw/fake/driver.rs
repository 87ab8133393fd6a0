//! The ioctls: what a driver of the branches 570 to 595 does with them, as far as this crate asks. Offsets are the headers', by hand.

use super::engine::Channel;
use super::objects::{FIRST_MINOR, Object, ROOT, Range, State, gpu_path, storage};
use crate::raw::call::{Call, Family};

/// `NV_ERR_NO_MEMORY`, `NV_ERR_INVALID_OBJECT_HANDLE`, `NV_ERR_NOT_SUPPORTED`, `NV_ERR_UVM_ADDRESS_IN_USE`, `NV_ERR_INVALID_STATE`.
const NO_MEMORY: u32 = 0x51;
const INVALID_HANDLE: u32 = 0x33;
const NOT_SUPPORTED: u32 = 0x56;
const ADDRESS_IN_USE: u32 = 0x68;
const INVALID_STATE: u32 = 0x40;
/// `NV_ERR_INVALID_DEVICE`, `NV_ERR_GPU_UUID_NOT_FOUND`.
const INVALID_DEVICE: u32 = 0x26;
const UUID_NOT_FOUND: u32 = 0x12;

/// `NV_ERR_INVALID_CLIENT`.
const INVALID_CLIENT: u32 = 0x23;

/// The numbers of GPUs: as cards have them, and as devices.
const FIRST_CARD: u32 = 0x1b00;
const CARD_STEP: u32 = 0x100;
const FIRST_DEVICE: u32 = 5;
/// Bytes of a card in the list of cards.
const CARD: usize = 72;

/// The identity of a GPU.
fn uuid(gpu: u32) -> [u8; 16] {
    let mut uuid = *b"0123456789abcdef";
    uuid[15] += gpu as u8;
    uuid
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

type Outcome = Result<(), u32>;

impl State {
    pub(super) fn ioctl(&mut self, file: i32, call: Call, parts: &mut [&mut [u8]], fail: bool) {
        let path = self.files[&file].clone();
        let status_at = match (call.family, call.number) {
            (Family::Uvm, 0x3000_0001) => 8,
            (Family::Uvm, 75) => 4,
            (Family::Uvm, _) => {
                parts[0].len()
                    - if [24, 16].contains(&parts[0].len()) || call.number == 27 { 8 } else { 4 }
            }
            (_, 0x2b) => 40,
            (_, 0x2a) => 28,
            (_, 0x29) => 12,
            (_, 0x4e) => 40,
            _ => usize::MAX,
        };
        let outcome = if fail { Err(NO_MEMORY) } else { self.answer(&path, file, call, parts) };
        match outcome {
            Ok(()) => self.damage(call, parts),
            Err(status) if status_at < parts[0].len() => put(parts[0], status_at, status),
            // these have none: what they tell is missing instead
            Err(_) => parts[0].fill(0),
        }
    }

    /// Changes a few bytes of an answer that has no numbers of objects in it.
    fn damage(&mut self, call: Call, parts: &mut [&mut [u8]]) {
        let Some(mut seed) = self.damage else { return };
        let is_fact = (call.family, call.number) == (Family::ResourceManager, 0x2a);
        if !is_fact && ![200, 210].contains(&call.number) {
            return;
        }
        let Some(part) = parts.last_mut() else { return };
        for _ in 0..2 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % part.len().min(64);
            if seed >> 60 < 4 {
                part[at] ^= (seed >> 24) as u8;
            }
        }
        self.damage = Some(seed);
    }

    fn answer(&mut self, path: &str, file: i32, call: Call, parts: &mut [&mut [u8]]) -> Outcome {
        match (call.family, call.number) {
            (Family::Uvm, number) => {
                assert_eq!(path, "/dev/nvidia-uvm");
                self.space = file;
                self.uvm(number, parts[0])
            }
            (_, 0x2b) => self.alloc(file, parts),
            (_, 0x2a) => self.control(file, parts),
            (_, 0x29) => {
                let object = word(parts[0], 8);
                self.check_client(file, word(parts[0], 0), object)?;
                let name = format!("channel {object:#x}");
                let is_registered = self.registered.iter().any(|(_, what)| *what == name);
                if self.channels.contains_key(&object) && is_registered {
                    return Err(INVALID_STATE);
                }
                if self.remove(object) { Ok(()) } else { Err(INVALID_HANDLE) }
            }
            (_, 0x4e) => {
                let object = word(parts[0], 8);
                self.check_client(file, word(parts[0], 0), object)?;
                let found = self.objects.get(&object).ok_or(INVALID_HANDLE)?;
                let (is_host, gpu) = (found.class == 0x3e, found.gpu);
                let target = word(parts[0], 48) as i32;
                assert_ne!(target, file, "a file of its own for each mapping");
                let of_gpu = gpu_path(FIRST_MINOR + gpu);
                let expected = if is_host { "/dev/nvidiactl" } else { &of_gpu };
                assert_eq!(self.files[&target], expected);
                assert!(self.tied.insert(target, object).is_none(), "a file serves one mapping");
                Ok(())
            }
            (_, 200) => {
                for (gpu, card) in (0..self.gpus).zip(parts[0].chunks_exact_mut(CARD)) {
                    card[0] = 1;
                    card[8] = 0x41 + gpu as u8;
                    put(card, 16, FIRST_CARD + gpu * CARD_STEP);
                    put(card, 56, FIRST_MINOR + gpu);
                }
                Ok(())
            }
            (_, 201) => {
                let control = word(parts[0], 0) as i32;
                assert_eq!(self.files[&control], "/dev/nvidiactl");
                Ok(())
            }
            (_, 210) => {
                assert_eq!(word(parts[0], 0), u32::from(b'2'));
                parts[0][8..8 + self.version.len()].copy_from_slice(self.version);
                Ok(())
            }
            (_, number) => panic!("ioctl {number}"),
        }
    }

    /// Whether the object is of this client, which is the one of the control file.
    fn check_client(&self, file: i32, root: u32, object: u32) -> Outcome {
        if self.roots.get(&file) != Some(&root) {
            return Err(INVALID_CLIENT);
        }
        match self.objects.get(&object) {
            Some(found) if found.client == root => Ok(()),
            _ => Err(INVALID_HANDLE),
        }
    }

    fn alloc(&mut self, file: i32, parts: &mut [&mut [u8]]) -> Outcome {
        let (root, parent, class) = (word(parts[0], 0), word(parts[0], 4), word(parts[0], 12));
        let parameters: &[u8] = parts.get(1).map_or(&[], |part| part);
        assert_eq!(word(parts[0], 32) as usize, parameters.len(), "class {class:#x}");
        if class != ROOT {
            self.check_client(file, root, parent)?;
        }
        let offered = self.class;
        let under = self.objects.get(&parent).map(|object| object.class);
        let mut gpu = self.objects.get(&parent).map_or(0, |object| object.gpu);
        let mut memory = None;
        match class {
            ROOT => assert_eq!((root, parent), (0, 0)),
            0x80 => {
                assert_eq!((under, word(parameters, 4)), (Some(ROOT), root));
                let device = word(parameters, 0).checked_sub(FIRST_DEVICE);
                gpu = device.filter(|gpu| *gpu < self.gpus).ok_or(INVALID_DEVICE)?;
            }
            0x2080 | 0xa06c | 0x90f1 => assert_eq!(under, Some(0x80)),
            0x40 | 0x3e => {
                assert_eq!(under, Some(0x80));
                let size = long(parameters, 64);
                assert!(size.is_multiple_of(0x1000) && long(parameters, 88) == size - 1);
                if class == 0x40 {
                    self.free = self.free.checked_sub(size).ok_or(NO_MEMORY)?;
                }
                memory = Some(storage(size));
            }
            0x9067 => {
                assert_eq!(under, Some(0xa06c));
                assert_eq!(self.objects[&word(parameters, 0)].class, 0x90f1);
            }
            0x83de => {
                assert_eq!((under, word(parameters, 4)), (Some(0x80), root));
                assert_eq!(self.objects[&word(parameters, 8)].class, offered.compute);
            }
            _ if class == offered.usermode => {
                assert_eq!(under, Some(0x2080));
                assert_eq!(parameters.len(), if class >= 0xc661 { 2 } else { 0 });
            }
            _ if class == offered.channel => assert_eq!(under, Some(0xa06c)),
            _ if class == offered.compute || class == offered.copy => {
                assert_eq!(under, Some(offered.channel));
            }
            _ => panic!("class {class:#x}"),
        }
        let is_channel = class == offered.channel;
        let number =
            self.insert(Object { client: root, gpu, parent, class, storage: memory }, file);
        put(parts[0], 8, number);
        if is_channel {
            let channel = Channel::new(self, number, parts[1]);
            self.channels.insert(number, channel);
        } else if class == offered.compute || class == offered.copy {
            self.channels.get_mut(&parent).unwrap().engine = class;
        }
        Ok(())
    }

    fn control(&mut self, file: i32, parts: &mut [&mut [u8]]) -> Outcome {
        let (object, command) = (word(parts[0], 4), word(parts[0], 8));
        self.check_client(file, word(parts[0], 0), object)?;
        let gpu = self.objects[&object].gpu;
        if self.unsupported.contains(&command) {
            return Err(NOT_SUPPORTED);
        }
        match command {
            0x205 => {
                let card = word(parts[1], 0).checked_sub(FIRST_CARD).map(|it| it / CARD_STEP);
                let card = card.filter(|card| *card < self.gpus).ok_or(INVALID_DEVICE)?;
                put(parts[1], 8, FIRST_DEVICE + card);
            }
            0x80_0292 => {
                let class = self.class;
                // also older ones, as drivers do
                let list =
                    [0xc361, class.usermode, class.compute, class.copy, 0xc46f, class.channel];
                put(parts[1], 0, list.len() as u32);
                for (index, class) in list.into_iter().enumerate() {
                    put(parts[1], 4 + index * 4, class);
                }
            }
            0x2080_1201 => {
                let shape = self.shape;
                for row in 0..word(parts[1], 0) as usize {
                    let data = match word(parts[2], row * 8) {
                        0xc => self.class.sm_version,
                        0xd => shape.warps_per_sm,
                        0x14 => shape.gpcs,
                        0x17 => shape.tpcs_per_gpc,
                        0x20 => shape.sms_per_tpc,
                        index => panic!("fact {index}"),
                    };
                    put(parts[2], row * 8 + 4, data);
                }
            }
            0x2080_122b => {
                // an H100 of 132 SMs: 6 of its 72 TPCs are off
                let mask = if word(parts[1], 16) < 6 { 0xff } else { 0x1ff };
                put(parts[1], 20, mask);
            }
            0x2080_1301 => {
                for row in 0..word(parts[1], 0) as usize {
                    let data = match word(parts[2], row * 8) {
                        0x9 => 1 << 20,
                        0x16 => (self.free >> 10) as u32,
                        index => panic!("fact {index}"),
                    };
                    put(parts[2], row * 8 + 4, data);
                }
            }
            0x2080_0110 => parts[1][4..16].copy_from_slice(b"Not There 90"),
            0x2080_014a => parts[1][12..28].copy_from_slice(&uuid(gpu)),
            0x2080_2a0a => {
                // of five copy engines, the first two belong to graphics and compute, the third is not there
                parts[1][..10].copy_from_slice(&[1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
                parts[1][128] = 0b11011;
            }
            0x83de_0328 => {
                assert_eq!(self.objects[&object].class, 0x83de);
                if let Some((address, kind, access)) = self.mmu_fault {
                    parts[1][..8].copy_from_slice(&address.to_le_bytes());
                    put(parts[1], 8, kind);
                    put(parts[1], 12, access);
                    put(parts[1], 64, 1);
                }
            }
            0x2080_200a => {}
            0xc36f_0108 => {
                let token = self.channels.get(&object).ok_or(INVALID_HANDLE)?.token;
                put(parts[1], 0, token);
            }
            0xa06c_0101 => {
                assert_eq!(parts[1][0], 1);
                let registered = &self.registered;
                for (number, channel) in &mut self.channels {
                    if channel.group == object {
                        let name = format!("channel {number:#x}");
                        if !registered.iter().any(|(_, what)| *what == name) {
                            return Err(INVALID_STATE);
                        }
                        channel.is_scheduled = true;
                    }
                }
            }
            _ => panic!("control {command:#x}"),
        }
        Ok(())
    }

    /// UVM forgets what it knew in the address space.
    fn forget(&mut self, what: &str) -> Outcome {
        let space = self.space;
        let index = self.registered.iter().position(|it| it.0 == space && it.1 == what);
        self.registered.remove(index.ok_or(INVALID_STATE)?);
        Ok(())
    }

    /// The GPU of this identity.
    fn of_uuid(&self, bytes: &[u8]) -> Result<u32, u32> {
        (0..self.gpus).find(|gpu| uuid(*gpu) == bytes[..16]).ok_or(UUID_NOT_FOUND)
    }

    fn uvm(&mut self, number: u32, bytes: &mut [u8]) -> Outcome {
        let space = self.space;
        match number {
            0x3000_0001 | 75 => {}
            37 => {
                let gpu = self.of_uuid(bytes)?;
                self.registered.push((space, format!("GPU {gpu}")));
            }
            25 => {
                let gpu = self.of_uuid(bytes)?;
                let (client, object) = (word(bytes, 20), word(bytes, 24));
                let found = self.objects.get(&object).ok_or(INVALID_HANDLE)?;
                assert_eq!((found.client, found.gpu, found.class), (client, gpu, 0x90f1));
                assert_eq!(self.roots.get(&(word(bytes, 16) as i32)), Some(&client));
                self.registered.push((space, format!("address space of GPU {gpu}")));
            }
            26 => self.forget(&format!("address space of GPU {}", self.of_uuid(bytes)?))?,
            38 => self.forget(&format!("GPU {}", self.of_uuid(bytes)?))?,
            27 => {
                let channel = word(bytes, 24);
                self.channels.get(&channel).ok_or(INVALID_HANDLE)?;
                let (base, size) = (long(bytes, 32), long(bytes, 40));
                assert_eq!(size, 64 << 20);
                self.reserve(base, size)?;
                self.registered.push((space, format!("channel {channel:#x}")));
                let channel = self.channels.get_mut(&channel).unwrap();
                assert_eq!(channel.space, space);
                channel.context = base;
            }
            28 => {
                let channel = word(bytes, if bytes.len() == 28 { 20 } else { 4 });
                self.forget(&format!("channel {channel:#x}"))?;
                let context = self.channels.get(&channel).ok_or(INVALID_HANDLE)?.context;
                self.ranges.remove(&(space, context));
            }
            73 => self.reserve(long(bytes, 0), long(bytes, 8))?,
            33 => {
                let (base, size) = (long(bytes, 0), long(bytes, 8));
                let gpu = self.of_uuid(&bytes[24..40])?;
                assert_eq!((long(bytes, 9240), word(bytes, 40)), (1, 1));
                assert!(self.registered.contains(&(space, format!("GPU {gpu}"))));
                let object = self.objects.get(&word(bytes, 9256)).ok_or(INVALID_HANDLE)?;
                assert_eq!((object.client, object.gpu), (word(bytes, 9252), gpu));
                let storage = object.storage.clone().ok_or(INVALID_HANDLE)?;
                assert_eq!(storage.len() as u64 * 4, size);
                self.ranges.get_mut(&(space, base)).ok_or(INVALID_STATE)?.storage = Some(storage);
            }
            34 => {
                let range = self.ranges.remove(&(space, long(bytes, 0))).ok_or(INVALID_STATE)?;
                if bytes.len() == 24 {
                    assert_eq!(range.size, long(bytes, 8));
                }
            }
            number => panic!("UVM {number}"),
        }
        Ok(())
    }

    fn reserve(&mut self, base: u64, size: u64) -> Outcome {
        let space = self.space;
        let before = self.ranges.range((space, 0)..(space, base + size)).next_back();
        if before.is_some_and(|((_, start), range)| start + range.size > base) {
            return Err(ADDRESS_IN_USE);
        }
        self.ranges.insert((space, base), Range { size, storage: None });
        Ok(())
    }
}
