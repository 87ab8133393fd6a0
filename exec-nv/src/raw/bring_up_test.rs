//! The order of calls and every byte of their structures, for a GH100 on driver 580: offsets and numbers from the headers, written
//! out by hand, not taken from the types under test.

use super::device::{RawDevice, RawOptions};
use super::error::Error;
use super::fake::{Bytes, Class, Failure, Fake, Line};
use super::gpu::Step;
use super::local_memory::Shape;
use super::version::DriverVersion;

const CTL: &str = "/dev/nvidiactl";
const UVM: &str = "/dev/nvidia-uvm";
const GPU: &str = "/dev/nvidia3";

const ROOT: u32 = 0xc1d0_0001;
const DEVICE: u32 = 0x101;
const SUBDEVICE: u32 = 0x102;
const USERMODE: u32 = 0x103;
const SPACE: u32 = 0x104;

const UUID: &[u8; 16] = b"0123456789abcdef";

/// Descriptors are counted from 10 in the order of opening.
const CTL_FD: u32 = 10;
const UVM_FD: u32 = 11;

/// `NVOS33_FLAGS_CACHING_TYPE`.
const WRITE_COMBINED: u32 = 2 << 23;

fn line(path: &str, word: u32, parts: &[Bytes]) -> Line {
    Line { path: path.into(), word, parts: parts.iter().map(Bytes::whole).collect() }
}

/// `ALLOC` with NVOS64.
fn alloc(parent: u32, class: u32, parameters: Option<Bytes>) -> Line {
    let root = if class == 0x41 { 0 } else { ROOT };
    let size = parameters.as_ref().map_or(0, |bytes| bytes.whole().len() as u32);
    let head = Bytes::zeros(48).u32(0, root).u32(4, parent).u32(12, class).u32(32, size);
    let parts: Vec<Bytes> = [head].into_iter().chain(parameters).collect();
    line(CTL, 0xc030_462b, &parts)
}

/// `CONTROL` with NVOS54.
fn control(object: u32, command: u32, parameters: Bytes) -> Line {
    let size = parameters.whole().len() as u32;
    let head = Bytes::zeros(32).u32(0, ROOT).u32(4, object).u32(8, command).u32(24, size);
    line(CTL, 0xc020_462a, &[head, parameters])
}

fn register_fd(path: &str) -> Line {
    line(path, 0xc004_46c9, &[Bytes::zeros(4).u32(0, CTL_FD)])
}

/// `MAP_MEMORY` with NVOS33 and a file.
fn map(device: u32, memory: u32, length: u64, fd: u32, flags: u32) -> Line {
    let bytes = Bytes::zeros(56).u32(0, ROOT).u32(4, device).u32(8, memory);
    line(CTL, 0xc038_464e, &[bytes.u64(24, length).u32(44, flags).u32(48, fd)])
}

/// `ALLOC` of memory.
fn memory(class: u32, kind: u32, flags: u32, attributes: [u32; 2], size: u64) -> Line {
    let bytes = Bytes::zeros(128).u32(0, ROOT).u32(4, kind).u32(8, flags).u32(24, attributes[0]);
    let bytes = bytes.u32(28, attributes[1]).u32(32, 6).u64(64, size).u64(72, 0x1000);
    alloc(DEVICE, class, Some(bytes.u64(88, size - 1)))
}

/// What makes memory the GPU's: a range of UVM, and the memory in it.
fn mapped(handle: u32, address: u64, size: u64) -> [Line; 2] {
    let range = line(UVM, 73, &[Bytes::zeros(24).u64(0, address).u64(8, size)]);
    let map = Bytes::zeros(9264).u64(0, address).u64(8, size).bytes(24, UUID).u32(40, 1);
    let map = map.u64(9240, 1).u32(9248, CTL_FD).u32(9252, ROOT).u32(9256, handle);
    [range, line(UVM, 33, &[map])]
}

