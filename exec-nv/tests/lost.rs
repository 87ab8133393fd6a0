//! What is gone is not used: after a reset, beside other threads, in graphs that could not be put together.
#![cfg(all(feature = "driver", unix))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "layer/other.rs"]
mod other;
mod stub;
#[path = "layer/uses.rs"]
#[expect(dead_code, reason = "the half of it is another test's")]
mod uses;

use exec_core::{Buffer, Device as _, Error as CoreError, Spec};
use exec_nv::{
    Argument, ClusterPolicy, Error, LaunchAttributes, LaunchError, MemoryKind, NvDevice, NvGraph,
    NvLaunch, NvOptions,
};
use stub::{Stub, stub};
use uses::{KERNELS, USUAL, fixture, open};

/// Has a kernel fail.
fn fail(stub: &Stub, device: &NvDevice) {
    stub.fail("cuCtxGetLimit", 700, 1);
    device.stack_size().unwrap_err();
    assert!(device.fault().is_some());
}

#[test]
fn what_comes_while_others_wait_is_kept() {
    let Some(stub) = stub("what_comes_while_others_wait_is_kept") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    let [one, two, three] = [0, 1, 2].map(|_| device.buffer(64, Spec::new().not_kept()).unwrap());
    device.queue().copy(&one, &two).unwrap();
    let put = || device.queue().copy(&two, &three).unwrap();
    stub.during("cuStreamSynchronize", put, || device.queue().synchronize().unwrap());
    assert!(one.copy_out(0, &mut [0; 64]).is_ok());
    assert!(matches!(three.copy_out(0, &mut [0; 64]), Err(CoreError::InUse)));
    drop(three);
    assert_eq!(stub.calls_of("cuMemFree_v2"), [""; 0]);
    device.queue().synchronize().unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 1);
    // a capture that another thread begins meanwhile has what it is told
    let queue = device.new_queue().unwrap();
    let mut graph = None;
    let capture = || {
        let captured = NvGraph::capture(&queue, |queue| queue.copy(&one, &two));
        graph = Some(captured.unwrap());
    };
    stub.during("cuStreamSynchronize", capture, || queue.synchronize().unwrap());
    let ready = graph.unwrap().instantiate().unwrap();
    drop(one);
    // SAFETY: the stub runs nothing.
    unsafe { ready.launch(&queue) }.unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 1, "the graph keeps its buffers");
    drop((kernel, image, two, ready, queue, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn what_may_still_run_is_kept() {
    let Some(stub) = stub("what_may_still_run_is_kept") else { return };
    let device = stub.device().unwrap();
    let queue = device.new_queue().unwrap();
    let [one, two, three] = [0, 1, 2].map(|_| device.buffer(64, Spec::new().not_kept()).unwrap());
    queue.copy(&one, &two).unwrap();
    let refuse = || stub.fail("cuStreamSynchronize", 999, 1);
    // what is put into the queue while it waits stays behind what was there
    let put = || queue.copy(&two, &three).unwrap();
    refuse();
    stub.during("cuStreamSynchronize", put, || assert!(queue.synchronize().is_err()));
    for buffer in [&one, &two, &three] {
        assert!(matches!(buffer.copy_out(0, &mut [0; 64]), Err(CoreError::InUse)));
    }
    queue.synchronize().unwrap();
    for buffer in [&one, &two, &three] {
        buffer.copy_out(0, &mut [0; 64]).unwrap();
    }
    // after an error that sticks nothing runs
    queue.copy(&one, &two).unwrap();
    stub.fail("cuStreamSynchronize", 700, 1);
    assert!(queue.synchronize().is_err());
    assert!(device.reset().is_some());
    drop([one, two, three]);
    // and of a queue that is gone nobody knows any more whether it is done
    let [one, two] = [0, 1].map(|_| device.buffer(64, Spec::new().not_kept()).unwrap());
    queue.copy(&one, &two).unwrap();
    refuse();
    stub.forget();
    drop((queue, one, two));
    assert_eq!(stub.calls_of("cuMemFree_v2"), [""; 0]);
}

#[test]
fn after_a_reset_nothing_of_before_is_used() {
    let Some(stub) = stub("after_a_reset_nothing_of_before_is_used") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "parameters").unwrap();
    let globals = device.kernel(&image, "globals").unwrap();
    let kept = device.buffer(4096, Spec::new()).unwrap();
    let place = kept.address().unwrap();
    kept.free().unwrap();
    let buffer = device.buffer(64, Spec::new()).unwrap();
    let view = buffer.view(0, 8).unwrap();
    let mark = device.queue().record().unwrap();
    fail(&stub, &device);
    assert!(device.reset().is_some());
    stub.forget();
    // of memory of before nothing is given out, copied or launched upon
    let fresh = device.buffer(4096, Spec::new().zeroed()).unwrap();
    assert_ne!(fresh.address().unwrap(), place);
    let lost = |outcome: Result<(), CoreError>| {
        assert!(matches!(outcome, Err(CoreError::Lost)), "{outcome:?}")
    };
    lost(buffer.copy_in(0, &[0; 8]));
    lost(view.copy_out(0, &mut [0; 8]));
    lost(buffer.address().map(drop));
    let arguments = [Argument::Buffer(&buffer)];
    // SAFETY: the stub runs nothing.
    let launched = unsafe { globals.launch(device.queue(), &arguments, &USUAL) };
    assert!(launched.is_err(), "{launched:?}");
    // SAFETY: as above.
    let stale = unsafe { globals.launch(device.queue(), &[], &USUAL) }.map(drop);
    let wait = mark.wait();
    let since = mark.since(&mark).map(drop);
    let attributes = kernel.attributes().map(drop);
    let variable = image.variable("counter").map(drop);
    let occupancy = kernel.occupancy(32, 0).map(drop);
    for outcome in [stale, wait, since, attributes, variable, occupancy] {
        assert!(matches!(outcome, Err(Error::Stale)), "{outcome:?}");
    }
    assert!(mark.is_reached());
    assert!(device.kernel(&image, "globals").is_err());
    drop((globals, kernel, image));
    // and what is loaded again works
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    // SAFETY: as above.
    unsafe { kernel.launch(device.queue(), &[], &USUAL) }.unwrap();
    device.synchronize().unwrap();
    drop((buffer, fresh, mark, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn who_opens_a_device_twice_has_one_context() {
    let Some(stub) = stub("who_opens_a_device_twice_has_one_context") else { return };
    let driver = stub.driver().unwrap();
    let open = |driver| NvDevice::open(driver, 0, NvOptions::default()).unwrap();
    let (one, two) = (open(&driver), open(&stub.driver().unwrap()));
    assert_eq!(stub.calls_of("cuDevicePrimaryCtxRetain").len(), 1);
    assert_eq!(one.id(), two.id());
    let [first, second] = [&one, &two].map(|device| device.buffer(64, Spec::new()).unwrap());
    one.queue().copy(&first, &second).unwrap();
    one.synchronize().unwrap();
    fail(&stub, &two);
    assert!(one.fault().is_some() && one.reset().is_some() && two.fault().is_none());
    for buffer in [&first, &second] {
        assert!(matches!(buffer.copy_in(0, &[1]), Err(CoreError::Lost)));
    }
    assert!(two.buffer(64, Spec::new().zeroed()).is_ok());
    drop((first, second, one));
    assert_eq!(stub.calls_of("cuDevicePrimaryCtxRelease_v2").len(), 1, "that of the reset");
    drop(two);
    assert_eq!(stub.left(), "");
}

#[test]
fn memory_that_the_host_sees_does_not_go_under_its_views() {
    let name = "memory_that_the_host_sees_does_not_go_under_its_views";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    for kind in [MemoryKind::Pinned, MemoryKind::Managed] {
        let allocator = device.allocator_of(kind);
        let kept = Buffer::new(&allocator, 512, Spec::new()).unwrap();
        let buffer = Buffer::new(&allocator, 64, Spec::new()).unwrap();
        kept.free().unwrap();
        let view = buffer.host().unwrap();
        fail(&stub, &device);
        assert!(device.reset().is_none(), "{kind:?}");
        assert_eq!(view.len(), 64);
        assert!(device.fault().is_some());
        drop(view);
        drop(buffer);
        assert!(device.reset().is_some() && device.fault().is_none());
    }
    drop(device);
    assert_eq!(stub.left(), "");
}

#[test]
fn a_launch_that_a_graph_cannot_have_is_not_in_it() {
    let Some(stub) = stub("a_launch_that_a_graph_cannot_have_is_not_in_it") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    let mut graph = NvGraph::new(&device).unwrap();
    let none = LaunchAttributes::NONE;
    let programmatic = LaunchAttributes { programmatic: true, ..none };
    let launch = NvLaunch { attributes: programmatic, ..USUAL };
    // SAFETY: the stub runs nothing.
    let refused = unsafe { graph.add_kernel(&[], &kernel, &[], &launch) };
    assert!(matches!(refused, Err(Error::Launch(LaunchError::NotInGraphs { .. }))), "{refused:?}");
    assert_eq!(stub.calls_of("cuGraphAddKernelNode_v2"), [""; 0]);
    stub.fail("cuGraphKernelNodeSetAttribute", 801, 1);
    let attributes = LaunchAttributes { cluster_policy: Some(ClusterPolicy::Spread), ..none };
    let launch = NvLaunch { attributes, cluster: Some([2, 1, 1]), ..USUAL };
    // SAFETY: as above.
    assert!(unsafe { graph.add_kernel(&[], &kernel, &[], &launch) }.is_err());
    assert_eq!(stub.calls_of("cuGraphDestroyNode"), ["node 0"]);
    assert_eq!(graph.nodes().count(), 0);
    drop((graph, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_mark_that_the_driver_does_not_tell_of_is_not_reached() {
    let name = "a_mark_that_the_driver_does_not_tell_of_is_not_reached";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let mark = device.queue().record().unwrap();
    // not ready, not now since this thread captures, unknown
    for code in [600, 900, 999] {
        stub.fail("cuEventQuery", code, 1);
        assert!(!mark.is_reached(), "{code}");
    }
    assert!(mark.is_reached());
    drop((mark, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn several_devices_reach_pools_and_memory_of_the_host() {
    let Some(stub) = stub("several_devices_reach_pools_and_memory_of_the_host") else { return };
    stub.be(13000, 2, 90);
    let devices = open(&stub).unwrap();
    let [one, two] = &devices;
    let pooled =
        Buffer::new(&two.allocator_of(MemoryKind::StreamOrdered), 64, Spec::new()).unwrap();
    stub.forget();
    drop(pooled.map_on(one.allocator()).unwrap());
    assert_eq!(stub.calls_of("cuMemPoolSetAccess"), ["default device 1:0 may 3, 1"]);
    // memory of the host that both are let use is registered once, until nobody has it
    let host = exec_core::PeerMemory {
        device: exec_core::DeviceId::unique(),
        address: 0x4000,
        size: 64,
        is_host: true,
    };
    use exec_core::Allocator as _;
    let [first, second] = [one, two].map(|device| device.allocator().import(host).unwrap());
    assert_eq!(stub.calls_of("cuMemHostRegister_v2").len(), 1);
    one.allocator().forget(host, first);
    assert_eq!(stub.calls_of("cuMemHostUnregister"), [""; 0]);
    two.allocator().forget(host, second);
    assert_eq!(stub.calls_of("cuMemHostUnregister").len(), 1);
    drop(pooled);
    drop(devices);
    assert_eq!(stub.left(), "");
}

#[test]
fn several_queues_are_captured_into_one_graph() {
    let Some(stub) = stub("several_queues_are_captured_into_one_graph") else { return };
    let device = stub.device().unwrap();
    let buffer = || device.buffer(64, Spec::new().not_kept()).unwrap();
    let [from, left, right, to] = [(); 4].map(|()| buffer());
    let (queue, other) = (device.new_queue().unwrap(), device.new_queue().unwrap());
    other.copy(&from, &right).unwrap();
    let graph = NvGraph::capture(&queue, |queue| {
        queue.copy(&from, &left)?;
        other.wait_for(queue)?;
        other.copy(&left, &right)?;
        queue.copy(&left, &to)?;
        assert!(matches!(other.synchronize(), Err(Error::Capturing)));
        queue.wait_for(&other)
    })
    .unwrap();
    assert_eq!(graph.nodes().count(), 3);
    // both are queues as before, and what was in one of them is waited for
    assert!(matches!(right.copy_out(0, &mut [0; 64]), Err(CoreError::InUse)));
    other.synchronize().unwrap();
    right.copy_out(0, &mut [0; 64]).unwrap();
    let ready = graph.instantiate().unwrap();
    drop((graph, right));
    assert_eq!(stub.calls_of("cuMemFree_v2"), [""; 0], "the graph has what the other queue used");
    // SAFETY: the stub runs nothing.
    unsafe { ready.launch(&queue) }.unwrap();
    queue.synchronize().unwrap();
    drop(ready);
    queue.synchronize().unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 1);
    // one that is not waited for is an error, after which all are as before; so is one that is gone
    let mut late = None;
    let error = NvGraph::capture(&queue, |queue| {
        late = Some(queue.record()?);
        let gone = device.new_queue()?;
        gone.copy(&from, &left)?;
        gone.wait_for(queue)?;
        gone.copy(&left, &to)?;
        other.wait_for(queue)?;
        other.copy(&left, &to)
    });
    assert!(matches!(error, Err(Error::Driver { code: 904, .. })), "{error:?}");
    // a mark of a capture that has ended is nobody's
    let late = late.unwrap();
    assert!(matches!(other.wait_for_event(&late), Err(Error::Capturing)));
    other.copy(&from, &to).unwrap();
    other.synchronize().unwrap();
    // of two captures neither gets into the other
    let nested = NvGraph::capture(&queue, |queue| {
        let mark = queue.record()?;
        let inner = NvGraph::capture(&other, |other| other.wait_for_event(&mark));
        assert!(matches!(inner, Err(Error::Capturing)), "{inner:?}");
        Ok(())
    });
    nested.unwrap();
    drop((from, left, to, late, queue, other, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_mark_is_moved() {
    let Some(stub) = stub("a_mark_is_moved") else { return };
    let device = stub.device().unwrap();
    let (queue, mark) = (device.new_queue().unwrap(), device.queue().record_shareable().unwrap());
    stub.forget();
    queue.record_again(&mark).unwrap();
    device.queue().wait_for_event(&mark).unwrap();
    assert_eq!(stub.calls_of("cuEventRecord"), ["event 1 stream 2"]);
    assert_eq!(stub.calls_of("cuStreamWaitEvent"), ["stream 1 event 1 0"]);
    fail(&stub, &device);
    assert!(device.reset().is_some());
    assert!(matches!(queue.record_again(&mark), Err(Error::Stale)));
    drop((queue, mark, device));
    assert_eq!(stub.left(), "");
}
