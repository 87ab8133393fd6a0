//! What users of such a layer have elsewhere, on the stub of the driver: each function failing in turn, and what is refused. What each call
//! is given is in `transcript.rs`.
#![cfg(all(feature = "driver", unix))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "layer/other.rs"]
mod other;
mod stub;
#[path = "layer/uses.rs"]
mod uses;

use std::collections::BTreeSet;
use std::sync::Arc;

use exec_core::{Device as _, Error as CoreError, Program as _, Spec};
use exec_nv::{
    Access, Driver, Error, Im2colBox, Interleave, KernelFault, L2Promotion, LaunchAttributes,
    NvGraph, NvLaunch, OutOfBounds, QueueOptions, Swizzle, TensorLayout, TensorType,
};
use stub::stub;
use uses::{KERNELS, USUAL, everything, fixture, open};

/// What gives things back. An error of it has nobody to be told, or comes too late.
const RELEASES: [&str; 14] = [
    "cuCtxSetCurrent",
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuIpcCloseMemHandle",
    "cuLibraryUnload",
    "cuMemAddressFree",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostUnregister",
    "cuMemRelease",
    "cuStreamDestroy_v2",
];
/// Called when a fault is taken away only, in `stubbed.rs`.
const RESET: &str = "cuDevicePrimaryCtxReset_v2";
/// Those whose failure says something else, or nothing: that there are no more parameters; that a mark is reached, or the code gone; what an
/// error is called; that a device has no pools.
const TAKEN: [&str; 8] = [
    "cuDeviceGetDefaultMemPool",
    "cuEventQuery",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuLinkDestroy",
    "cuMemPoolSetAccess",
    "cuMemUnmap",
    "cuModuleUnload",
];

#[test]
fn every_function_is_called_and_its_failure_is_named_and_loses_nothing() {
    let name = "every_function_is_called_and_its_failure_is_named_and_loses_nothing";
    let Some(stub) = stub(name) else { return };
    stub.be(13000, 2, 90);
    everything(&stub).unwrap();
    assert_eq!(stub.left(), "");
    let calls = stub.calls();
    let called: BTreeSet<&str> =
        calls.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let known: BTreeSet<&str> = Driver::FUNCTIONS.iter().copied().collect();
    assert!(called.is_subset(&known), "{:?}", called.difference(&known));
    let missing: Vec<_> =
        known.difference(&called).filter(|function| **function != RESET).collect();
    assert!(missing.is_empty(), "never called: {missing:?}");
    for function in called {
        let count = stub_count(&calls, function);
        for at in 1..=count {
            stub.forget();
            stub.fail(function, 801, at);
            let outcome = everything(&stub);
            let label = format!("{function}, call {at} of {count}");
            match outcome {
                Err(error) => assert!(error.to_string().contains(function), "{label}: {error}"),
                // a queue that is dropped waits, and tells nobody
                Ok(()) if function == "cuStreamSynchronize" => {}
                Ok(()) => assert!(
                    RELEASES.contains(&function) || TAKEN.contains(&function),
                    "{label} was not noticed"
                ),
            }
            if RELEASES.contains(&function) || TAKEN.contains(&function) {
                // what was not taken back, and what is mapped where, is all that is left
                assert!(stub.left().lines().count() <= 2, "{label}: {}", stub.left());
                stub.clear();
            } else {
                assert_eq!(stub.left(), "", "{label}");
            }
        }
    }
}

fn stub_count(calls: &str, function: &str) -> i32 {
    calls.lines().filter(|line| line.split(' ').next() == Some(function)).count() as i32
}