/// A channel: ring, signals, the channel itself, the object of its engine, token, context buffers. Numbers of objects are counted
/// from `first`, those of files from `file`.
fn channel(
    [group, first, file]: [u32; 3],
    [ring_at, signals_at, context_at]: [u64; 3],
    engine: u32,
    object: (u32, Option<Bytes>),
) -> Vec<Line> {
    let (ring, signals, number) = (first, first + 1, first + 2);
    let mut lines = vec![memory(0x40, 0, 0x1_c101, [2 << 27, 5], 3 << 20)];
    lines.extend(mapped(ring, ring_at, 3 << 20));
    lines.extend([register_fd(GPU), map(DEVICE, ring, 3 << 20, file, WRITE_COMBINED)]);
    lines.push(memory(0x3e, 13, 0xc101, [1 << 25 | 3 << 27, 8], 0x1_0000));
    lines.extend(mapped(signals, signals_at, 0x1_0000));
    lines.push(map(DEVICE, signals, 0x1_0000, file + 1, 0));
    let parameters = Bytes::zeros(368)
        .u32(0, signals)
        .u32(4, ring)
        .u64(8, ring_at)
        .u32(16, 0x1_0000)
        .u32(24, group + 1)
        .u32(32, ring)
        .u64(64, 0x8_0000)
        .u32(128, engine);
    lines.push(alloc(group, 0xc86f, Some(parameters)));
    lines.push(alloc(number, object.0, object.1));
    lines.push(control(number, 0xc36f_0108, Bytes::zeros(4)));
    let register = Bytes::zeros(56).bytes(0, UUID).u32(16, CTL_FD).u32(20, ROOT).u32(24, number);
    lines.push(line(UVM, 27, &[register.u64(32, context_at).u64(40, 0x400_0000)]));
    lines.push(control(group, 0xa06c_0101, Bytes::zeros(3).bytes(0, &[1])));
    lines
}

