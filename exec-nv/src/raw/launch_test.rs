//! From an image to a launch and back, on every generation, as the stand-in for a GPU sees it.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use exec_core::{Device as _, Error as CoreError, Launch, Program as _, Scalar, Spec};

use super::fake::{Class, Failure, Fake, Launched};
use super::local_memory::{LocalMemory, RESERVED};
use super::program::RawCall;
use super::{RawArgument, RawDevice, RawImage, RawOptions, RawQueue};
use crate::{Error, NvLaunch};

pub(super) fn options() -> RawOptions {
    RawOptions { limit: Duration::from_millis(20), ..RawOptions::default() }
}

/// Cubins whose code is for a generation.
pub(super) fn fixture(class: Class, name: &str) -> Vec<u8> {
    let sm = match class.sm_version {
        0x800 | 0x806 | 0x809 => "13.5-sm_80",
        0x900 if name == "kernels" => "13.5-sm_90a",
        0x900 => "13.5-sm_90",
        0xc00 => "13.5-sm_120",
        _ if name == "kernels" => "12.9-sm_100a",
        _ => "13.5-sm_100",
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    std::fs::read(path.join(format!("{name}-{sm}.cubin"))).unwrap()
}

pub(super) type Opened = (Fake, RawDevice<Fake>, Arc<RawImage<Fake>>);

pub(super) fn open(class: Class, name: &str) -> Opened {
    let fake = Fake::new(class);
    let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
    let image = device.load(&fixture(class, name)).unwrap();
    (fake, device, image)
}

/// Everything once: memory of every kind, copies in pieces, an image, launches on two queues, one after the other by itself.
pub(super) fn scenario(fake: &Fake, class: Class) -> Result<(), String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let device = RawDevice::open(fake.clone(), 0, options()).map_err(|error| words(&error))?;
    let work = || -> Result<(), Error> {
        let image = device.load(&fixture(class, "kernels"))?;
        let kernel = device.kernel(&image, "parameters")?;
        device.buffer(100, Spec::new().zeroed())?.free()?;
        let buffer = device.buffer((2 << 20) + 0x1003, Spec::new())?;
        let page: Vec<u8> = (0..4099).map(|at| ((at * 7) >> 3) as u8).collect();
        let mut bytes = page.repeat(0x300);
        bytes.truncate(buffer.size() as usize);
        buffer.copy_in(0, &bytes)?;
        let mut back = vec![0; bytes.len() - 1];
        buffer.copy_out(1, &mut back)?;
        assert!(back == bytes[1..], "what was copied out is what was copied in");
        let other = device.buffer(buffer.size(), Spec::new().host_visible())?;
        device.copy(&buffer, &other)?;
        assert!(other.host()?[..bytes.len()] == bytes, "the host sees what was copied");
        let uncached = device.buffer(64, Spec::new().host_visible().uncached().not_kept())?;
        uncached.host_mut()?.fill(3);
        uncached.free()?;
        let arguments = [
            RawArgument::Buffer(&buffer),
            RawArgument::Value(Scalar::U8(2)),
            RawArgument::Bytes(&[3; 24]),
            RawArgument::Value(Scalar::U16(0x0504)),
            RawArgument::Value(Scalar::F64(1.0)),
        ];
        let launch = NvLaunch { dynamic_shared: 60 << 10, wait: true, ..NvLaunch::new(4, 32) };
        // SAFETY: nothing runs.
        unsafe {
            let time = kernel.launch(device.queue(), &arguments, &launch)?;
            assert!(time.is_some_and(|time| time >= Duration::from_nanos(500)));
            let queue = device.new_queue()?;
            queue.wait_for(device.queue())?;
            let launch = NvLaunch { wait: false, ..launch };
            assert_eq!(kernel.launch(&queue, &arguments, &launch)?, None);
            let call = || RawCall { program: &kernel, arguments: &arguments, launch };
            queue.launches(&[call(), call()])?;
            queue.synchronize()?;
        }
        device.memory()?;
        device.synchronize()?;
        Ok(())
    };
    work().map_err(|error| words(&error))
}

