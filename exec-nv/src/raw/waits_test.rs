//! Waits that run out, on every generation: what is in flight then harms nothing that comes after.

use core::time::Duration;
use std::sync::Arc;

use exec_core::{Device as _, Error as CoreError, Spec};

use super::context::Context;
use super::fake::{Class, Failure, Fake};
use super::launch_test::{open, options};
use super::memory::{Memory, Place};
use super::{Error as RawError, RawDevice, RawImage};
use crate::{Error, NvLaunch};

const SIZE: usize = 3 << 20;

#[test]
fn a_copy_that_takes_too_long_sticks_until_reset() {
    for class in Class::GENERATIONS {
        for what in ["copy in", "copy out", "copy"] {
            let fake = Fake::new(class);
            let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
            let (near, far) =
                [(); 2].map(|()| device.buffer(SIZE as u64, Spec::new()).unwrap()).into();
            near.copy_in(0, &vec![1; SIZE]).unwrap();
            far.copy_in(0, &vec![2; SIZE]).unwrap();
            let mut bytes = vec![0; SIZE];
            fake.state().hangs = true;
            let error = match what {
                "copy in" => near.copy_in(0, &vec![3; SIZE]).unwrap_err().to_string(),
                "copy out" => near.copy_out(0, &mut bytes).unwrap_err().to_string(),
                _ => device.copy(&near, &far).unwrap_err().to_string(),
            };
            assert!(error.contains(" and not at ") && error.ends_with("20 ms"), "{what}: {error}");
            // nothing is begun while the engine may still write
            let stuck = device.fault().unwrap().to_string();
            assert!(error.contains("a channel is at point") && stuck.contains("20 ms"), "{stuck}");
            for outcome in [
                far.copy_in(0, &[4; 16]),
                far.copy_out(0, &mut bytes[..16]),
                device.buffer(64, Spec::new()).map(drop),
                device.synchronize(),
            ] {
                assert_eq!(outcome.unwrap_err().to_string(), stuck, "{what}");
            }
            assert!(device.copy(&near, &far).is_err());
            // while it goes on, so does the error
            assert!(device.reset().is_some());
            assert!(device.fault().unwrap().to_string().contains("20 ms"), "{what}");
            fake.state().hangs = false;
            assert!(device.reset().is_some() && device.fault().is_none());
            // what was on its way came before its channel went, or never comes
            near.copy_in(0, &vec![5; SIZE]).unwrap();
            far.copy_out(0, &mut bytes).unwrap();
            assert!(bytes == vec![if what == "copy" { 1 } else { 2 }; SIZE], "{what}");
            near.copy_out(0, &mut bytes).unwrap();
            assert!(bytes == vec![5; SIZE], "{what}");
            drop((near, far, device));
            assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
        }
    }
}

/// The halves are memory that pieces which nobody waits for any more may still be read from.
#[test]
fn a_copy_does_not_write_where_the_one_before_is_still_read() {
    let fake = Fake::new(Class::HOPPER);
    let (context, channel) = Context::open(fake.clone(), 0, options().limit).unwrap();
    let memory = || Memory::new(context.gpu(), SIZE as u64, Place::Device).unwrap();
    let [first, second, third] = [memory(), memory(), memory()];
    fake.state().hangs = true;
    for (to, byte) in [(&first, 1), (&second, 2)] {
        let error = context.copies().copy_in(to.address(), &vec![byte; 1 << 20]).unwrap_err();
        assert!(matches!(error, RawError::TimeOut { .. }), "{error}");
    }
    fake.state().hangs = false;
    fake.state().wake();
    context.copies().copy_in(third.address(), &vec![3; SIZE]).unwrap();
    let read = |from: &Memory<Fake>| {
        let mut bytes = vec![0; 1 << 20];
        assert!(fake.state().read(from.address(), &mut bytes));
        bytes
    };
    assert!(read(&first) == vec![1; 1 << 20], "what was in flight has its own bytes");
    assert!(read(&second) == vec![0; 1 << 20], "what found no room was not begun");
    assert!(read(&third) == vec![3; 1 << 20]);
    drop((first, second, third, channel, context));
    assert_eq!(fake.state().abandoned, "");
}