/// All calls, with the addresses that were chosen for memory.
fn script(at: &[u64]) -> Vec<Line> {
    let facts = [0xc, 0xd, 0x14, 0x17, 0x20];
    let asked = (0..5).fold(Bytes::zeros(40), |bytes, i| bytes.u32(i * 8, facts[i]));
    let mut gr_info = control(SUBDEVICE, 0x2080_1201, Bytes::zeros(32).u32(0, 5));
    gr_info.parts.push(asked.whole());
    let mut fb_info = control(SUBDEVICE, 0x2080_1301, Bytes::zeros(16).u32(0, 2));
    fb_info.parts.push(Bytes::zeros(16).u32(0, 0x9).u32(8, 0x16).whole());
    let mut lines = vec![
        line(CTL, 0xc048_46d2, &[Bytes::zeros(72).u32(0, 0x32)]),
        alloc(0, 0x41, None),
        line(UVM, 0x3000_0001, &[Bytes::zeros(16)]),
        line(UVM, 75, &[Bytes::zeros(8).u32(0, UVM_FD)]),
        line(CTL, 0xc900_46c8, &[Bytes::zeros(32 * 72)]),
        register_fd(GPU),
        control(ROOT, 0x205, Bytes::zeros(32).u32(0, 0x1b00)),
        alloc(ROOT, 0x80, Some(Bytes::zeros(56).u32(0, 5).u32(4, ROOT))),
        alloc(DEVICE, 0x2080, Some(Bytes::zeros(4))),
        control(DEVICE, 0x80_0292, Bytes::zeros(804)),
        gr_info,
    ];
    lines.extend((0..8).map(|gpc| control(SUBDEVICE, 0x2080_122b, Bytes::zeros(24).u32(16, gpc))));
    lines.extend([
        control(SUBDEVICE, 0x2080_0110, Bytes::zeros(132)),
        alloc(SUBDEVICE, 0xc661, Some(Bytes::zeros(2).bytes(0, &[1]))),
        register_fd(GPU),
        map(SUBDEVICE, USERMODE, 0x1_0000, 14, 0),
        control(SUBDEVICE, 0x2080_200a, Bytes::zeros(8).u32(0, 0x12).u32(4, u32::MAX)),
        alloc(
            DEVICE,
            0x90f1,
            Some(Bytes::zeros(56).u32(4, 0x48).u64(8, 0x1_ffff_fb00_0000).u64(40, 0x1000)),
        ),
        control(SUBDEVICE, 0x2080_014a, Bytes::zeros(268).u32(4, 2).u32(8, 16)),
        line(UVM, 37, &[Bytes::zeros(40).bytes(0, UUID).u32(24, u32::MAX)]),
        line(
            UVM,
            25,
            &[Bytes::zeros(32).bytes(0, UUID).u32(16, CTL_FD).u32(20, ROOT).u32(24, SPACE)],
        ),
    ]);
    let group = |engine| alloc(DEVICE, 0xa06c, Some(Bytes::zeros(20).u32(12, engine)));
    let share = |group| alloc(group, 0x9067, Some(Bytes::zeros(12).u32(0, SPACE).u32(4, 1)));
    lines.extend([group(1), share(0x105)]);
    let at_compute = [at[0], at[1], 0x1c_0000_0000];
    lines.extend(channel([0x105, 0x107, 15], at_compute, 0, (0xcbc0, None)));
    // copies: the first engine that is there and does not belong to graphics is the fourth
    lines.push(control(SUBDEVICE, 0x2080_2a0a, Bytes::zeros(136)));
    lines.extend([group(12), share(0x10b)]);
    let at_copy = [at[2], at[3], 0x1c_0400_0000];
    let object = Bytes::zeros(8).u32(0, 1).u32(4, 12);
    lines.extend(channel([0x10b, 0x10d, 17], at_copy, 12, (0xc8b5, Some(object))));
    lines.push(memory(0x3e, 13, 0xc101, [1 << 25 | 3 << 27 | 1 << 29, 8], 4 << 20));
    lines.extend(mapped(0x111, at[4], 4 << 20));
    lines.extend([map(DEVICE, 0x111, 4 << 20, 19, 0), fb_info]);
    lines
}

fn options() -> RawOptions {
    RawOptions { limit: core::time::Duration::from_millis(5), ..RawOptions::default() }
}

#[test]
fn a_hopper_gpu_comes_up_and_goes() {
    let fake = Fake::new(Class::HOPPER);
    let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
    let calls = fake.state().calls.clone();
    let base = |line: &Line| u64::from_le_bytes(line.parts[0][..8].try_into().unwrap());
    let ranges: Vec<u64> =
        calls.iter().filter(|line| (&*line.path, line.word) == (UVM, 73)).map(base).collect();
    assert!(ranges.iter().all(|at| (0x10_0000_0000..0x1c_0000_0000).contains(at)));
    let expected = script(&ranges);
    for (index, (expected, found)) in expected.iter().zip(&calls).enumerate() {
        assert_eq!(expected, found, "call {index}");
    }
    assert_eq!(calls.len(), expected.len());
    let facts = device.gpu().facts();
    let shape = Shape { gpcs: 8, tpcs_per_gpc: 9, sms_per_tpc: 2, warps_per_sm: 64 };
    // 6 of its TPCs are switched off
    assert_eq!((facts.sm, facts.sms, facts.shape), (90, 132, shape));
    assert_eq!(device.properties().name, "Not There 90");
    assert_eq!(&device.gpu().uuid(), UUID);
    assert_eq!(device.gpu().client().version().to_string(), "580.95.05");
    assert_eq!(fake.state().files(), 10);

    fake.state().calls.clear();
    drop(device);
    assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    // the last first: copies, launches, address space, root
    let free = |parent: u32, object: u32| {
        let bytes = Bytes::zeros(16).u32(0, ROOT).u32(4, parent).u32(8, object);
        line(CTL, 0xc010_4629, &[bytes])
    };
    let unregister = |channel: u32| {
        line(UVM, 28, &[Bytes::zeros(28).bytes(0, UUID).u32(16, ROOT).u32(20, channel)])
    };
    let free_range =
        |at: u64, size: u64| line(UVM, 34, &[Bytes::zeros(24).u64(0, at).u64(8, size)]);
    let gpu = |number: u32| line(UVM, number, &[Bytes::zeros(20).bytes(0, UUID)]);
    let of = |[group, first]: [u32; 2], ring: u64, signals: u64| {
        [
            unregister(first + 2),
            free(group, first + 2),
            free_range(ring, 3 << 20),
            free(DEVICE, first),
            free_range(signals, 0x1_0000),
            free(DEVICE, first + 1),
            free(DEVICE, group),
        ]
    };
    let mut expected = of([0x105, 0x107], ranges[0], ranges[1]).to_vec();
    expected.extend(of([0x10b, 0x10d], ranges[2], ranges[3]));
    expected.extend([free_range(ranges[4], 4 << 20), free(DEVICE, 0x111), gpu(26), gpu(38)]);
    expected.extend([free(DEVICE, SPACE), free(0, ROOT)]);
    let found = fake.state().calls.clone();
    assert_eq!(found, expected);
}

