//! What does not belong together, on a stub of the driver: it is named before the driver is asked.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod stub;

use exec_core::{Device as _, Error as CoreError, Spec};
use exec_nv::{Error, NvDevice, NvGraph, NvLaunch, NvLibrary, NvOptions};
use stub::{KERNELS, Stub, fixture, stub};

fn two(stub: &Stub) -> [NvDevice; 2] {
    stub.be(13000, 2, 90);
    let driver = stub.driver().unwrap();
    [0, 1].map(|ordinal| NvDevice::open(&driver, ordinal, NvOptions::default()).unwrap())
}

#[test]
fn what_is_of_another_device_is_named() {
    let Some(stub) = stub("what_is_of_another_device_is_named") else { return };
    let [device, other] = two(&stub);
    let bytes = fixture(KERNELS);
    let image = device.load(&bytes).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    let (mark, later) = (device.queue().record().unwrap(), other.queue().record().unwrap());
    let buffer = other.buffer(64, Spec::new()).unwrap();
    stub.forget();
    // SAFETY: the stub runs nothing.
    let launched = unsafe { kernel.launch(other.queue(), &[], &NvLaunch::new(1, 32)) };
    for (what, outcome) in [
        ("a launch in its queue", launched.map(drop)),
        ("a kernel of its image", other.kernel(&image, "globals").map(drop)),
        ("a program", other.program(&image, "globals", None).map(drop).map_err(Into::into)),
        ("a mark that is moved", other.queue().record_again(&mark)),
        ("a time", later.since(&mark).map(drop)),
        ("a name for others", device.share_memory(&buffer).map(drop)),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Core(CoreError::OtherDevice { .. })), "{what}: {error}");
    }
    assert_eq!(stub.calls(), "");
    // marks are waited for across devices, and code of a library is on each
    other.queue().wait_for_event(&mark).unwrap();
    let library = NvLibrary::load(&device, &bytes).unwrap();
    other.kernel(&library.on(&other), "globals").unwrap();
}

#[test]
fn sides_of_a_copy_have_nothing_in_common() {
    let Some(stub) = stub("sides_of_a_copy_have_nothing_in_common") else { return };
    let [device, _] = two(&stub);
    let buffer = device.buffer(64, Spec::new().zeroed()).unwrap();
    let mut graph = NvGraph::new(&device).unwrap();
    for (from, to, size, common) in [
        (0, 8, 40, 32),
        (8, 0, 40, 32),
        (0, 0, 64, 64),
        (0, 31, 32, 1),
        (0, 32, 32, 0),
        (5, 5, 0, 0),
    ] {
        let (from, to) = (buffer.view(from, size).unwrap(), buffer.view(to, size).unwrap());
        stub.forget();
        let outcomes = [
            device.queue().copy(&from, &to),
            NvDevice::copy(&from, &to),
            graph.add_copy(&[], &from, &to).map(drop),
        ];
        for outcome in outcomes {
            match outcome {
                Ok(()) => assert_eq!(common, 0),
                Err(Error::Core(CoreError::Overlap { bytes })) => assert_eq!(bytes, common),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(stub.calls().is_empty(), common > 0);
        device.synchronize().unwrap();
    }
    // by way of the host it does not matter
    let (from, to) = (buffer.view(0, 40).unwrap(), buffer.view(8, 40).unwrap());
    exec_core::copy(&from, &to).unwrap();
}
