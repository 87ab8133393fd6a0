//! What other threads do while a capture begins and ends, on a stub of the driver: a call is the queue's or the graph's, never of neither.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use exec_core::{Buffer, Device as _, Error as CoreError, LruAllocator, Spec};
use exec_nv::{Error, NvAllocator, NvDevice, NvGraph, NvQueue};
use stub::{Stub, stub};

type Memory = Buffer<LruAllocator<NvAllocator>>;

fn buffers<const N: usize>(device: &NvDevice) -> [Memory; N] {
    [(); N].map(|()| device.buffer(64, Spec::new().not_kept()).unwrap())
}

fn is_in_use(buffer: &Memory) -> bool {
    matches!(buffer.copy_out(0, &mut [0; 64]), Err(CoreError::InUse))
}

/// Has another thread put a copy into `queue` during a call of `function`, which comes while this runs `then`. If that has to wait, it does so
/// until the call is over.
fn beside<T>(
    stub: &Stub,
    function: &str,
    queue: &NvQueue,
    [from, to]: [&Memory; 2],
    then: impl FnOnce() -> T,
) -> T {
    thread::scope(|scope| {
        let (begin, begins) = channel();
        let (end, ends) = channel();
        scope.spawn(move || {
            begins.recv().unwrap();
            queue.copy(from, to).unwrap();
            let _: Result<_, _> = end.send(());
        });
        let put = || {
            begin.send(()).unwrap();
            let _: Result<_, _> = Receiver::recv_timeout(&ends, Duration::from_millis(100));
        };
        let mut done = None;
        stub.during(function, put, || done = Some(then()));
        done.unwrap()
    })
}

#[test]
fn a_call_while_a_capture_ends_is_the_queues() {
    let Some(stub) = stub("a_call_while_a_capture_ends_is_the_queues") else { return };
    let device = stub.device().unwrap();
    let (queue, joined) = (device.new_queue().unwrap(), device.new_queue().unwrap());
    let [one, two, from, to] = buffers(&device);
    let capture = || {
        NvGraph::capture(&queue, |queue| {
            joined.wait_for(queue)?;
            joined.copy(&one, &two)?;
            queue.wait_for(&joined)
        })
        .unwrap()
    };
    for late in [&queue, &joined] {
        let graph = beside(&stub, "cuStreamEndCapture", late, [&from, &to], capture);
        assert_eq!(graph.nodes().count(), 1);
        assert!(is_in_use(&from) && is_in_use(&to), "the copy runs");
        late.synchronize().unwrap();
        assert!(!is_in_use(&from) && !is_in_use(&to));
    }
    drop((one, two, from, to, queue, joined, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_call_while_a_queue_joins_a_capture_is_kept_where_it_goes() {
    let name = "a_call_while_a_queue_joins_a_capture_is_kept_where_it_goes";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let (queue, joined) = (device.new_queue().unwrap(), device.new_queue().unwrap());
    let [from, to] = buffers(&device);
    let graph = NvGraph::capture(&queue, |queue| {
        let mark = queue.record()?;
        // the copy comes before or after it: what it uses is the queue's or the graph's
        let wait = || joined.wait_for_event(&mark);
        beside(&stub, "cuStreamWaitEvent", &joined, [&from, &to], wait)?;
        queue.wait_for(&joined)
    })
    .unwrap();
    let captured = graph.nodes().count();
    assert_eq!(is_in_use(&from), captured == 0);
    let ready = graph.instantiate().unwrap();
    drop(graph);
    joined.synchronize().unwrap();
    stub.forget();
    drop((from, to));
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), if captured == 0 { 2 } else { 0 });
    drop((ready, queue, joined, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_mark_of_a_capture_is_no_mark_of_anything_else() {
    let Some(stub) = stub("a_mark_of_a_capture_is_no_mark_of_anything_else") else { return };
    let device = stub.device().unwrap();
    let mut mark = None;
    let capture = |queue: &NvQueue| {
        mark = Some(queue.record()?);
        Ok(())
    };
    NvGraph::capture(device.queue(), capture).unwrap();
    let mark = mark.unwrap();
    // it would be waited for as one of the capture
    assert!(matches!(device.queue().record_again(&mark), Err(Error::Capturing)));
    let shared = device.queue().record_shareable().unwrap();
    let refused = NvGraph::capture(device.queue(), |queue| queue.record_again(&shared));
    assert!(matches!(refused, Err(Error::Capturing)));
    device.queue().record_again(&shared).unwrap();
    device.new_queue().unwrap().wait_for_event(&shared).unwrap();
}

#[test]
fn a_capture_does_not_outlive_a_reset() {
    let Some(stub) = stub("a_capture_does_not_outlive_a_reset") else { return };
    let device = stub.device().unwrap();
    let queue = device.new_queue().unwrap();
    let graph = NvGraph::capture(&queue, |_| {
        stub.fail("cuCtxGetLimit", 700, 1);
        device.stack_size().unwrap_err();
        assert!(device.reset().is_some());
        Ok(())
    });
    assert!(matches!(graph, Err(Error::Stale)), "{graph:?}");
    assert_eq!(stub.calls_of("cuStreamEndCapture"), [""; 0]);
    queue.synchronize().unwrap();
    NvGraph::capture(&queue, |_| Ok(())).unwrap();
    drop((queue, device));
    assert_eq!(stub.left(), "");
}