#[test]
fn other_versions_of_the_driver_take_other_structures() {
    for (version, class_list, schedule, space, unregister, free) in [
        (&b"570.172.08"[..], 404, 2, 48, 28, 24),
        (b"580.95.05", 804, 3, 56, 28, 24),
        (b"590.48.01", 804, 3, 56, 28, 24),
        (b"595.45.04", 804, 3, 56, 12, 16),
    ] {
        let fake = Fake::new(Class::HOPPER);
        fake.state().version = version;
        drop(RawDevice::open(fake.clone(), 0, options()).unwrap());
        let state = fake.state();
        let label = DriverVersion::parse(version).unwrap().to_string();
        let sizes = |is_it: &dyn Fn(&Line) -> bool, part: usize| {
            let lines = state.calls.iter().filter(|line| is_it(line));
            let mut sizes: Vec<usize> = lines.map(|line| line.parts[part].len()).collect();
            sizes.dedup();
            sizes
        };
        let control = |command: u32| {
            move |line: &Line| {
                line.word == 0xc020_462a && line.parts[0][8..12] == command.to_le_bytes()
            }
        };
        let uvm = |number: u32| move |line: &Line| (&*line.path, line.word) == (UVM, number);
        let of_class = |line: &Line| {
            line.word == 0xc030_462b && line.parts[0][12..16] == 0x90f1_u32.to_le_bytes()
        };
        assert_eq!(sizes(&control(0x80_0292), 1), [class_list], "{label}");
        assert_eq!(sizes(&control(0xa06c_0101), 1), [schedule], "{label}");
        assert_eq!(sizes(&of_class, 1), [space], "{label}");
        assert_eq!(sizes(&uvm(28), 0), [unregister], "{label}");
        assert_eq!(sizes(&uvm(34), 0), [free], "{label}");
        assert_eq!(state.abandoned, "", "{label}");
    }
    let fake = Fake::new(Class::HOPPER);
    fake.state().version = b"550.144.03";
    let stopped = RawDevice::open(fake, 0, options()).unwrap_err();
    let expected = "step Open: driver 550.144.03: its structures are not known (known: 570 to 595)";
    assert_eq!(stopped.to_string(), expected);
}

/// The step that each call is of, for Hopper: the first call of each.
#[rustfmt::skip]
const STEPS: &[(usize, Step)] = &[
    (0, Step::Open), (4, Step::Device), (9, Step::Classes), (10, Step::Facts), (20, Step::Doorbell), (23, Step::Boost),
    (24, Step::AddressSpace), (28, Step::Compute), (44, Step::Copy), (61, Step::SetUp), (65, Step::Facts),
];