#[test]
fn graphs_keep_what_they_use_and_say_what_cannot_be() {
    let Some(stub) = stub("graphs_keep_what_they_use_and_say_what_cannot_be") else { return };
    stub.be(13000, 2, 90);
    let [device, other] = open(&stub).unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
    let to = device.buffer(64, Spec::new().not_kept()).unwrap();
    let queue = device.new_queue().unwrap();
    // more calls than a queue has between two marks: none is made of what only runs later
    let graph = NvGraph::capture(&queue, |queue| {
        for _ in 0..100 {
            queue.copy(&buffer, &to)?;
        }
        for (what, outcome) in [
            ("synchronize", queue.synchronize()),
            ("record_shareable", queue.record_shareable().map(drop)),
            ("capture", NvGraph::capture(queue, |_| Ok(())).map(drop)),
            // SAFETY: the stub runs nothing.
            ("launch", unsafe {
                kernel.launch(queue, &[], &NvLaunch { wait: true, ..USUAL }).map(drop)
            }),
        ] {
            assert!(matches!(outcome, Err(Error::Capturing)), "{what}: {outcome:?}");
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(graph.nodes().count(), 100);
    assert_eq!(stub.calls_of("cuEventRecord"), [""; 0]);
    let ready = graph.instantiate().unwrap();
    // between launches the host has the buffers
    for _ in 0..2 {
        buffer.copy_in(0, &[7; 64]).unwrap();
        // SAFETY: the stub runs nothing.
        unsafe { ready.launch(&queue) }.unwrap();
        assert!(matches!(buffer.copy_out(0, &mut [0; 64]), Err(CoreError::InUse)));
        queue.synchronize().unwrap();
        to.copy_out(0, &mut [0; 64]).unwrap();
    }
    drop(ready);
    queue.synchronize().unwrap();
    stub.forget();
    drop(to);
    buffer.free().unwrap();
    let ready = graph.instantiate().unwrap();
    drop(graph);
    // SAFETY: the stub runs nothing.
    unsafe { ready.launch(&queue) }.unwrap();
    drop(ready);
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 0, "the queue keeps what runs");
    assert_eq!(stub.calls_of("cuGraphExecDestroy").len(), 0);
    queue.synchronize().unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 2);
    assert_eq!(stub.calls_of("cuGraphExecDestroy").len(), 1);

    let mut one = NvGraph::new(&device).unwrap();
    let mut two = NvGraph::new(&device).unwrap();
    let first = one.add_join(&[]).unwrap();
    assert!(matches!(two.add_join(&[first]), Err(Error::OtherGraph)));
    let mut ready = two.instantiate().unwrap();
    let error = ready.update(&one).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the graph cannot be updated: the calls depend on each other in another way (2), at call 0"
    );
    // SAFETY: the stub runs nothing.
    let error = unsafe { ready.launch(other.queue()) }.unwrap_err();
    assert!(matches!(error, Error::Core(CoreError::OtherDevice { .. })), "{error}");
    // as many calls, in another order, and others
    let second = one.add_join(&[]).unwrap();
    let last = [two.add_join(&[]).unwrap()];
    two.add_join(&last).unwrap();
    let error = two.instantiate().unwrap().update(&one).unwrap_err().to_string();
    assert!(error.ends_with("in another way (2), at call 1"), "{error}");
    let filled = device.buffer(64, Spec::new()).unwrap();
    let mut three = NvGraph::new(&device).unwrap();
    three.add_fill(&[], &filled, 0).unwrap();
    three.add_join(&[]).unwrap();
    let error = three.instantiate().unwrap().update(&one).unwrap_err().to_string();
    assert!(error.ends_with("(3), at call 0"), "{error}");
    one.add_join(&[second]).unwrap();
    drop((filled, three));
    let far = other.buffer(64, Spec::new()).unwrap();
    assert!(matches!(one.add_fill(&[], &far, 0), Err(Error::Core(CoreError::OtherDevice { .. }))));
    // SAFETY: the stub runs nothing.
    let refused = unsafe { one.add_kernel(&[], &kernel, &[], &NvLaunch::new(0, 32)) };
    assert!(matches!(refused, Err(Error::Launch(_))), "{refused:?}");
    // a capture that fails leaves the queue as it was
    let failed = NvGraph::capture(&queue, |_| Err(Error::Name));
    assert!(matches!(failed, Err(Error::Name)));
    queue.record().unwrap();
    // after a reset it is another context
    drop((far, other));
    stub.fail("cuGraphLaunch", 700, 1);
    // SAFETY: the stub runs nothing.
    assert!(unsafe { ready.launch(&queue) }.is_err());
    assert!(device.reset().is_some());
    // SAFETY: the stub runs nothing.
    assert!(matches!(unsafe { ready.launch(&queue) }, Err(Error::Stale)));
    assert!(matches!(one.instantiate(), Err(Error::Stale)));
    drop((one, two, ready, queue, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn maps_of_tensors_are_checked_before_the_driver_is_asked() {
    let name = "maps_of_tensors_are_checked_before_the_driver_is_asked";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    stub.forget();
    let buffer = device.buffer(1 << 16, Spec::new().aligned(256)).unwrap();
    let layout = TensorLayout::new(TensorType::Bf16, &[64, 32, 4])
        .and_then(|layout| layout.strides(&[256, 256 * 32]))
        .and_then(|layout| layout.steps(&[1, 2, 1]))
        .unwrap()
        .swizzle(Swizzle::B128)
        .l2_promotion(L2Promotion::B256)
        .out_of_bounds(OutOfBounds::NanRequestZeroFma);
    let map = device.tensor_map(&buffer, &layout, &[64, 16, 1]).unwrap();
    assert_eq!(
        stub.calls_of("cuTensorMapEncodeTiled"),
        [
            "type 9 memory 1 sizes 64,32,4 strides 256,8192 box 64,16,1 steps 1,2,1 interleave 0 swizzle 3 promotion 3 fill 1"
        ]
    );
    let words = map.bytes();
    assert_eq!((words.len(), words.as_ptr().addr() % 64), (128, 0));
    assert_eq!(words.first_chunk(), Some(&buffer.address().unwrap().to_ne_bytes()));
    assert_eq!(map.argument().size(), 128);
    let images = TensorLayout::new(TensorType::F16, &[16, 8, 8, 4]).unwrap();
    let images = images.interleave(Interleave::B32).swizzle(Swizzle::B32);
    let area = Im2colBox { lower: &[-1, -2], upper: &[1, 2], channels: 16, pixels: 64 };
    device.tensor_map_im2col(&buffer, &images, &area).unwrap();
    assert_eq!(
        stub.calls_of("cuTensorMapEncodeIm2col"),
        [
            "type 6 memory 1 sizes 16,8,8,4 strides 32,256,2048 lower -1,-2 upper 1,2 steps 1,1,1,1 channels 16 pixels 64 \
          interleave 2 swizzle 1 promotion 0 fill 0"
        ]
    );
    let mut map = map;
    let part = buffer.view(256, 1 << 15).unwrap();
    device.move_tensor_map(&mut map, &part, &layout).unwrap();
    assert_eq!(map.bytes().first_chunk(), Some(&part.address().unwrap().to_ne_bytes()));
    let error = device.tensor_map(&part, &layout, &[128, 16, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor map: a row of the box has 256 bytes, where 128 are swizzled"
    );
    let error =
        device.move_tensor_map(&mut map, &buffer.view(8, 4096).unwrap(), &layout).unwrap_err();
    assert!(error.to_string().contains("the address is "), "{error}");
    assert_eq!(stub.calls_of("cuTensorMapEncodeTiled").len(), 1);
    drop((buffer, part));
    // an older device is told of by its number
    drop(device);
    stub.be(13000, 1, 80);
    let device = stub.device().unwrap();
    let buffer = device.buffer(1 << 16, Spec::new()).unwrap();
    let error = device.tensor_map(&buffer, &layout, &[64, 16, 1]).unwrap_err();
    assert_eq!(error.to_string(), "tensor map: tensor maps from sm_90 on, and the device is sm_80");
    drop((buffer, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn virtual_memory_keeps_to_its_bounds() {
    let Some(stub) = stub("virtual_memory_keeps_to_its_bounds") else { return };
    let device = stub.device().unwrap();
    let words = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
    assert_eq!(
        words(device.reserve(100_000, 0).map(drop)),
        "the size is 100000, no multiple of 65536"
    );
    assert_eq!(
        words(device.physical_memory(65537, false).map(drop)),
        "the size is 65537, no multiple of 65536"
    );
    let huge = device.physical_memory(1 << 40, false);
    assert!(matches!(huge, Err(Error::Core(CoreError::OutOfMemory { size })) if size == 1 << 40));
    let mut range = device.reserve(4 << 16, 0).unwrap();
    let memory = Arc::new(device.physical_memory(2 << 16, false).unwrap());
    range.map(1 << 16, &memory).unwrap();
    assert_eq!(words(range.map(0, &memory)), "memory is mapped there, from 65536 on");
    assert_eq!(words(range.map(2 << 16, &memory)), "memory is mapped there, from 65536 on");
    assert!(matches!(
        range.map(3 << 16, &memory),
        Err(Error::Core(CoreError::Outside { offset: 0x30000, size: 0x20000, available: 0x40000 }))
    ));
    assert!(range.set_access(3 << 16, 2 << 16, &[(&device, Access::Read)]).is_err());
    assert!(range.unmap(0).is_err());
    range.unmap(1 << 16).unwrap();
    range.map(0, &memory).unwrap();
    range.map(2 << 16, &memory).unwrap();
    drop((memory, range, device));
    assert_eq!(stub.calls_of("cuMemRelease").len(), 1);
    assert_eq!(stub.left(), "");
}

#[test]
fn what_a_kernel_did_has_a_name() {
    let Some(stub) = stub("what_a_kernel_did_has_a_name") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    for (code, fault) in [
        (700, KernelFault::IllegalAddress),
        (710, KernelFault::Assert),
        (714, KernelFault::HardwareStack),
        (715, KernelFault::IllegalInstruction),
        (716, KernelFault::MisalignedAddress),
        (719, KernelFault::LaunchFailed),
    ] {
        stub.fail("cuCtxGetLimit", code, 1);
        let error = device.stack_size().unwrap_err();
        assert_eq!(error.fault(), Some(fault), "{error}");
        assert!(device.reset().is_some(), "{error}");
    }
    assert_eq!(Error::Name.fault(), None);
    drop((image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn attributes_that_the_device_has_not_are_refused() {
    let Some(stub) = stub("attributes_that_the_device_has_not_are_refused") else { return };
    stub.be(13000, 1, 80);
    let device = stub.device().unwrap();
    let image = device.load(&fixture("cuda/kernels-13.5-sm_80.cubin")).unwrap();
    let kernel = device.program(&image, "globals", None).unwrap();
    assert_eq!(kernel.name(), "globals");
    let programmatic = LaunchAttributes { programmatic: true, ..LaunchAttributes::NONE };
    let launch = NvLaunch { attributes: programmatic, ..USUAL };
    // SAFETY: the stub runs nothing.
    let error = unsafe { kernel.launch(device.queue(), &[], &launch) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot launch: programmatic dependent launch from sm_90 on, and the device is sm_80"
    );
    // driver and image are asked side by side
    let found = kernel.occupancy(1024, 0).unwrap();
    assert_eq!((found.driver, found.image.unwrap().blocks, found.agree()), (8, 2, false));
    let queue = device.new_queue_with(QueueOptions { beside_default: true, priority: -5 }).unwrap();
    drop((queue, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn what_is_ones_own_is_not_opened_as_another_process_has_it() {
    let name = "what_is_ones_own_is_not_opened_as_another_process_has_it";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let buffer = device.buffer(64, Spec::new()).unwrap();
    let error = device.open_memory(device.share_memory(&buffer).unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("cuIpcOpenMemHandle") && error.to_string().contains("201"),
        "{error}"
    );
    let mark = device.queue().record_shareable().unwrap();
    let error = device.open_event(mark.share().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("cuIpcOpenEventHandle") && error.to_string().contains("201"),
        "{error}"
    );
    let (memory, event) = other::names(&stub);
    drop((device.open_memory(memory).unwrap(), device.open_event(event).unwrap()));
    drop((buffer, mark, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_reset_that_fails_is_an_error_that_sticks_and_the_next_one_works() {
    let name = "a_reset_that_fails_is_an_error_that_sticks_and_the_next_one_works";
    for function in [RESET, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"] {
        let Some(stub) = stub(name) else { return };
        let device = stub.device().unwrap();
        stub.fail("cuCtxGetLimit", 700, 1);
        device.stack_size().unwrap_err();
        stub.fail(function, 801, 1);
        assert!(device.reset().unwrap().to_string().contains("cuCtxGetLimit"));
        let error = device.fault().unwrap().to_string();
        assert!(error.contains(function), "{function}: {error}");
        assert_eq!(device.buffer(64, Spec::new()).unwrap_err().to_string(), error);
        assert_eq!(device.reset().unwrap().to_string(), error);
        assert!(device.fault().is_none());
        let buffer = device.buffer(64, Spec::new()).unwrap();
        buffer.copy_in(0, &[1; 64]).unwrap();
        drop((buffer, device));
        assert_eq!(stub.left(), "", "{function}");
    }
}
