//! Launches on a stub of the driver: which are refused, with which words, what they ask the driver for, and what they keep.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use exec_core::{Device, Launch, Program, Scalar, Spec};
use exec_nv::{Argument, CubinLoader, NvLaunch, NvLibrary};
use stub::{KERNELS, fixture, stub};

#[test]
fn launches_that_cannot_be_are_not_made() {
    let Some(stub) = stub("launches_that_cannot_be_are_not_made") else { return };
    let device = stub.device().unwrap();
    let image = device.load_with(&fixture(KERNELS), CubinLoader::Driver).unwrap();
    let refused = |kernel: &str, launch: NvLaunch, arguments: &[Argument<'_>]| {
        let kernel = device.kernel(&image, kernel).unwrap();
        // SAFETY: the stub runs nothing.
        unsafe { kernel.launch(device.queue(), arguments, &launch) }.unwrap_err().to_string()
    };
    let number = Argument::Value(Scalar::U64(0));
    let usual = NvLaunch::new(1, 32);
    for (kernel, launch, expected) in [
        (
            "globals",
            NvLaunch::new(0, 32),
            "a grid of 0x1x1, where 1x1x1 to 2147483647x65535x65535 can be",
        ),
        (
            "globals",
            NvLaunch::new(1, 2048),
            "a block of 2048x1x1, where 1x1x1 to 1024x1024x64 can be",
        ),
        (
            "globals",
            NvLaunch { block: [64, 64, 1], ..usual },
            "4096 threads in a block, where the device allows 1024",
        ),
        (
            "shared_memory",
            NvLaunch::new(1, 256),
            "256 threads in a block, where the kernel allows 128",
        ),
        ("local_memory", NvLaunch::new(1, 64), "a block of 64x1x1, where the kernel takes 32x1x1"),
        (
            "shared_memory",
            NvLaunch { dynamic_shared: 232_000, ..usual },
            "1040 and 232000 bytes of shared memory for a block, where 232448 can be",
        ),
        (
            "globals",
            NvLaunch { cluster: Some([17, 1, 1]), ..usual },
            "a cluster of 17 blocks, where 1 to 16 can be",
        ),
        (
            "globals",
            NvLaunch { cluster: Some([2, 1, 1]), ..NvLaunch::new(3, 32) },
            "a grid of 3x1x1 has no whole clusters of 2x1x1",
        ),
        (
            "globals",
            NvLaunch { cooperative: true, ..NvLaunch::new(132 * 2 + 1, 1024) },
            "265 blocks, where 264 can run at the same time",
        ),
    ] {
        assert_eq!(refused(kernel, launch, &[]), format!("cannot launch: {expected}"), "{kernel}");
    }
    assert_eq!(refused("shared_memory", usual, &[]), "cannot launch: 0 arguments, expected 1");
    assert_eq!(
        refused("local_memory", usual, &[number, number]),
        "cannot launch: argument 1 has 8 bytes, expected 4"
    );
    let buffer = device.buffer(64, Spec::new()).unwrap();
    let freed = buffer.whole();
    drop(buffer);
    assert_eq!(
        refused("shared_memory", usual, &[Argument::Buffer(&freed)]),
        "the buffer was freed"
    );
    assert_eq!(stub.calls_of("cuLaunchKernel"), [""; 0]);
    let error = device.kernel(&image, "no_such").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no kernel no_such: there are subroutine, local_memory, shared_memory, globals, parameters"
    );
}