#[test]
fn a_launch_that_is_waited_for_too_long_keeps_what_it_uses() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "shared_memory").unwrap();
        let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
        let address = buffer.address().unwrap();
        let arguments = [super::RawArgument::Buffer(&buffer)];
        let waiting = NvLaunch { wait: true, ..NvLaunch::new(1, 32) };
        // SAFETY: nothing runs.
        let launch = || unsafe { kernel.launch(device.queue(), &arguments, &waiting) };
        fake.state().hangs = true;
        let error = launch().unwrap_err().to_string();
        assert_eq!(error, "a channel is at point 1 and not at 2 after 20 ms", "{class:x?}");
        assert!(device.fault().is_none(), "it may end yet");
        assert!(matches!(buffer.copy_in(0, &[1]), Err(CoreError::InUse)));
        fake.state().hangs = false;
        assert!(launch().unwrap().is_some());
        assert_eq!(fake.state().launched.len(), 2);
        buffer.copy_in(0, &[1]).unwrap();
        buffer.free().unwrap();
        assert!(!fake.state().read(address, &mut [0]));
        drop((kernel, image, device));
        assert_eq!(fake.state().abandoned, "");
    }
}

/// Entries are more than what there is room for to say: only what a GPU tells of itself makes a ring full.
#[test]
fn a_full_ring_is_waited_for_no_longer_than_the_limit() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "globals").unwrap();
        // SAFETY: nothing runs.
        let launch = || unsafe { kernel.launch(device.queue(), &[], &NvLaunch::new(1, 1)) };
        launch().unwrap();
        device.synchronize().unwrap();
        let channel = fake.state().launched[0].channel;
        let (put, launched) = (2, 1);
        assert_eq!(fake.state().tell_read(channel, put + 1), put);
        let error = launch().unwrap_err();
        assert!(matches!(error, Error::Raw(RawError::TimeOut { reached: 2, wanted: 3, .. })));
        assert_eq!(fake.state().launched.len(), launched, "nothing was handed over");
        fake.state().tell_read(channel, put);
        launch().unwrap();
        device.synchronize().unwrap();
        assert_eq!(fake.state().launched.len(), launched + 1);
        drop((kernel, image, device));
        assert_eq!(fake.state().abandoned, "");
    }
}

#[test]
fn every_call_of_a_reset_can_fail_and_the_next_reset_works() {
    for (class, version) in Class::GENERATIONS
        .map(|class| (class, &b"580.95.05"[..]))
        .into_iter()
        .chain([(Class::HOPPER, &b"570.172.08"[..]), (Class::HOPPER, b"595.45.04")])
    {
        let fake = Fake::new(class);
        fake.state().version = version;
        let device = RawDevice::open(fake.clone(), 0, options()).unwrap();
        let image = device.load(&super::launch_test::fixture(class, "kernels")).unwrap();
        let kernel = device.kernel(&image, "globals").unwrap();
        let waiting = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
        // SAFETY: nothing runs.
        let launch = || unsafe { kernel.launch(device.queue(), &[], &waiting) };
        let (mut calls, mut told, ranges) = (0, 0, fake.state().ranges());
        for failure in [Failure::Errno, Failure::Status] {
            for index in 0.. {
                fake.state().fault = Some(31);
                launch().unwrap_err();
                fake.fail_at(index, failure);
                assert!(device.reset().unwrap().to_string().contains("Xid 31"));
                fake.state().fail_at = None;
                let is_over = fake.state().calls.len() <= index;
                if let Some(error) = device.fault() {
                    told += 1;
                    let error = error.to_string();
                    let known = ["errno 12", "0x51", "no GPU"].iter().any(|w| error.contains(w));
                    assert!(known, "{class:x?}, call {index}: {error}");
                    assert_eq!(launch().unwrap_err().to_string(), error);
                    device.reset().unwrap();
                }
                assert!(device.fault().is_none());
                assert!(launch().unwrap().is_some(), "call {index}");
                if is_over {
                    calls += index;
                    break;
                }
            }
        }
        assert!(calls > 60 && told > calls / 3, "{calls} calls, {told} told");
        // what could not be given back while calls failed is all that is left
        assert!(fake.state().ranges() <= ranges + calls, "{ranges}");
        drop((kernel, image, device));
        assert_eq!(fake.left(), "");
    }
}

#[test]
fn a_reset_that_is_waited_for_too_long_is_an_error_that_sticks() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "globals").unwrap();
        let waiting = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
        // SAFETY: nothing runs.
        let launch = || unsafe { kernel.launch(device.queue(), &[], &waiting) };
        fake.state().fault = Some(13);
        launch().unwrap_err();
        fake.state().hangs = true;
        assert!(device.reset().unwrap().to_string().contains("Xid 13"));
        let fault = device.fault().unwrap().to_string();
        assert!(fault.ends_with("a channel is at point 0 and not at 1 after 20 ms"), "{fault}");
        fake.state().hangs = false;
        device.reset().unwrap();
        assert!(launch().unwrap().unwrap() > Duration::ZERO);
        drop((kernel, image, device));
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    }
}

