//! The order of calls and every byte of their structures, for a GH100 on driver 580: offsets and numbers from the headers, written
//! out by hand, not taken from the types under test.

use super::device::{RawDevice, Step};
use super::error::Error;
use super::fake::{Bytes, Fake, Line};
use super::local_memory::Shape;

const CTL: &str = "/dev/nvidiactl";
const UVM: &str = "/dev/nvidia-uvm";
const GPU: &str = "/dev/nvidia3";

const ROOT: u32 = 0xc1d0_0001;
const DEVICE: u32 = 0x101;
const SUBDEVICE: u32 = 0x102;
const USERMODE: u32 = 0x103;
const SPACE: u32 = 0x104;
const MEMORY: u32 = 0x105;
const GROUP: u32 = 0x106;
const SHARE: u32 = 0x107;
const CHANNEL: u32 = 0x108;

const UUID: &[u8; 16] = b"0123456789abcdef";

/// Descriptors are counted from 10 in the order of opening: control, UVM, UVM again, card, doorbell's, memory's.
const CTL_FD: u32 = 10;
const UVM_FD: u32 = 11;
const DOORBELL_FD: u32 = 14;
const MEMORY_FD: u32 = 15;

/// `NVOS33_FLAGS_CACHING_TYPE`.
const WRITE_COMBINED: u32 = 2 << 23;

fn line(path: &'static str, word: u32, parts: &[Bytes]) -> Line {
    Line { path, word, parts: parts.to_vec(), answer: Vec::new() }
}

impl Line {
    fn answering(self, answer: &[Bytes]) -> Self {
        Self { answer: answer.to_vec(), ..self }
    }
}

/// `ALLOC` with NVOS64, and the number the driver gives the object.
fn alloc(parent: u32, class: u32, parameters: Option<Bytes>, size: u32, object: u32) -> Line {
    let root = if class == 0x41 { 0 } else { ROOT };
    let head = Bytes::zeros(48).u32(0, root).u32(4, parent).u32(12, class).u32(32, size);
    let parts: Vec<Bytes> = [head].into_iter().chain(parameters).collect();
    line(CTL, 0xc030_462b, &parts).answering(&[Bytes::zeros(48).u32(8, object)])
}

/// `CONTROL` with NVOS54.
fn control(object: u32, command: u32, parameters: Bytes, size: u32) -> Line {
    let head = Bytes::zeros(32).u32(0, ROOT).u32(4, object).u32(8, command).u32(24, size);
    line(CTL, 0xc020_462a, &[head, parameters])
}

fn register_fd(path: &'static str) -> Line {
    line(path, 0xc004_46c9, &[Bytes::zeros(4).u32(0, CTL_FD)])
}

/// `MAP_MEMORY` with NVOS33 and a file.
fn map(device: u32, memory: u32, length: u64, fd: u32, flags: u32) -> Line {
    let bytes = Bytes::zeros(56).u32(0, ROOT).u32(4, device).u32(8, memory);
    line(CTL, 0xc038_464e, &[bytes.u64(24, length).u32(44, flags).u32(48, fd)])
}

