//! What does not belong together, on a stub of the driver: it is named before the driver is asked.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use exec_core::{Device as _, Error as CoreError, Spec};
use exec_nv::{Argument, Error, NvDevice, NvGraph, NvLaunch, NvLibrary, NvOptions};
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

#[test]
fn of_a_graph_only_launches_are_changed_to_launches() {
    let Some(stub) = stub("of_a_graph_only_launches_are_changed_to_launches") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "shared_memory").unwrap();
    let [one, two] = [(); 2].map(|()| device.buffer(64, Spec::new().not_kept()).unwrap());
    let (usual, to_two) = (NvLaunch::new(1, 32), [Argument::Buffer(&two)]);
    let mut graph = NvGraph::new(&device).unwrap();
    let fill = graph.add_fill(&[], &one, 1).unwrap();
    let mut ready = graph.instantiate().unwrap();
    // SAFETY: the stub runs nothing.
    let (late, changed, missing) = unsafe {
        let late = graph.add_kernel(&[fill], &kernel, &to_two, &usual).unwrap();
        let changed = ready.set_kernel(fill, &kernel, &to_two, &usual);
        (late, changed, ready.set_kernel(late, &kernel, &to_two, &usual))
    };
    assert_eq!(
        changed.unwrap_err().to_string(),
        "the graph cannot be updated: a call is of another kind (3), at call 0"
    );
    let missing = missing.unwrap_err();
    assert_eq!(missing.to_string(), "the call is of another graph, or came into it later");
    // SAFETY: as above.
    let again = unsafe {
        graph.instantiate().unwrap().set_kernel(late, &kernel, &[Argument::Buffer(&one)], &usual)
    };
    again.unwrap();
    // what is filled stays as long as the graph has it
    stub.forget();
    drop((one, two, graph));
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 1);
    drop((ready, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn what_a_graph_was_updated_with_stays_whichever_call_is_changed() {
    let name = "what_a_graph_was_updated_with_stays_whichever_call_is_changed";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "shared_memory").unwrap();
    let usual = NvLaunch::new(1, 32);
    let buffers = [(); 5].map(|()| device.buffer(64, Spec::new().not_kept()).unwrap());
    let [one, two, three, four, five] = &buffers;
    // two launches that do not depend on each other: which of another graph's is which of this one's, the driver decides
    let graph = |first, second| {
        let mut graph = NvGraph::new(&device).unwrap();
        let nodes = [first, second].map(|buffer| {
            // SAFETY: the stub runs nothing.
            unsafe { graph.add_kernel(&[], &kernel, &[Argument::Buffer(buffer)], &usual) }.unwrap()
        });
        (graph, nodes)
    };
    let (first, nodes) = graph(one, two);
    let mut ready = first.instantiate().unwrap();
    ready.update(&graph(three, four).0).unwrap();
    // SAFETY: as above.
    unsafe { ready.set_kernel(nodes[0], &kernel, &[Argument::Buffer(five)], &usual) }.unwrap();
    drop(first);
    stub.forget();
    drop(buffers);
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 2, "of what it was before");
    drop(ready);
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 5);
}

#[test]
fn nothing_is_copied_filled_and_reserved_by_nobody() {
    let Some(stub) = stub("nothing_is_copied_filled_and_reserved_by_nobody") else { return };
    let device = stub.device().unwrap();
    let buffer = device.buffer(64, Spec::new()).unwrap();
    let (none, end) = (buffer.view(0, 0).unwrap(), buffer.view(64, 0).unwrap());
    let mut graph = NvGraph::new(&device).unwrap();
    stub.forget();
    let copy = graph.add_copy(&[], &none, &end).unwrap();
    graph.add_fill(&[copy], &none, 1).unwrap();
    // others can wait for them all the same
    assert_eq!(stub.calls_of("cuGraphAddEmptyNode").len(), 2);
    for outcome in [
        device.reserve(0, 0).map(drop),
        device.physical_memory(0, false).map(drop),
        device.physical_memory(0, true).map(drop),
    ] {
        assert!(matches!(outcome, Err(Error::Core(CoreError::Empty))), "{outcome:?}");
    }
    drop((graph, buffer, device));
    assert_eq!(stub.left(), "");
}
