//! Launch blocks that are damaged: every bit of them, in every version.

use exec_core::{Device as _, Spec};

use super::fake::{Block, Class};
use super::launch_test::open;
use super::program::RawCall;
use super::{RawArgument, RawDevice};
use crate::NvLaunch;

/// The block of a launch with banks and shared memory and another launch behind it, and of one without, where there are clusters with these.
fn blocks(class: Class) -> [Vec<u8>; 2] {
    let (fake, device, image) = open(class, "kernels");
    let kernel = device.kernel(&image, "shared_memory").unwrap();
    let buffer = device.buffer(64, Spec::new()).unwrap();
    let arguments = [RawArgument::Buffer(&buffer)];
    let launch = |launch| {
        let call = || RawCall { program: &kernel, arguments: &arguments, launch };
        // SAFETY: nothing runs.
        unsafe { RawDevice::queue(&device).launches(&[call(), call()]) }.unwrap();
    };
    launch(NvLaunch { dynamic_shared: 8 << 10, ..NvLaunch::new(70, 96) });
    if class.sm_version >= 0x900 {
        launch(NvLaunch { cluster: Some([2, 1, 1]), ..NvLaunch::new(4, 32) });
    }
    device.synchronize().unwrap();
    let state = fake.state();
    [state.launched.first(), state.launched.last()].map(|one| one.unwrap().bytes.clone())
}

#[test]
fn every_bit_of_a_block_is_refused_by_name_or_launches_something_else() {
    for class in [Class::AMPERE, Class::HOPPER, Class::BLACKWELL] {
        let version = super::fake::Fake::new(class).state().block_version();
        let read = |bytes: &[u8]| Block { bytes, version }.read();
        let (mut refused, mut other) = (0, 0);
        for mut bytes in blocks(class) {
            assert_eq!(bytes.len(), version.size);
            let whole = read(&bytes).unwrap();
            for bit in 0..version.size * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                match read(&bytes) {
                    Ok(reading) => {
                        assert_ne!(reading, whole, "{class:x?}: bit {bit} is not noticed");
                        other += 1;
                    }
                    Err(error) => {
                        let is_named = error.contains("] is ")
                            || error == format!("bit {bit} is set, which is no field's");
                        assert!(is_named, "{class:x?}, bit {bit}: {error}");
                        refused += 1;
                    }
                }
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(refused > 1000 && other > 300, "{class:x?}: {refused} refused, {other} others");
    }
}