#[test]
fn every_call_can_fail_is_named_and_leaves_nothing() {
    let calls = script(&[0; 5]).len();
    for index in 0..calls {
        for failure in [Failure::Errno, Failure::Status] {
            let fake = Fake::new(Class::HOPPER);
            fake.fail_at(index, failure);
            let opened = RawDevice::open(fake.clone(), 0, options());
            let (_, step) = STEPS.iter().rfind(|(first, _)| *first <= index).unwrap();
            // in words: what is not there is no obstacle, and what tells no status tells nothing
            let is_told = !matches!((index, failure), (3 | 5 | 21 | 33 | 50, Failure::Status));
            let Err(stopped) = opened else {
                assert!(!is_told, "call {index} was not noticed");
                drop(opened);
                assert_eq!(fake.left(), "", "call {index}");
                continue;
            };
            assert!(is_told, "call {index}: {stopped}");
            assert_eq!(stopped.step, *step, "call {index}: {stopped}");
            match (failure, &stopped.error) {
                (Failure::Errno, Error::Ioctl { errno: 12, .. }) => {}
                (Failure::Status, Error::Refused { status, .. }) => assert_eq!(status.0, 0x51),
                // the version and the cards
                (Failure::Status, Error::Version { .. } | Error::NoDevice { .. }) => {}
                (_, error) => panic!("call {index}: {error}"),
            }
            assert_eq!(fake.left(), "", "call {index}");
        }
    }
}

#[test]
fn a_sandbox_that_passes_less_on_is_no_obstacle() {
    let fake = Fake::new(Class::HOPPER);
    // clocks, name, which TPCs are switched on
    fake.state().unsupported = vec![0x2080_200a, 0x2080_0110, 0x2080_122b];
    let device = RawDevice::open(fake, 0, options()).unwrap();
    assert_eq!(device.properties().name, "a GPU of sm_90");
    assert_eq!(device.properties().sm_count, 144);
}

#[test]
fn a_card_that_is_not_there() {
    let stopped = RawDevice::open(Fake::new(Class::ADA), 1, options()).unwrap_err();
    assert_eq!(stopped.to_string(), "step Device: no GPU 1: there are 1");
}

#[test]
fn a_gpu_that_does_not_answer_is_not_waited_for_for_ever() {
    let fake = Fake::new(Class::BLACKWELL);
    fake.state().hangs = true;
    let stopped = RawDevice::open(fake.clone(), 0, options()).unwrap_err();
    let expected = "step SetUp: a channel is at point 0 and not at 1 after 5 ms";
    assert_eq!(stopped.to_string(), expected);
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn places_that_others_have_are_left_to_them() {
    let fake = Fake::new(Class::AMPERE);
    // `EEXIST` of the second and third mapping: the first is the doorbell
    fake.state().map_errno = vec![17, 17, 17];
    let stopped = RawDevice::open(fake.clone(), 0, options()).unwrap_err();
    assert_eq!(stopped.step, Step::Doorbell, "the doorbell has no place that others could have");
    fake.state().map_errno = vec![];
    let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
    fake.state().map_errno = vec![17, 17];
    let queue = device.new_queue().unwrap();
    drop((queue, device));
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn what_a_driver_never_answers_is_an_error() {
    let mut opened = 0;
    for seed in 0..400 {
        let fake = Fake::new(Class::GENERATIONS[seed as usize % Class::GENERATIONS.len()]);
        fake.state().damage = Some(seed);
        match RawDevice::open(fake.clone(), 0, options()) {
            Ok(device) => {
                opened += 1;
                drop(device);
            }
            Err(stopped) => assert!(!stopped.to_string().is_empty()),
        }
        assert_eq!(fake.left(), "", "seed {seed}");
    }
    assert!((20..380).contains(&opened), "{opened} of 400");
}
