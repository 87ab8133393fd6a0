//! Several queues of a device, and copies, which come after all that these have.

use std::path::Path;
use std::time::Duration;

use exec_core::{Device as _, Spec};

use super::fake::{Class, Fake};
use super::launch_test::{open, options};
use super::{Error as RawError, RawArgument, RawDevice, RawOptions};
use crate::{Error, NvLaunch};

/// Kernels of `gpu.cu`, which run here.
fn fixture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    std::fs::read(path.join("gpu-13.0-sm_90.fatbin")).unwrap()
}

#[test]
fn a_copy_waits_for_what_every_queue_still_writes() {
    let fake = Fake::new(Class::HOPPER);
    fake.state().runs = true;
    let options = RawOptions { limit: Duration::from_secs(5), ..options() };
    let device = RawDevice::open(fake.clone(), 0, options).unwrap();
    let image = device.load(&fixture()).unwrap();
    let kernel = device.kernel(&image, "variables").unwrap();
    let buffers = [(); 2].map(|()| device.buffer(8, Spec::new().zeroed()).unwrap());
    let [from, to] = &buffers;
    let queues = [(); 3].map(|()| device.new_queue().unwrap());
    for (round, queue) in (0..).zip(&queues) {
        let channels = fake.state().channels();
        fake.state().stuck = Some(channels[channels.len() - queues.len() + round]);
        let arguments = [RawArgument::Buffer(from)];
        // SAFETY: the kernel of the fixture, with the buffer that it wants.
        unsafe { kernel.launch(queue, &arguments, &NvLaunch::new(1, 1)) }.unwrap();
        let launched = fake.state().launched.len();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                let mut state = fake.state();
                state.stuck = None;
                state.wake();
            });
            device.copy(from, to).unwrap();
        });
        assert_eq!(fake.state().launched.len(), launched + 1);
        let mut bytes = [0; 8];
        to.copy_out(0, &mut bytes).unwrap();
        let expected = [7 + round as u8, 0, 0, 0, 1 + round as u8, 0, 0, 0];
        assert_eq!(bytes, expected, "queue {round}: what the kernel wrote was copied");
    }
    drop((kernel, image, queues, buffers, device));
    assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
}

#[test]
fn a_queue_that_takes_too_long_hinders_copies_until_it_is_dropped() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "globals").unwrap();
        let (from, to) = [(); 2].map(|()| device.buffer(64, Spec::new().zeroed()).unwrap()).into();
        let queue = device.new_queue().unwrap();
        let newest = fake.state().channels().last().copied();
        fake.state().stuck = newest;
        // SAFETY: nothing runs.
        unsafe { kernel.launch(&queue, &[], &NvLaunch::new(1, 1)) }.unwrap();
        let copies = fake.state().copies;
        let error = device.copy(&from, &to).unwrap_err();
        assert!(matches!(error, Error::Raw(RawError::TimeOut { reached: 1, wanted: 2, .. })));
        assert_eq!(fake.state().copies, copies, "{class:x?}: nothing was begun");
        assert!(device.fault().is_none(), "it may end yet");
        drop(queue);
        device.copy(&from, &to).unwrap();
        assert_eq!(fake.state().copies, copies + 1);
        drop((from, to, kernel, image, device));
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    }
}

#[test]
fn a_queue_that_was_stopped_is_told_of_by_a_copy_and_forgotten_by_a_reset() {
    for class in Class::GENERATIONS {
        let (fake, device, image) = open(class, "kernels");
        let kernel = device.kernel(&image, "globals").unwrap();
        let (from, to) = [(); 2].map(|()| device.buffer(64, Spec::new().zeroed()).unwrap()).into();
        let (stopped, other) = (device.new_queue().unwrap(), device.new_queue().unwrap());
        fake.state().fault = Some(13);
        // SAFETY: nothing runs.
        unsafe { kernel.launch(&stopped, &[], &NvLaunch::new(1, 1)) }.unwrap();
        let error = device.copy(&from, &to).unwrap_err().to_string();
        assert!(error.contains("Xid 13"), "{class:x?}: {error}");
        assert!(device.fault().unwrap().to_string().contains("Xid 13"));
        assert!(device.reset().is_some());
        // the queue is still there, and nothing of it runs
        device.copy(&from, &to).unwrap();
        assert!(device.fault().is_none());
        // queues that were not stopped are waited for as before, and the device's own, which was made anew
        for queue in [&other, device.queue()] {
            fake.state().hangs = true;
            // SAFETY: nothing runs.
            unsafe { kernel.launch(queue, &[], &NvLaunch::new(1, 1)) }.unwrap();
            let error = device.copy(&from, &to).unwrap_err();
            assert!(matches!(error, Error::Raw(RawError::TimeOut { .. })), "{error}");
            assert!(device.fault().is_none(), "no copy was begun");
            fake.state().hangs = false;
            fake.state().wake();
            device.copy(&from, &to).unwrap();
        }
        drop((from, to, stopped, other, kernel, image, device));
        assert_eq!((fake.left(), fake.state().abandoned.clone()), ("".into(), "".into()));
    }
}
