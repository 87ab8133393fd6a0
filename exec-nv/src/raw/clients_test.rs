//! Several clients of one driver: processes that share a GPU, and a process that has several GPUs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exec_core::{Device as _, Error as CoreError, Spec};

use super::fake::{Class, Fake};
use super::{RawArgument, RawDevice, RawImage, RawOptions};
use crate::{Error, NvLaunch};

/// Kernels of `gpu.cu`, which run here.
fn fixture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda");
    std::fs::read(path.join("gpu-13.0-sm_90.fatbin")).unwrap()
}

fn fake(gpus: u32) -> Fake {
    let fake = Fake::new(Class::HOPPER);
    (fake.state().runs, fake.state().gpus) = (true, gpus);
    fake
}

fn open(fake: &Fake, gpu: usize) -> (RawDevice<Fake>, Arc<RawImage<Fake>>) {
    let options = RawOptions { limit: Duration::from_secs(5), ..RawOptions::default() };
    let device = RawDevice::open(fake.clone(), gpu, options).unwrap();
    let image = device.load(&fixture()).unwrap();
    (device, image)
}

/// What the kernel with variables of its own gives at this launch of it.
fn count((device, image): &(RawDevice<Fake>, Arc<RawImage<Fake>>)) -> [i32; 2] {
    let out = device.buffer(8, Spec::new()).unwrap();
    let kernel = device.kernel(image, "variables").unwrap();
    let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
    // SAFETY: the kernel of the fixture, with the buffer that it wants.
    unsafe { kernel.launch(device.queue(), &[RawArgument::Buffer(&out)], &launch) }.unwrap();
    let mut bytes = [0; 8];
    out.copy_out(0, &mut bytes).unwrap();
    let (words, _) = bytes.as_chunks();
    [0, 1].map(|at| i32::from_le_bytes(words[at]))
}

fn assert_nothing_is_left(fake: &Fake) {
    assert_eq!((fake.left(), fake.state().abandoned.clone()), (String::new(), String::new()));
}

#[test]
fn clients_of_one_gpu_have_the_same_addresses_and_other_memory() {
    let fake = fake(1);
    let (one, two) = (open(&fake, 0), open(&fake, 0));
    let place = |(_, image): &(_, Arc<RawImage<Fake>>)| image.variable("counter").unwrap();
    assert_eq!(place(&one), place(&two), "each has all addresses of the GPU for itself");
    // each counts for itself
    for (client, expected) in [(&one, [7, 1]), (&one, [8, 2]), (&two, [7, 1]), (&one, [9, 3])] {
        assert_eq!(count(client), expected);
    }
    let channels: Vec<u32> = fake.state().launched.iter().map(|one| one.channel).collect();
    assert!(channels[0] == channels[1] && channels[1] == channels[3] && channels[2] != channels[3]);
    // what the GPU sees and the process, too, has other addresses in each, as both are this process
    let seen = |(device, _): &(RawDevice<Fake>, _)| {
        device.buffer(64, Spec::new().host_visible()).unwrap().address().unwrap()
    };
    let [first, second] = [&one, &two].map(seen);
    assert_ne!(first, second);
    let (near, far) =
        (one.0.buffer(64, Spec::new()).unwrap(), two.0.buffer(64, Spec::new()).unwrap());
    let refused = one.0.copy(&near, &far);
    assert!(matches!(refused, Err(Error::Core(CoreError::OtherDevice { .. }))), "{refused:?}");
    drop((near, far));
    // one goes, the other goes on; its memory is free for it
    let before = fake.state().free;
    drop(one);
    assert!(fake.state().free > before);
    assert_eq!(count(&two), [8, 2]);
    let again = open(&fake, 0);
    assert_eq!(count(&again), [7, 1]);
    drop((two, again));
    assert_nothing_is_left(&fake);
}

#[test]
fn what_stops_one_client_leaves_the_other_alone() {
    let fake = fake(1);
    let (one, two) = (open(&fake, 0), open(&fake, 0));
    fake.state().fault = Some(31);
    let kernel = one.0.kernel(&one.1, "nothing").unwrap();
    let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
    // SAFETY: the kernel does nothing.
    let error = unsafe { kernel.launch(one.0.queue(), &[], &launch) }.unwrap_err();
    assert!(error.to_string().contains("31"), "{error}");
    assert!(one.0.fault().is_some() && two.0.fault().is_none());
    assert_eq!(count(&two), [7, 1]);
    assert!(one.0.reset().is_some());
    assert_eq!(count(&two), [8, 2]);
    drop((kernel, one, two));
    assert_nothing_is_left(&fake);
}

#[test]
fn each_of_several_gpus_is_its_own_device() {
    let fake = fake(3);
    let all = [0, 1, 2].map(|gpu| open(&fake, gpu));
    let identities = all.each_ref().map(|(device, _)| device.gpu().uuid());
    assert!(identities[0] != identities[1] && identities[1] != identities[2]);
    let places = all.each_ref().map(|(device, _)| device.gpu().pci());
    assert!(places[0] != places[1] && places[1] != places[2]);
    for round in 0..3 {
        for client in all.iter().skip(round) {
            assert_eq!(count(client)[1], round as i32 + 1);
        }
    }
    let error = RawDevice::open(fake.clone(), 3, RawOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "step Device: no GPU 3: there are 3");
    drop(all);
    assert_nothing_is_left(&fake);
}