#[test]
fn everything_goes_well_on_every_generation() {
    for class in Class::GENERATIONS {
        let fake = Fake::new(class);
        scenario(&fake, class).unwrap();
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
        let state = fake.state();
        assert_eq!(state.launched.len(), 4);
        let channels: Vec<u32> = state.launched.iter().map(|one| one.channel).collect();
        assert_eq!((channels[1], channels[2]), (channels[3], channels[3]), "a queue is a channel");
        assert_ne!(channels[0], channels[1]);
        // two launches that go one after the other by themselves have one push, and bank and block each
        assert_eq!(state.launched[2].banks, state.launched[3].banks);
        // zeros, two pieces in, two out, the image, one on the device
        assert_eq!(state.copies, 7);
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Where bank 0 has block, grid, dynamic shared memory, number of SMs, stack pointer, parameters; and where shared memory begins.
#[rustfmt::skip]
const OFFSETS: &[(u32, [usize; 6])] = &[
    (0x800, [0x00, 0x0c, 0x2c, 0x10c, 0x28, 0x160]),
    (0x806, [0x00, 0x0c, 0x2c, 0x10c, 0x28, 0x160]),
    (0x809, [0x00, 0x0c, 0x2c, 0x10c, 0x28, 0x160]),
    (0x900, [0x00, 0x0c, 0x2c, 0x10c, 0x28, 0x210]),
    (0xa00, [0x360, 0x370, 0x2ac, 0x2d0, 0x37c, 0x380]),
    (0xc00, [0x360, 0x370, 0x2ac, 0x2d0, 0x37c, 0x380]),
];

#[test]
fn a_launch_says_what_the_image_and_the_caller_say() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "parameters").unwrap();
        let buffer = device.buffer(64, Spec::new()).unwrap();
        let arguments = [
            RawArgument::Buffer(&buffer),
            RawArgument::Value(Scalar::U8(2)),
            RawArgument::Bytes(&[3; 24]),
            RawArgument::Value(Scalar::U16(0x0504)),
            RawArgument::Value(Scalar::F64(1.0)),
        ];
        let launch = NvLaunch {
            grid: [70, 3, 2],
            block: [32, 4, 1],
            dynamic_shared: 1000,
            ..NvLaunch::new(1, 1)
        };
        // SAFETY: nothing runs.
        unsafe { kernel.launch(device.queue(), &arguments, &launch) }.unwrap();
        let needs = kernel.kernel().resources.unwrap();
        let launched = fake.state().launched.pop().unwrap();
        assert_eq!((launched.grid, launched.block), ([70, 3, 2], [32, 4, 1]));
        assert_eq!(launched.registers, u64::from(needs.registers.unwrap()));
        assert_eq!(launched.cluster, None);
        let shared = (needs.shared + needs.reserved_shared + 1000).next_multiple_of(128);
        assert_eq!(launched.shared, shared, "{class:x?}");
        let (_, at) = OFFSETS.iter().find(|(version, _)| *version == class.sm_version).unwrap();
        let (index, bank) = &launched.banks[0];
        assert_eq!(*index, 0);
        let three = |at: usize| [word(bank, at), word(bank, at + 4), word(bank, at + 8)];
        assert_eq!((three(at[0]), three(at[1])), ([32, 4, 1], [70, 3, 2]), "{class:x?}");
        assert_eq!([at[2], at[3]].map(|at| word(bank, at)), [1000, 132]);
        assert_eq!(word(bank, at[4]), (1 << 24) - RESERVED);
        let parameters = &bank[at[5]..at[5] + 48];
        assert_eq!(parameters[..8], buffer.address().unwrap().to_le_bytes());
        assert_eq!(parameters[8], 2);
        assert_eq!(parameters[12..36], [3; 24]);
        assert_eq!(parameters[36..38], 0x0504_u16.to_le_bytes());
        assert_eq!(parameters[40..48], 1.0_f64.to_le_bytes());
        // local memory for all threads that can run at once
        let stack = needs.stack.unwrap().bytes().unwrap() as u32;
        let size = LocalMemory::new(device.gpu().facts().shape, stack).unwrap();
        assert_eq!((launched.local, launched.local_memory.1), (size.thread.into(), size.tpc));
        assert!(launched.local_memory.0 >= 0x20_0000_0000);
    }
}

