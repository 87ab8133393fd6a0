//! What CUDA's documents ask for and no type says, on the stub of the driver: of memory, tensor maps and addresses.
#![cfg(all(feature = "driver", unix))]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use std::os::fd::AsFd as _;
use std::sync::Arc;

use exec_core::{Buffer, Device as _, Error as CoreError, ExternalMemory, Spec};
use exec_nv::{
    Error, Im2colWideBox, ManagedAdvice, ManagedPlace, MemoryKind, NvDevice, NvGraph, NvOptions,
    Swizzle, TensorLayout, TensorType,
};
use stub::stub;

#[test]
fn a_part_of_memory_is_not_named_to_others() {
    let Some(stub) = stub("a_part_of_memory_is_not_named_to_others") else { return };
    let device = stub.device().unwrap();
    let whole = device.buffer(4096, Spec::new()).unwrap();
    // as another package lends it: who opened the name of this would be at the start of the whole
    // SAFETY: 1024 bytes of `whole`, which is there and not used.
    let part = unsafe { ExternalMemory::new(whole.address().unwrap() + 512, 1024) };
    let part = Buffer::external(device.allocator(), part, Spec::new()).unwrap();
    let error = device.share_memory(&part).unwrap_err();
    assert!(matches!(error, Error::Inside { offset: 512 }), "{error}");
    assert_eq!(
        error.to_string(),
        "the memory begins 512 bytes inside of what can be shared as a whole"
    );
    assert_eq!(stub.calls_of("cuIpcGetMemHandle"), [""; 0]);
    device.share_memory(&whole).unwrap();
    drop((part, whole, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn the_host_sees_managed_memory_only_where_it_may_touch_it_meanwhile() {
    let name = "the_host_sees_managed_memory_only_where_it_may_touch_it_meanwhile";
    let Some(stub) = stub(name) else { return };
    let options = NvOptions { memory: MemoryKind::Managed, ..NvOptions::default() };
    for concurrent in [true, false] {
        stub.concurrent(concurrent);
        stub.forget();
        let device = NvDevice::open(&stub.driver().unwrap(), 0, options).unwrap();
        let buffer = device.buffer(64, Spec::new()).unwrap();
        assert_eq!(buffer.host().is_ok(), concurrent);
        // by copies it is there all the same
        buffer.copy_in(0, &[7; 64]).unwrap();
        let mut bytes = [0; 64];
        buffer.copy_out(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 64]);
        let seen = device.buffer(64, Spec::new().host_visible()).unwrap();
        assert!(seen.host().is_ok());
        assert_eq!(stub.calls_of("cuMemHostAlloc").len(), usize::from(!concurrent));
        drop((buffer, seen));
        // what is kept is given back, and a reset is not kept from it
        stub.fail("cuCtxGetLimit", 700, 1);
        device.stack_size().unwrap_err();
        device.allocator().empty().unwrap();
        assert!(device.reset().is_some());
        drop(device);
        assert_eq!(stub.left(), "");
    }
}

#[test]
fn memory_in_the_order_of_a_stream_is_of_the_pool_that_others_are_let_use() {
    let name = "memory_in_the_order_of_a_stream_is_of_the_pool_that_others_are_let_use";
    let Some(stub) = stub(name) else { return };
    stub.be(13000, 2, 90);
    let driver = stub.driver().unwrap();
    let open = |ordinal| NvDevice::open(&driver, ordinal, NvOptions::default()).unwrap();
    let (one, other) = (open(0), open(1));
    let ordered = one.allocator_of(MemoryKind::StreamOrdered);
    let buffer = Buffer::new(&ordered, 256, Spec::new()).unwrap();
    other.reach(&one).unwrap();
    // `cuMemAllocAsync` takes from whichever pool somebody of the process has made the current one
    assert_eq!(stub.calls_of("cuMemAllocAsync"), [""; 0]);
    assert_eq!(stub.calls_of("cuMemAllocFromPoolAsync"), ["256 default stream 3"]);
    assert_eq!(stub.calls_of("cuMemPoolSetAccess"), ["default device 1:1 may 3, 1"]);
    drop((buffer, ordered, one, other, driver));
    assert_eq!(stub.left(), "");
}

#[test]
fn packed_tensors_have_no_gaps_in_memory_and_want_a_driver_that_knows_them() {
    let name = "packed_tensors_have_no_gaps_in_memory_and_want_a_driver_that_knows_them";
    let Some(stub) = stub(name) else { return };
    stub.be(12080, 1, 100);
    let device = stub.device().unwrap();
    let memory = device.buffer(96 * 32, Spec::new().aligned(128)).unwrap();
    let six = TensorLayout::new(TensorType::U6Align16, &[128, 32]).unwrap();
    let four = TensorLayout::new(TensorType::U4Align16, &[128, 32]).unwrap();
    device.tensor_map(&memory, &six, &[128, 8]).unwrap();
    device.tensor_map(&memory, &four, &[128, 8]).unwrap();
    let calls = stub.calls_of("cuTensorMapEncodeTiled");
    assert!(calls[0].contains(" strides 96 ") && calls[1].contains(" strides 64 "), "{calls:?}");
    drop((memory, device));
    stub.be(12070, 1, 90);
    let device = stub.device().unwrap();
    let memory = device.buffer(1 << 16, Spec::new().aligned(128)).unwrap();
    let halves = TensorLayout::new(TensorType::F16, &[64, 32]).unwrap();
    for (layout, expected) in [
        (six, "a type of 4 or 6 bits from CUDA 12.8 on, and the driver has 12.7"),
        (
            halves.swizzle(Swizzle::B128Atom32),
            "a swizzle of 32 or 64 bytes from CUDA 12.8 on, and the driver has 12.7",
        ),
    ] {
        let error = device.tensor_map(&memory, &layout, &[128, 8]).unwrap_err();
        assert_eq!(error.to_string(), format!("tensor map: {expected}"));
    }
    device.tensor_map(&memory, &halves.swizzle(Swizzle::B128), &[64, 8]).unwrap();
    drop((memory, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn addresses_are_where_memory_can_be() {
    let Some(stub) = stub("addresses_are_where_memory_can_be") else { return };
    let device = stub.device().unwrap();
    let piece = device.granularity(true).unwrap().minimum;
    let aligned = device.reserve(4 * piece, 3 << 20).unwrap_err();
    assert!(matches!(aligned, Error::Core(CoreError::Alignment { alignment: 0x30_0000 })));
    let mut range = device.reserve(4 * piece, 2 << 20).unwrap();
    let memory = Arc::new(device.physical_memory(piece, true).unwrap());
    let error = range.map(4096, &memory).unwrap_err();
    assert_eq!(error.to_string(), format!("the offset is 4096, no multiple of {piece}"));
    let file = memory.share().unwrap();
    let error = device.import_memory(file.as_fd(), 4096).unwrap_err();
    assert_eq!(error.to_string(), format!("the size is 4096, no multiple of {piece}"));
    assert_eq!(stub.calls_of("cuMemMap"), [""; 0]);
    drop((memory, range, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn columns_along_the_width_are_of_later_devices_and_drivers() {
    let name = "columns_along_the_width_are_of_later_devices_and_drivers";
    let Some(stub) = stub(name) else { return };
    let layout = TensorLayout::new(TensorType::F16, &[64, 8, 8, 2]).unwrap();
    let layout = layout.swizzle(Swizzle::B128);
    for (version, sm, pixels, expected) in [
        (12080, 90, None, Err("columns along the width from sm_100 on, and the device is sm_90")),
        (
            12070,
            100,
            None,
            Err("columns along the width from CUDA 12.8 on, and the driver has 12.7"),
        ),
        (12080, 100, Some(7), Ok("pixels 7 interleave 0 mode 0")),
        (13000, 120, None, Ok("pixels 128 interleave 0 mode 1")),
    ] {
        stub.be(version, 1, sm);
        stub.forget();
        let device = stub.device().unwrap();
        let memory = device.buffer(1 << 16, Spec::new().aligned(128)).unwrap();
        let area = Im2colWideBox { lower: -1, upper: 2, channels: 64, pixels };
        match (device.tensor_map_im2col_wide(&memory, &layout, &area), expected) {
            (Ok(map), Ok(words)) => {
                let start = memory.address().unwrap().to_ne_bytes();
                assert_eq!(map.bytes().first_chunk(), Some(&start));
                assert_eq!(
                    stub.calls_of("cuTensorMapEncodeIm2colWide"),
                    [format!(
                        "type 6 memory 1 sizes 64,8,8,2 strides 128,1024,8192 lower -1 upper 2 steps 1,1,1,1 channels 64 {words} \
                         swizzle 3 promotion 0 fill 0"
                    )]
                );
            }
            (outcome, expected) => {
                let error = outcome.unwrap_err().to_string();
                assert_eq!(error, format!("tensor map: {}", expected.unwrap_err()));
            }
        }
        drop((memory, device));
        assert_eq!(stub.left(), "");
    }
}

#[test]
fn managed_memory_is_sent_ahead_with_advice() {
    let Some(stub) = stub("managed_memory_is_sent_ahead_with_advice") else { return };
    stub.be(13000, 2, 90);
    let driver = stub.driver().unwrap();
    let open = |ordinal| NvDevice::open(&driver, ordinal, NvOptions::default()).unwrap();
    let (one, other) = (open(0), open(1));
    let managed = Buffer::new(&one.allocator_of(MemoryKind::Managed), 4096, Spec::new()).unwrap();
    let plain = one.buffer(4096, Spec::new()).unwrap();
    stub.forget();
    let there = ManagedPlace::Device(&other);
    for advice in [
        ManagedAdvice::MostlyRead,
        ManagedAdvice::NotMostlyRead,
        ManagedAdvice::PreferredAt(there),
        ManagedAdvice::PreferredAt(ManagedPlace::Host),
        ManagedAdvice::PreferredNowhere,
        ManagedAdvice::UsedBy(there),
        ManagedAdvice::NotUsedBy(ManagedPlace::Host),
    ] {
        one.advise(&managed.view(64, 128).unwrap(), advice).unwrap();
        one.advise(&managed.view(0, 0).unwrap(), advice).unwrap();
    }
    assert_eq!(
        stub.calls_of("cuMemAdvise"),
        ["1 0", "2 0", "3 1", "3 -1", "4 0", "5 1", "6 -1"]
            .map(|words| format!("managed 1+64 128 {words}"))
    );
    let queue = one.new_queue().unwrap();
    queue.prefetch(&managed, there).unwrap();
    queue.prefetch(&managed.view(4096, 0).unwrap(), there).unwrap();
    assert_eq!(stub.calls_of("cuMemPrefetchAsync"), ["managed 1 4096 1 stream 3"]);
    // the queue uses it until it is past that
    assert!(matches!(managed.copy_in(0, &[1]), Err(CoreError::InUse)));
    queue.synchronize().unwrap();
    managed.copy_in(0, &[1]).unwrap();
    let error = queue.prefetch(&plain, ManagedPlace::Host).unwrap_err();
    assert!(matches!(error, Error::Driver { function: "cuMemPrefetchAsync", code: 1, .. }));
    assert!(plain.copy_in(0, &[1]).is_ok());
    drop((managed, plain, queue, one, other, driver));
    assert_eq!(stub.left(), "");
    // where it goes as a whole, nobody sends it
    stub.concurrent(false);
    let device = stub.device().unwrap();
    let managed =
        Buffer::new(&device.allocator_of(MemoryKind::Managed), 4096, Spec::new()).unwrap();
    for outcome in [
        device.advise(&managed, ManagedAdvice::MostlyRead),
        device.queue().prefetch(&managed, ManagedPlace::Host),
    ] {
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "the device does not support managed memory at a place"
        );
    }
}

#[test]
fn copies_of_a_graph_have_rows_that_are_no_longer_than_a_pitch_can_be() {
    let name = "copies_of_a_graph_have_rows_that_are_no_longer_than_a_pitch_can_be";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let mut graph = NvGraph::new(&device).unwrap();
    for (size, pitch) in [(0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0), (5 << 30, 0)] {
        let [from, to] = [1 << 40, 2 << 40].map(|address| {
            // SAFETY: the stub copies nothing.
            let memory = unsafe { ExternalMemory::new(address, size) };
            Buffer::external(device.allocator(), memory, Spec::new()).unwrap()
        });
        stub.forget();
        graph.add_copy(&[], &from, &to).unwrap();
        let call = stub.calls_of("cuGraphAddMemcpyNode").concat();
        assert_eq!(call.matches(&format!(" pitch {pitch} height 1")).count(), 2, "{call}");
        assert!(call.contains(&format!(" size {size}x1x1 ")), "{call}");
    }
    drop((graph, device));
    assert_eq!(stub.left(), "");
}