/// The channel for copies of a device that is being opened, or reset: of the same steps on another system.
fn copy_channel(class: Class, resets: bool) -> u32 {
    let (fake, device, image) = open(class, "kernels");
    if resets {
        fault(&fake, &device, &image);
        device.reset().unwrap();
    }
    *fake.state().channels().last().unwrap()
}

fn fault(fake: &Fake, device: &RawDevice<Fake>, image: &Arc<RawImage<Fake>>) {
    let kernel = device.kernel(image, "globals").unwrap();
    fake.state().fault = Some(13);
    let waiting = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
    // SAFETY: nothing runs.
    unsafe { kernel.launch(device.queue(), &[], &waiting) }.unwrap_err();
}

#[test]
fn setting_up_the_copy_channel_is_waited_for_no_longer_than_the_limit() {
    let never = "a channel is at point 0 and not at 1 after 20 ms";
    for class in Class::GENERATIONS {
        let fake = Fake::new(class);
        fake.state().stuck = Some(copy_channel(class, false));
        let stopped = RawDevice::open(fake.clone(), 0, options()).unwrap_err();
        assert_eq!(stopped.to_string(), format!("step SetUp: {never}"), "{class:x?}");
        assert_eq!(fake.state().pushes.len(), 1, "the channel for launches was set up");
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));

        let (fake, device, image) = open(class, "kernels");
        fault(&fake, &device, &image);
        fake.state().stuck = Some(copy_channel(class, true));
        assert!(device.reset().unwrap().to_string().contains("Xid 13"));
        assert!(device.fault().unwrap().to_string().ends_with(never), "{class:x?}");
        fake.state().stuck = None;
        assert!(device.reset().is_some() && device.fault().is_none());
        device.buffer(64, Spec::new().zeroed()).unwrap();
        drop((image, device));
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    }
}

#[test]
fn a_new_queue_is_waited_for_no_longer_than_the_limit() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let before = fake.left();
        fake.state().hangs = true;
        let error = device.new_queue().unwrap_err().to_string();
        assert_eq!(error, "a channel is at point 0 and not at 1 after 20 ms", "{class:x?}");
        assert_eq!(fake.left(), before, "all of it was given back");
        assert!(device.fault().is_none(), "the others go on");
        fake.state().hangs = false;
        let queue = device.new_queue().unwrap();
        let kernel = device.kernel(&image, "globals").unwrap();
        let waiting = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
        for queue in [&queue, device.queue()] {
            // SAFETY: nothing runs.
            assert!(unsafe { kernel.launch(queue, &[], &waiting) }.unwrap().is_some());
        }
        drop((queue, kernel, image, device));
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    }
}

#[test]
fn whatever_a_notifier_holds_is_an_error_or_none() {
    let (fake, device, image) = open(Class::HOPPER, "kernels");
    let kernel = device.kernel(&image, "globals").unwrap();
    // SAFETY: nothing runs.
    let launch = || unsafe { kernel.launch(device.queue(), &[], &NvLaunch::new(1, 1)) };
    let (mut seed, mut stopped) = (1u64, 0);
    for round in 0..300u32 {
        launch().unwrap();
        device.synchronize().unwrap();
        let channel = fake.state().launched.last().unwrap().channel;
        let words: [u32; 4] = core::array::from_fn(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // small numbers have names
            (seed >> 32) as u32 >> (round % 32)
        });
        fake.state().notify(channel, words);
        let status = words[3] >> 16;
        match launch() {
            Ok(_) => assert_eq!(status, 0, "{words:x?}"),
            Err(Error::Raw(RawError::Stopped { error, info, .. })) => {
                assert_ne!(status, 0, "{words:x?}");
                assert_eq!((error.0, u32::from(info)), (words[2], words[3] & 0xffff));
                assert!(device.fault().unwrap().to_string().contains(&error.to_string()));
                assert!(device.reset().is_some() && device.fault().is_none());
                stopped += 1;
            }
            Err(error) => panic!("{words:x?}: {error}"),
        }
    }
    assert!((50..250).contains(&stopped), "{stopped} of 300");
    drop((kernel, image, device));
    assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
}