#[test]
fn code_and_constants_are_where_the_launch_says() {
    for class in [Class::AMPERE, Class::ADA, Class::HOPPER] {
        let bytes = fixture(class, "data");
        let plan = crate::own::Plan::of(&bytes).unwrap();
        let (fake, device, image) = open(class, "data");
        let cubin = nvinfo::Cubin::parse(&bytes).unwrap();
        for kernel in cubin.kernels() {
            let name = kernel.name().to_string();
            let program = match device.kernel(&image, &name) {
                Ok(program) => program,
                Err(error) => panic!("{name}: {error}"),
            };
            let sizes = program.kernel().parameters.clone().unwrap();
            let zeros = vec![0u8; 4096];
            let arguments: Vec<RawArgument<'_, Fake>> =
                sizes.iter().map(|one| RawArgument::Bytes(&zeros[..one.size as usize])).collect();
            // SAFETY: nothing runs.
            unsafe { program.launch(device.queue(), &arguments, &NvLaunch::new(1, 32)) }.unwrap();
            let Launched { program: at, code, banks, .. } = fake.state().launched.pop().unwrap();
            let offset = plan.section(kernel.section()).unwrap() + kernel.symbol().value;
            let image = plan.write(at - offset).unwrap();
            assert_eq!(code, image[offset as usize..offset as usize + 128], "{name}");
            let mut expected: BTreeMap<u32, &[u8]> = BTreeMap::new();
            for bank in cubin.constant_banks() {
                if bank.bank != 0 && bank.owner.is_none_or(|owner| owner == kernel.section()) {
                    let start = plan.section(bank.section).unwrap() as usize;
                    expected.insert(bank.bank, &image[start..start + bank.header.size as usize]);
                }
            }
            let found: BTreeMap<u32, &[u8]> = banks
                .iter()
                .filter(|(bank, _)| *bank != 0)
                .map(|(bank, bytes)| (*bank, &bytes[..expected[bank].len()]))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

/// Calls that give things back: an error has nobody to be told.
fn gives_back(line: &super::fake::Line) -> bool {
    let is_uvm = line.path == "/dev/nvidia-uvm";
    line.word == 0xc010_4629 || is_uvm && [26, 28, 34, 38].contains(&line.word)
}

/// Calls that memory is got with.
fn takes_memory(line: &super::fake::Line) -> bool {
    let is_memory = || [0x40, 0x3e].contains(&word(&line.parts[0], 12));
    line.word == 0xc030_462b && is_memory()
        || line.word == 0xc038_464e
        || line.path == "/dev/nvidia-uvm" && [33, 73].contains(&line.word)
}

/// What has no status, and is no obstacle.
fn says_nothing(line: &super::fake::Line) -> bool {
    line.word == 0xc004_46c9 || line.path == "/dev/nvidia-uvm" && line.word == 75
}

#[test]
fn every_call_of_everything_can_fail() {
    for class in Class::GENERATIONS {
        every_call_can_fail(class, b"580.95.05");
    }
    // structures that other branches of the driver take
    for version in [&b"570.172.08"[..], b"595.45.04"] {
        every_call_can_fail(Class::HOPPER, version);
    }
}

fn every_call_can_fail(class: Class, version: &'static [u8]) {
    let new = || {
        let fake = Fake::new(class);
        fake.state().version = version;
        fake
    };
    let fake = new();
    drop(RawDevice::open(fake.clone(), 0, options()).unwrap());
    let ends = |line: &super::fake::Line| gives_back(line);
    let opening = fake.state().calls.iter().position(ends).unwrap();
    let fake = new();
    scenario(&fake, class).unwrap();
    let calls = fake.state().calls.clone();
    assert!(calls.len() > 120, "{} calls", calls.len());
    let mut failed = 0;
    for (index, line) in calls.iter().enumerate() {
        for failure in [Failure::Errno, Failure::Status] {
            let fake = new();
            fake.fail_at(index, failure);
            let outcome = scenario(&fake, class);
            let has_no_status = matches!(failure, Failure::Status) && says_nothing(line);
            let is_told = !(gives_back(line) || has_no_status);
            // without memory the allocator gives back what it keeps, and asks once more
            let is_tried_again =
                index >= opening && matches!(failure, Failure::Status) && takes_memory(line);
            if !is_tried_again {
                let call = format!("{class:x?}, call {index}, {failure:?}: {outcome:?}");
                assert_eq!(outcome.is_err(), is_told, "{call}");
            }
            assert_eq!(fake.left(), "", "call {index}");
            let abandoned = fake.state().abandoned.clone();
            // what could not be given back is all that is left to the end; the root takes objects with it
            if is_told && index >= 30 {
                assert_eq!(abandoned, "", "{class:x?}, call {index}, {failure:?}");
            }
            failed += 1;
        }
    }
    assert_eq!(failed, 2 * calls.len());
}

#[test]
fn a_launch_that_takes_too_long_is_an_error_and_keeps_its_memory() {
    let (fake, device, image) = open(Class::HOPPER, "kernels");
    let kernel = device.program(&image, "globals", None).unwrap();
    fake.state().hangs = true;
    // SAFETY: nothing runs.
    let call = |launch: Launch| unsafe { kernel.call(&[], &[], launch) };
    call(Launch::ONCE).unwrap();
    let error = device.synchronize().unwrap_err().to_string();
    assert!(error.contains("a channel is at point 1 and not at 2 after 20 ms"), "{error}");
    assert!(device.fault().is_none(), "it may end yet");
    let held = device.allocator().statistics().used;
    drop(image);
    fake.state().hangs = false;
    call(Launch::ONCE.waiting()).unwrap();
    assert_eq!(fake.state().launched.len(), 2);
    assert_eq!(device.allocator().statistics().used, held);
    drop((kernel, device));
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn a_queue_goes_although_its_launch_never_ends() {
    let (fake, device, image) = open(Class::AMPERE, "kernels");
    let kernel = device.kernel(&image, "globals").unwrap();
    let queue = device.new_queue().unwrap();
    fake.state().hangs = true;
    // SAFETY: nothing runs.
    unsafe { kernel.launch(&queue, &[], &NvLaunch::new(1, 1)) }.unwrap();
    drop(queue);
    drop((kernel, image, device));
    assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
}

#[test]
fn what_a_queue_waits_for_stays_when_the_other_queue_goes() {
    let (fake, device, image) = open(Class::HOPPER, "kernels");
    let kernel = device.kernel(&image, "globals").unwrap();
    let launch = |queue: &RawQueue<Fake>| {
        // SAFETY: nothing runs.
        unsafe { kernel.launch(queue, &[], &NvLaunch::new(1, 1)) }.unwrap();
    };
    let channel = || fake.state().launched.last().unwrap().channel;
    launch(device.queue());
    let ours = channel();
    let other = device.new_queue().unwrap();
    launch(&other);
    let theirs = channel();
    fake.state().stuck = Some(theirs);
    launch(&other);
    device.queue().wait_for(&other).unwrap();
    launch(device.queue());
    assert_eq!(fake.state().launched.len(), 2, "both wait");
    drop(other);
    let count = fake.state().waits_at(ours).unwrap();
    let is_there = || fake.state().read(count, &mut [0; 8]);
    assert!(is_there());
    let error = device.synchronize().unwrap_err().to_string();
    assert!(error.contains("not at"), "{error}");
    assert!(is_there(), "a limit that has run out ends nothing");
    // what the GPU wrote at last; the next doorbell wakes the channel
    assert!(fake.state().write(count, &u64::MAX.wrapping_shr(1).to_le_bytes()));
    launch(device.queue());
    device.synchronize().unwrap();
    assert_eq!(fake.state().launched.len(), 4);
    assert!(!is_there());
    drop((kernel, image, device));
    assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
}

#[test]
fn waits_that_are_over_keep_nothing() {
    let (fake, device, image) = open(Class::AMPERE, "kernels");
    let ranges = || fake.state().ranges();
    let before = ranges();
    for _ in 0..20 {
        let other = device.new_queue().unwrap();
        device.queue().wait_for(&other).unwrap();
        drop(other);
        assert!(ranges() <= before + 1);
    }
    let far = RawDevice::open(Fake::new(Class::AMPERE), 0, options()).unwrap();
    let error = device.queue().wait_for(far.queue()).unwrap_err();
    assert_eq!(error.to_string(), "the queue is of another device");
    let kernel = device.kernel(&image, "globals").unwrap();
    // SAFETY: nothing runs.
    let error = unsafe { kernel.launch(far.queue(), &[], &NvLaunch::new(1, 1)) }.unwrap_err();
    assert_eq!(error.to_string(), "the queue is of another device");
    let call = RawCall { program: &kernel, arguments: &[], launch: NvLaunch::new(1, 1) };
    // SAFETY: nothing runs.
    let error = unsafe { far.queue().launches(&[call]) }.unwrap_err();
    assert_eq!(error.to_string(), "the queue is of another device");
    drop((kernel, image, device));
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn rings_and_room_go_round() {
    let (fake, device, image) = open(Class::BLACKWELL, "kernels");
    let kernel = device.kernel(&image, "globals").unwrap();
    // the ring has 65536 entries, its room 2.4 MiB: some 1.5 KiB for each launch
    for _ in 0..4000 {
        // SAFETY: nothing runs.
        unsafe { kernel.launch(device.queue(), &[], &NvLaunch::new(1, 1)) }.unwrap();
    }
    device.synchronize().unwrap();
    assert_eq!(fake.state().launched.len(), 4000);
    // nobody reads: there is an end to what is handed over
    fake.state().hangs = true;
    let launch = || {
        // SAFETY: nothing runs.
        unsafe { kernel.launch(device.queue(), &[], &NvLaunch::new(1, 1)) }
    };
    let error = (0..4000).find_map(|_| launch().err()).unwrap();
    assert!(matches!(error, Error::Raw(super::Error::TimeOut { .. })), "{error}");
    fake.state().hangs = false;
}

#[test]
fn a_fault_is_named_and_sticks_until_reset() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.program(&image, "globals", None).unwrap();
        let buffer = device.buffer(64, Spec::new()).unwrap();
        fake.state().fault = Some(31);
        // SAFETY: nothing runs.
        let call = |launch: Launch| unsafe { kernel.call(&[], &[], launch) };
        let expected = "the device has failed: the GPU stopped a channel: Xid 31 (FIFO_ERROR_MMU_ERR_FLT), 0x1";
        assert_eq!(call(Launch::ONCE.waiting()).unwrap_err().to_string(), expected);
        assert_eq!(call(Launch::ONCE).unwrap_err().to_string(), expected);
        assert_eq!(buffer.copy_in(0, &[1]).unwrap_err().to_string(), expected);
        assert_eq!(device.synchronize().unwrap_err().to_string(), expected);
        assert_eq!(device.reset().unwrap().to_string(), expected);
        assert!(device.fault().is_none() && device.reset().is_none());
        // memory is what it was, and the device works
        buffer.copy_in(0, &[1]).unwrap();
        assert!(call(Launch::ONCE.waiting()).unwrap().is_some());
        assert_eq!(fake.state().launched.len(), 1);
        drop((kernel, image, buffer, device));
        assert_eq!(fake.state().abandoned, "");
    }
}

#[test]
fn queued_launches_hold_their_buffers() {
    let (fake, device, image) = open(Class::ADA, "kernels");
    let kernel = device.program(&image, "shared_memory", None).unwrap();
    let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
    let address = buffer.address().unwrap();
    fake.state().hangs = true;
    // SAFETY: nothing runs.
    unsafe { kernel.call(&[&buffer], &[], Launch::ONCE) }.unwrap();
    assert!(matches!(buffer.copy_in(0, &[1]), Err(CoreError::InUse)));
    buffer.free().unwrap();
    assert!(fake.state().read(address, &mut [0]), "it is there as long as the launch may run");
    fake.state().hangs = false;
    // the doorbell of the next one wakes the channel
    // SAFETY: nothing runs.
    unsafe {
        device.kernel(&image, "globals").unwrap().launch(device.queue(), &[], &NvLaunch::new(1, 1))
    }
    .unwrap();
    device.synchronize().unwrap();
    assert!(!fake.state().read(address, &mut [0]));
}

#[test]
fn what_cannot_be_launched_is_refused_by_name() {
    let (fake, device, image) = open(Class::HOPPER, "kernels");
    let refused = |kernel: &str, launch: NvLaunch, arguments: &[RawArgument<'_, Fake>]| {
        let kernel = device.kernel(&image, kernel).unwrap();
        // SAFETY: nothing runs.
        unsafe { kernel.launch(device.queue(), arguments, &launch) }.unwrap_err().to_string()
    };
    let usual = NvLaunch::new(1, 32);
    for (kernel, launch, expected) in [
        (
            "globals",
            NvLaunch::new(1, 2048),
            "cannot launch: a block of 2048x1x1, where 1x1x1 to 1024x1024x64 can be",
        ),
        (
            "shared_memory",
            NvLaunch { dynamic_shared: 232_000, ..usual },
            "cannot launch: 1040 and 232000 bytes of shared memory for a block, where 232448 can be",
        ),
        (
            "globals",
            NvLaunch { cooperative: true, ..usual },
            "cannot launch: a cooperative grid of 1 blocks, and this device of sm_90 has no cooperative launches",
        ),
    ] {
        assert_eq!(refused(kernel, launch, &[]), expected);
    }
    assert_eq!(refused("shared_memory", usual, &[]), "cannot launch: 0 arguments, expected 1");
    assert_eq!(
        device.kernel(&image, "no_such").unwrap_err().to_string(),
        "no kernel no_such: there are subroutine, local_memory, shared_memory, globals, parameters"
    );
    let ptx =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda/kernels.ptx"));
    let error = device.load(&ptx.unwrap()).unwrap_err().to_string();
    assert!(error.contains("PTX, which takes the driver's loader"), "{error}");
    // `printf` is the driver's
    let image = device.load(&fixture(Class::HOPPER, "calls")).unwrap();
    let error = device.kernel(&image, "undefined").unwrap_err().to_string();
    assert!(
        error.contains("has the address of vprintf, which the driver's loader knows"),
        "{error}"
    );
    // recursion has no bound: the device says how much there is
    let kernel = device.kernel(&image, "recurses").unwrap();
    let sizes = kernel.kernel().parameters.clone().unwrap();
    let zeros = [0; 64];
    let arguments: Vec<RawArgument<'_, Fake>> =
        sizes.iter().map(|one| RawArgument::Bytes(&zeros[..one.size as usize])).collect();
    for (stack, expected) in [(1024, 0x640), (4096, 0x1240), (1024, 0x1240)] {
        device.set_stack_size(stack);
        // SAFETY: nothing runs.
        unsafe { kernel.launch(device.queue(), &arguments, &usual) }.unwrap();
        assert_eq!(fake.state().launched.last().unwrap().local, expected);
    }
    device.set_stack_size(1 << 24);
    // SAFETY: nothing runs.
    let error = unsafe { kernel.launch(device.queue(), &arguments, &usual) }.unwrap_err();
    assert_eq!(error.to_string(), "16777216 bytes of local memory: a thread has less than 2^24");
}

#[test]
fn memory_runs_out_and_comes_back() {
    let (fake, device, image) = open(Class::HOPPER, "kernels");
    fake.state().free = 1 << 30;
    let free = device.memory().unwrap().available;
    let error = device.buffer(2 << 30, Spec::new()).unwrap_err();
    assert!(matches!(error, CoreError::OutOfMemory { .. }), "{error}");
    let buffer = device.buffer(64 << 20, Spec::new().not_kept()).unwrap();
    assert!(device.memory().unwrap().available <= free - (64 << 20));
    buffer.free().unwrap();
    assert_eq!(device.memory().unwrap().available, free);
    assert!(device.buffer(64, Spec::new().aligned(1 << 40)).is_err());
    drop((image, device));
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn several_clients_have_nothing_in_common() {
    let fake = Fake::new(Class::AMPERE);
    let one = RawDevice::open(fake.clone(), 0, options()).unwrap();
    let other = Fake::new(Class::HOPPER);
    let far = RawDevice::open(other.clone(), 0, options()).unwrap();
    let (near, far_buffer) =
        (one.buffer(64, Spec::new()).unwrap(), far.buffer(64, Spec::new()).unwrap());
    assert!(matches!(
        one.copy(&near, &far_buffer),
        Err(Error::Core(CoreError::OtherDevice { .. }))
    ));
    let image = one.load(&fixture(Class::AMPERE, "kernels")).unwrap();
    assert!(matches!(
        far.kernel(&image, "globals"),
        Err(Error::Core(CoreError::OtherDevice { .. }))
    ));
    let (from, to) = (near.view(0, 40).unwrap(), near.view(8, 40).unwrap());
    assert!(matches!(one.copy(&from, &to), Err(Error::Core(CoreError::Overlap { bytes: 32 }))));
    // what both see at one address is at different ones
    let seen = |device: &RawDevice<Fake>| {
        device.buffer(64, Spec::new().host_visible()).unwrap().address().unwrap()
    };
    assert_ne!(seen(&one), seen(&far));
    drop((near, far_buffer, image, one, far));
    assert_eq!(
        (fake.state().abandoned.clone(), other.state().abandoned.clone()),
        ("".into(), "".into())
    );
}

#[test]
fn damaged_cubins_are_errors_or_launches() {
    let bytes = fixture(Class::HOPPER, "kernels");
    let fake = Fake::new(Class::HOPPER);
    let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
    let (mut state, mut launched) = (1u64, 0);
    for _ in 0..400 {
        let mut damaged = bytes.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % damaged.len();
            damaged[at] = (state >> 24) as u8;
        }
        // a changed size may be anything: no image of it is needed to see that nothing panics
        if crate::own::Plan::of(&damaged).is_ok_and(|plan| plan.memory_size() > 1 << 24) {
            continue;
        }
        let Ok(image) = device.load(&damaged) else { continue };
        let Ok(kernel) = device.kernel(&image, "globals") else { continue };
        let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
        // SAFETY: nothing runs.
        if unsafe { kernel.launch(device.queue(), &[], &launch) }.is_ok() {
            launched += 1;
        }
    }
    assert!(launched > 50, "{launched}");
    drop(device);
    assert_eq!(fake.state().abandoned, "");
}