#[test]
fn what_is_of_one_launch_does_not_stick_and_what_is_contained_does() {
    let Some(stub) = stub("what_is_of_one_launch_does_not_stick_and_what_is_contained_does") else {
        return;
    };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.program(&image, "globals", None).unwrap();
    // SAFETY: the stub runs nothing.
    let call = || unsafe { kernel.call(&[], &[], Launch::ONCE) };
    // `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`: nothing was launched
    stub.fail("cuLaunchKernel", 720, 1);
    call().unwrap_err();
    assert!(device.fault().is_none());
    call().unwrap();
    // `CUDA_ERROR_CONTAINED`: the context is of no use any more
    stub.fail("cuLaunchKernel", 226, 1);
    call().unwrap_err();
    assert!(device.fault().unwrap().to_string().contains("(226)"));
    assert!(call().is_err());
    assert!(device.reset().is_some());
    drop((kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_launch_that_the_driver_refuses_says_what_it_takes_and_what_there_is() {
    let Some(stub) = stub("a_launch_that_the_driver_refuses_says_what_it_takes_and_what_there_is")
    else {
        return;
    };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    let (limits, shared) = (device.properties().max_registers, device.properties().shared_opt_in);
    // the stub says 7 of everything, and that 8 blocks run on each of 132 SMs
    let numbers = format!(
        "; 4 threads of 7 registers in a block, where the driver allows 7 threads and the device has {limits} registers; \
         7 and 1000 bytes of shared memory, where {shared} can be; 3 blocks"
    );
    let cooperative = NvLaunch { cooperative: true, ..NvLaunch::new(1000, 4) };
    let clusters = NvLaunch { cluster: Some([4, 1, 1]), ..NvLaunch::new(8, 4) };
    let plain = NvLaunch { dynamic_shared: 1000, ..NvLaunch::new(3, 4) };
    for (function, code, launch, expected) in [
        ("cuLaunchKernel", 1, plain, numbers.as_str()),
        ("cuLaunchKernel", 701, plain, &numbers),
        (
            "cuLaunchKernel",
            701,
            NvLaunch::new(3, 64),
            "; 64 threads in a block, where the kernel allows 7",
        ),
        (
            "cuLaunchKernel",
            2,
            plain,
            "; 7 bytes of local memory a thread, with up to 1024 threads on each of 132 SMs",
        ),
        ("cuLaunchKernelEx", 720, cooperative, "; 1000 blocks, of which 1056 run at a time"),
        (
            "cuLaunchKernelEx",
            912,
            clusters,
            "; clusters of 4x1x1 blocks, of which 66 run at a time",
        ),
    ] {
        stub.fail(function, code, 1);
        // SAFETY: the stub runs nothing.
        let error = unsafe { kernel.launch(device.queue(), &[], &launch) }.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{function}: ")), "{error}");
        assert!(error.contains(expected) && error.ends_with(&format!(" ({code})")), "{error}");
        assert!(device.fault().is_none());
    }
    let mut graph = exec_nv::NvGraph::new(&device).unwrap();
    stub.fail("cuGraphAddKernelNode_v2", 1, 1);
    // SAFETY: the stub runs nothing.
    let error = unsafe { graph.add_kernel(&[], &kernel, &[], &plain) }.unwrap_err().to_string();
    assert!(error.contains(&numbers), "{error}");
    drop(graph);
    drop((kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn shared_memory_is_asked_for_by_the_sum_of_static_and_dynamic_bytes() {
    let name = "shared_memory_is_asked_for_by_the_sum_of_static_and_dynamic_bytes";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let image = device.load_with(&fixture(KERNELS), CubinLoader::Driver).unwrap();
    let kernel = device.kernel(&image, "shared_memory").unwrap();
    let declared = kernel.kernel().resources.as_ref().unwrap().shared as u32;
    assert_eq!(declared, 1040);
    let buffer = device.buffer(64, Spec::new()).unwrap();
    for dynamic_shared in [(48 << 10) - declared, (48 << 10) - declared + 4, 48 << 10] {
        let launch = NvLaunch { dynamic_shared, ..NvLaunch::new(1, 32) };
        // SAFETY: the stub runs nothing.
        unsafe { kernel.launch(device.queue(), &[Argument::Buffer(&buffer)], &launch) }.unwrap();
    }
    assert_eq!(
        stub.calls_of("cuFuncSetAttribute"),
        ["shared_memory 8 48116", "shared_memory 8 49152"]
    );
    // of PTX the driver knows how much there is: 7 bytes, says the stub
    stub.forget();
    let image = device.load_with(&fixture("cuda/kernels.ptx"), CubinLoader::Driver).unwrap();
    let kernel = device.kernel(&image, "parameters").unwrap();
    assert_eq!(stub.calls_of("cuFuncGetAttribute"), ["1 parameters"]);
    drop((kernel, image, buffer));
}

#[test]
fn programs_of_one_kernel_take_no_shared_memory_from_each_other() {
    let name = "programs_of_one_kernel_take_no_shared_memory_from_each_other";
    let Some(stub) = stub(name) else { return };
    let device = stub.device().unwrap();
    let bytes = fixture(KERNELS);
    let library = NvLibrary::load(&device, &bytes).unwrap();
    let own = device.load_with(&bytes, CubinLoader::Own).unwrap();
    for [one, other] in [
        [&device.load(&bytes).unwrap(); 2],
        [&own; 2],
        // the driver has one function of a library on a device, however often it is asked for
        [&library.on(&device), &library.on(&device)],
    ] {
        stub.forget();
        let [one, other] = [one, other].map(|image| device.kernel(image, "globals").unwrap());
        for (program, dynamic_shared) in [(&one, 100 << 10), (&other, 60 << 10), (&one, 100 << 10)]
        {
            let launch = NvLaunch { dynamic_shared, ..NvLaunch::new(1, 32) };
            // SAFETY: the stub runs nothing.
            unsafe { program.launch(device.queue(), &[], &launch) }.unwrap();
        }
        assert_eq!(stub.calls_of("cuFuncSetAttribute"), ["globals 8 102400"]);
    }
}

#[test]
fn code_that_runs_keeps_its_memory() {
    let Some(stub) = stub("code_that_runs_keeps_its_memory") else { return };
    let device = stub.device().unwrap();
    let image = device.load_with(&fixture(KERNELS), CubinLoader::Own).unwrap();
    let kernel = device.kernel(&image, "globals").unwrap();
    // SAFETY: the stub runs nothing.
    unsafe { kernel.launch(device.queue(), &[], &NvLaunch::new(1, 32)) }.unwrap();
    drop((kernel, image));
    // neither the driver nor the next one who asks gets the memory of code that may run
    assert_eq!(device.allocator().statistics().held, 0);
    assert_eq!(stub.calls_of("cuModuleUnload").len(), 0);
    device.synchronize().unwrap();
    assert!(device.allocator().statistics().held > 0);
    assert_eq!(stub.calls_of("cuModuleUnload").len(), 1);
    drop(device);
    assert_eq!(stub.left(), "");
}

#[test]
fn queued_calls_hold_their_buffers() {
    let Some(stub) = stub("queued_calls_hold_their_buffers") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.program(&image, "shared_memory", None).unwrap();
    let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
    // SAFETY: the stub runs nothing.
    unsafe { kernel.call(&[&buffer], &[], Launch::ONCE) }.unwrap();
    assert!(matches!(buffer.copy_in(0, &[1]), Err(exec_core::Error::InUse)));
    buffer.free().unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 0);
    device.synchronize().unwrap();
    assert_eq!(stub.calls_of("cuMemFree_v2").len(), 1);
    // a long row of calls is not kept for ever
    let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
    for _ in 0..200 {
        // SAFETY: the stub runs nothing.
        unsafe { kernel.call(&[&buffer], &[], Launch::ONCE) }.unwrap();
    }
    assert_eq!(stub.calls_of("cuEventRecord").len(), 200 / 64);
    drop((buffer, kernel, image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn a_call_is_made_whatever_becomes_of_the_mark_behind_it() {
    let Some(stub) = stub("a_call_is_made_whatever_becomes_of_the_mark_behind_it") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.kernel(&image, "shared_memory").unwrap();
    let buffer = device.buffer(64, Spec::new().not_kept()).unwrap();
    // who is told of an error launches once more
    stub.fail("cuEventRecord", 999, 1);
    for _ in 0..64 {
        // SAFETY: the stub runs nothing.
        unsafe {
            kernel.launch(device.queue(), &[Argument::Buffer(&buffer)], &NvLaunch::new(1, 32))
        }
        .unwrap();
    }
    assert_eq!(stub.calls_of("cuEventRecord").len(), 1);
    assert!(matches!(buffer.copy_in(0, &[1]), Err(exec_core::Error::InUse)));
    // the next call has a mark
    let other = device.buffer(64, Spec::new()).unwrap();
    device.queue().copy(&buffer, &other).unwrap();
    assert_eq!(stub.calls_of("cuEventRecord").len(), 2);
    device.synchronize().unwrap();
    buffer.copy_in(0, &[1]).unwrap();
    drop((buffer, other, kernel, image, device));
    assert_eq!(stub.left(), "");
}