fn script() -> Vec<Line> {
    let empty = Bytes::zeros(0);
    let facts = [0xc, 0xd, 0x14, 0x17, 0x20];
    let asked = |data: [u32; 5]| {
        (0..5).fold(Bytes::zeros(40), |bytes, i| bytes.u32(i * 8, facts[i]).u32(i * 8 + 4, data[i]))
    };
    let gr_info = |list: Bytes| {
        let mut line = control(SUBDEVICE, 0x2080_1201, Bytes::zeros(32).u32(0, 5), 32);
        line.parts.push(list);
        line
    };
    let ring = 0x10_0000_0000;
    vec![
        line(CTL, 0xc048_46d2, &[Bytes::zeros(72).u32(0, 0x32)])
            .answering(&[Bytes::zeros(72).bytes(8, b"580.95.05")]),
        alloc(0, 0x41, None, 0, ROOT),
        line(UVM, 0x3000_0001, &[Bytes::zeros(16)]),
        line(UVM, 75, &[Bytes::zeros(8).u32(0, UVM_FD)]),
        line(CTL, 0xc900_46c8, &[Bytes::zeros(32 * 72)])
            .answering(&[Bytes::zeros(0).bytes(0, &[1]).u32(16, 0x1b00).u32(56, 3)]),
        register_fd(GPU),
        control(ROOT, 0x205, Bytes::zeros(32).u32(0, 0x1b00), 32)
            .answering(&[empty.clone(), Bytes::zeros(32).u32(8, 5)]),
        alloc(ROOT, 0x80, Some(Bytes::zeros(56).u32(0, 5).u32(4, ROOT)), 56, DEVICE),
        alloc(DEVICE, 0x2080, Some(Bytes::zeros(4)), 4, SUBDEVICE),
        control(DEVICE, 0x80_0292, Bytes::zeros(804), 804).answering(&[
            empty.clone(),
            Bytes::zeros(0).u32(0, 4).u32(4, 0xc661).u32(8, 0xcbc0).u32(12, 0xc8b5).u32(16, 0xc86f),
        ]),
        gr_info(asked([0; 5])).answering(&[
            empty.clone(),
            empty.clone(),
            asked([0x900, 64, 8, 9, 2]),
        ]),
        alloc(SUBDEVICE, 0xc661, Some(Bytes::zeros(2).bytes(0, &[1])), 2, USERMODE),
        register_fd(GPU),
        map(SUBDEVICE, USERMODE, 0x1_0000, DOORBELL_FD, 0),
        control(SUBDEVICE, 0x2080_200a, Bytes::zeros(8).u32(0, 0x12).u32(4, u32::MAX), 8),
        alloc(
            DEVICE,
            0x90f1,
            Some(Bytes::zeros(56).u32(4, 0x48).u64(8, 0x1_ffff_fb00_0000).u64(40, 0x1000)),
            56,
            SPACE,
        ),
        control(SUBDEVICE, 0x2080_014a, Bytes::zeros(268).u32(4, 2).u32(8, 16), 268)
            .answering(&[empty.clone(), Bytes::zeros(0).bytes(12, UUID)]),
        line(UVM, 37, &[Bytes::zeros(40).bytes(0, UUID).u32(24, u32::MAX)]),
        line(
            UVM,
            25,
            &[Bytes::zeros(32).bytes(0, UUID).u32(16, CTL_FD).u32(20, ROOT).u32(24, SPACE)],
        ),
        alloc(
            DEVICE,
            0x40,
            Some(
                Bytes::zeros(128)
                    .u32(0, ROOT)
                    .u32(8, 0x1_c101)
                    .u32(24, 2 << 27)
                    .u32(28, 5)
                    .u32(32, 6)
                    .u64(64, 3 << 20)
                    .u64(72, 0x1000)
                    .u64(88, (3 << 20) - 1),
            ),
            128,
            MEMORY,
        ),
        line(UVM, 73, &[Bytes::zeros(24).u64(0, ring).u64(8, 3 << 20)]),
        line(
            UVM,
            33,
            &[Bytes::zeros(9264)
                .u64(0, ring)
                .u64(8, 3 << 20)
                .bytes(24, UUID)
                .u32(40, 1)
                .u64(9240, 1)
                .u32(9248, CTL_FD)
                .u32(9252, ROOT)
                .u32(9256, MEMORY)],
        ),
        register_fd(GPU),
        map(DEVICE, MEMORY, 3 << 20, MEMORY_FD, WRITE_COMBINED),
        alloc(DEVICE, 0xa06c, Some(Bytes::zeros(20).u32(12, 1)), 20, GROUP),
        alloc(GROUP, 0x9067, Some(Bytes::zeros(12).u32(0, SPACE).u32(4, 1)), 12, SHARE),
        alloc(
            GROUP,
            0xc86f,
            Some(
                Bytes::zeros(368)
                    .u32(4, MEMORY)
                    .u64(8, ring)
                    .u32(16, 0x1_0000)
                    .u32(24, SHARE)
                    .u32(32, MEMORY)
                    .u64(64, 0x8_0000),
            ),
            368,
            CHANNEL,
        ),
        alloc(CHANNEL, 0xcbc0, None, 0, 0x109),
        control(CHANNEL, 0xc36f_0108, Bytes::zeros(4), 4)
            .answering(&[empty.clone(), Bytes::zeros(4).u32(0, 0xabc)]),
        line(
            UVM,
            27,
            &[Bytes::zeros(56)
                .bytes(0, UUID)
                .u32(16, CTL_FD)
                .u32(20, ROOT)
                .u32(24, CHANNEL)
                .u64(32, 0x1f_fc00_0000)
                .u64(40, 0x400_0000)],
        ),
        control(GROUP, 0xa06c_0101, Bytes::zeros(3).bytes(0, &[1]), 3),
    ]
}

#[test]
fn a_hopper_gpu_comes_up() {
    let script = script();
    let calls = script.len();
    let fake = Fake::new(script);
    let device = RawDevice::open(fake.clone(), 0).unwrap();
    assert_eq!(fake.calls(), calls);
    assert_eq!((device.sm, device.token, &device.uuid), (90, 0xabc, UUID));
    let shape = Shape { gpcs: 8, tpcs_per_gpc: 9, sms_per_tpc: 2, warps_per_sm: 64 };
    assert_eq!(device.shape, shape);
    assert_eq!(device.client().version().to_string(), "580.95.05");
    assert_eq!(fake.open_files(), 6);
    drop(device);
    assert_eq!(fake.open_files(), 0, "everything goes with its files");
}

#[test]
fn every_call_can_fail_and_leaves_nothing_open() {
    for index in 0..script().len() {
        let fake = Fake::new(script()).failing_at(index);
        let stopped = RawDevice::open(fake.clone(), 0).unwrap_err();
        assert!(matches!(stopped.error, Error::Ioctl { errno: 12, .. }), "call {index}: {stopped}");
        assert_eq!(fake.calls(), index + 1, "nothing is called after a failure");
        assert_eq!(fake.open_files(), 0, "call {index}");
    }
}

/// Where each structure has its status, and the step that a refusal stops.
#[rustfmt::skip]
const REFUSALS: &[(usize, usize, Step)] = &[
    (1, 40, Step::Open), (2, 8, Step::Open),
    (6, 28, Step::Device), (7, 40, Step::Device), (8, 40, Step::Device),
    (9, 28, Step::Classes), (10, 28, Step::Facts),
    (11, 40, Step::Doorbell), (13, 40, Step::Doorbell), (14, 28, Step::Boost),
    (15, 40, Step::AddressSpace), (16, 28, Step::AddressSpace),
    (17, 36, Step::AddressSpace), (18, 28, Step::AddressSpace),
    (19, 40, Step::Memory), (20, 16, Step::Memory), (21, 9260, Step::Memory), (23, 40, Step::Memory),
    (24, 40, Step::Channel), (25, 40, Step::Channel), (26, 40, Step::Channel), (27, 40, Step::Channel),
    (28, 28, Step::Schedule), (29, 48, Step::Schedule), (30, 28, Step::Schedule),
];

#[test]
fn every_refusal_is_seen_and_named() {
    for &(index, status_at, step) in REFUSALS {
        let mut script = script();
        script[index].answer = vec![Bytes::zeros(0).u32(status_at, 0x51)];
        let fake = Fake::new(script);
        let stopped = RawDevice::open(fake.clone(), 0).unwrap_err();
        assert_eq!(stopped.step, step, "call {index}");
        assert!(stopped.to_string().contains("NO_MEMORY (0x51)"), "{stopped}");
        assert_eq!(fake.open_files(), 0);
    }
}

#[test]
fn a_sandbox_without_clock_control_is_no_obstacle() {
    let mut script = script();
    script[14].answer = vec![Bytes::zeros(0).u32(28, 0x56)];
    assert!(RawDevice::open(Fake::new(script), 0).is_ok());
}

#[test]
fn a_card_that_is_not_there() {
    let stopped = RawDevice::open(Fake::new(script()), 1).unwrap_err();
    assert_eq!(stopped.to_string(), "step Device: no GPU 1: there are 1");
}
