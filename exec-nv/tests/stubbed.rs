//! The executor on a stub of the driver: what it asks the driver for, and that nothing is lost whatever fails.
#![cfg(feature = "driver")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod stub;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use exec_core::{Buffer, Device, Launch, Program, Scalar, Spec};
use exec_nv::own::Plan;
use exec_nv::{
    Argument, CubinLoader, Driver, Error, MemoryKind, NvDevice, NvLaunch, NvOptions, QueueOptions,
};
use stub::{KERNELS, Stub, fixture, stub};

#[test]
fn no_driver_is_an_error_with_a_name() {
    let path = Path::new("/there/is/no/libcuda.so.1");
    // SAFETY: not there.
    let error = unsafe { Driver::open_at(path) }.unwrap_err();
    assert!(error.to_string().starts_with("no CUDA driver library; /there/is/no/libcuda.so.1: "));
    // SAFETY: a library without constructors.
    let error = unsafe { Driver::open_at(Path::new("libm.so.6")) }.unwrap_err();
    assert_eq!(error.to_string(), "the driver is too old: it has no cuDriverGetVersion");
    let Some(stub) = stub("no_driver_is_an_error_with_a_name") else { return };
    stub.be(11080, 1, 90);
    assert_eq!(stub.driver().unwrap_err().to_string(), "the driver has CUDA 11.8, 12.0 is needed");
    stub.be(13000, -1, 90);
    assert_eq!(stub.driver().unwrap_err().to_string(), "the driver knows no GPU");
    stub.be(13000, 2, 90);
    let driver = stub.driver().unwrap();
    let error = NvDevice::open(&driver, 2, NvOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "no device 2: there are 2");
    stub.fail("cuInit", 999, 1);
    assert_eq!(
        stub.driver().unwrap_err().to_string(),
        "cuInit: CUDA_ERROR_STUB, as the test wants it (999)"
    );
    stub.fail("cuInit", 12345, 1);
    assert_eq!(
        stub.driver().unwrap_err().to_string(),
        "cuInit: an error that the driver has no name for (12345)"
    );
    assert_eq!(stub.left(), "");
}

#[test]
fn properties_are_the_drivers() {
    let Some(stub) = stub("properties_are_the_drivers") else { return };
    let device = stub.device().unwrap();
    let found = device.properties();
    assert_eq!((found.sm, found.sm_count, found.shared_opt_in), (90, 132, 232_448));
    assert_eq!((found.max_block, found.driver.to_string()), ([1024, 1024, 64], "13.0".into()));
    assert_eq!(
        (device.name(), device.memory().unwrap().total),
        ("Stub of a GPU 0".into(), 1 << 30)
    );
    drop(device);
    assert_eq!(stub.left(), "");
}

/// Everything once: memory of every kind, an image, a launch, copies.
fn scenario(stub: &Stub, loader: CubinLoader, image: &[u8]) -> Result<(), Error> {
    let device = stub.device()?;
    let image = device.load_with(image, loader)?;
    let kernel = device.kernel(&image, "parameters")?;
    kernel.attributes()?;
    let buffer = device.buffer(64, Spec::new().zeroed())?;
    buffer.copy_in(0, &[1; 64])?;
    for kind in [MemoryKind::StreamOrdered, MemoryKind::Pinned, MemoryKind::Managed] {
        let other = Buffer::new(&device.allocator_of(kind), 64, Spec::new())?;
        NvDevice::copy(&buffer, &other)?;
        other.free()?;
    }
    let host = vec![0u8; 4096];
    // SAFETY: `host` outlives the buffer, and nobody else uses it.
    let external = unsafe { exec_core::ExternalMemory::new(host.as_ptr().addr() as u64, 4096) };
    drop(Buffer::external(device.allocator(), external, Spec::new().aligned(1))?);
    let arguments = [
        Argument::Buffer(&buffer),
        Argument::Value(Scalar::U8(2)),
        Argument::Bytes(&[3; 24]),
        Argument::Value(Scalar::U16(0x0504)),
        Argument::Value(Scalar::F64(1.0)),
    ];
    let launch = NvLaunch { dynamic_shared: 60 << 10, wait: true, ..NvLaunch::new(4, 32) };
    // SAFETY: the stub runs nothing.
    unsafe {
        kernel.launch(device.queue(), &arguments, &launch)?;
        let clustered = NvLaunch { cluster: Some([2, 1, 1]), cooperative: true, ..launch };
        let queue = device.new_queue()?;
        queue.wait_for(device.queue())?;
        let start = queue.record()?;
        let pinned = device.buffer(buffer.size(), Spec::new().host_visible())?;
        queue.copy(&buffer, &pinned)?;
        let end = queue.record()?;
        device.queue().wait_for_event(&end)?;
        end.wait()?;
        end.since(&start)?;
        device.priorities()?;
        kernel.launch(&queue, &arguments, &NvLaunch { wait: false, ..clustered })?;
        queue.synchronize()?;
    }
    device.synchronize()?;
    buffer.copy_out(0, &mut [0; 64])?;
    Ok(())
}

/// What gives things back. An error of it has nobody to be told, or comes too late.
const RELEASES: [&str; 8] = [
    "cuCtxSetCurrent",
    "cuDevicePrimaryCtxRelease_v2",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuModuleUnload",
];

#[test]
fn whatever_fails_is_named_and_nothing_is_lost() {
    let Some(stub) = stub("whatever_fails_is_named_and_nothing_is_lost") else { return };
    let (cubin, ptx) = (fixture(KERNELS), fixture("cuda/kernels.ptx"));
    let mut paths = 0;
    for (loader, image) in
        [(CubinLoader::Driver, &cubin), (CubinLoader::Own, &cubin), (CubinLoader::Driver, &ptx)]
    {
        stub.forget();
        scenario(&stub, loader, image).unwrap();
        assert_eq!(stub.left(), "");
        let mut counts = BTreeMap::new();
        for line in stub.calls().lines() {
            *counts.entry(line.split(' ').next().unwrap().to_owned()).or_insert(0) += 1;
        }
        for (function, count) in counts {
            // the first, the last, and some between
            for at in (1..=count).step_by(1 + count as usize / 8).chain([count]) {
                stub.forget();
                // `CUDA_ERROR_INVALID_VALUE` says of parameters that there are no more: something else
                stub.fail(&function, 801, at);
                let outcome = scenario(&stub, loader, image);
                let label = format!("{function}, call {at} of {count}, {loader:?}");
                match outcome {
                    Err(error) => {
                        assert!(error.to_string().contains(&function), "{label}: {error}")
                    }
                    // a queue that is dropped waits, and tells nobody
                    Ok(()) if function == "cuStreamSynchronize" => {}
                    // an error that is no error, of a parameter that is not there
                    Ok(()) if function.starts_with("cuGetError") => {}
                    Ok(()) => assert!(RELEASES.contains(&&*function), "{label} was not noticed"),
                }
                if RELEASES.contains(&&*function) {
                    // what was not taken back is all that is left; the process cannot do more
                    assert!(stub.left().lines().count() <= 1, "{label}: {}", stub.left());
                    stub.clear();
                } else {
                    assert_eq!(stub.left(), "", "{label}");
                }
                paths += 1;
            }
        }
    }
    assert!(paths > 100, "{paths} paths");
}

#[test]
fn parameters_are_where_the_cubin_says() {
    let Some(stub) = stub("parameters_are_where_the_cubin_says") else { return };
    for loader in [CubinLoader::Driver, CubinLoader::Own] {
        stub.forget();
        scenario(&stub, loader, &fixture(KERNELS)).unwrap();
        let [line] = <[String; 1]>::try_from(stub.calls_of("cuLaunchKernel")).unwrap();
        let bytes = "03".repeat(24);
        let (head, parameters) = line.split_once(" 0:(memory ").unwrap();
        assert_eq!(head, "parameters 4x1x1 32x1x1 61440 stream 1");
        let (_, rest) = parameters.split_once(") ").unwrap();
        assert_eq!(rest, format!("8:02 12:{bytes} 36:0405 40:000000000000f03f"), "{loader:?}");
        let [line] = <[String; 1]>::try_from(stub.calls_of("cuLaunchKernelEx")).unwrap();
        assert!(
            line.starts_with("parameters 4x1x1 32x1x1 61440 stream 3 attribute 2 cluster 2x1x1 0:"),
            "{line}"
        );
        // more than 48 KiB are asked for once
        assert_eq!(stub.calls_of("cuFuncSetAttribute"), ["parameters 8 61440"]);
    }
}

#[test]
fn what_a_kernel_did_sticks_until_reset() {
    let Some(stub) = stub("what_a_kernel_did_sticks_until_reset") else { return };
    let device = stub.device().unwrap();
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.program(&image, "globals", None).unwrap();
    let buffer = device.buffer(64, Spec::new()).unwrap();
    stub.fail("cuEventSynchronize", 700, 1);
    // SAFETY: the stub runs nothing.
    let call = |launch: Launch| unsafe { kernel.call(&[], &[], launch) };
    let words = "the device has failed: cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS, as the test wants it (700)";
    assert_eq!(call(Launch::ONCE.waiting()).unwrap_err().to_string(), words);
    assert_eq!(call(Launch::ONCE).unwrap_err().to_string(), words);
    assert_eq!(device.buffer(64, Spec::new()).unwrap_err().to_string(), words);
    assert_eq!(buffer.copy_in(0, &[1]).unwrap_err().to_string(), words);
    assert_eq!(device.synchronize().unwrap_err().to_string(), words);
    assert_eq!(device.fault().unwrap().to_string(), words);
    assert_eq!(device.reset().unwrap().to_string(), words);
    // what was there is gone; it is not given back a second time
    drop((buffer, kernel, image));
    assert!(device.fault().is_none() && device.reset().is_none());
    // and the device works
    let image = device.load(&fixture(KERNELS)).unwrap();
    let kernel = device.program(&image, "globals", None).unwrap();
    // SAFETY: the stub runs nothing.
    unsafe { kernel.call(&[], &[], Launch::ONCE.waiting()) }.unwrap();
    assert_eq!(stub.calls_of("cuStreamCreateWithPriority").len(), 2);
    drop((kernel, image));
    drop(device);
    assert_eq!(stub.left(), "");
}

#[test]
fn the_drivers_library_is_never_unloaded() {
    let Some(stub) = stub("the_drivers_library_is_never_unloaded") else { return };
    // the stub itself is open as long as this test
    let path = stub.folder().join("libcuda-copy.so.1");
    std::fs::copy(stub.path(), &path).unwrap();
    {
        // SAFETY: the stub has functions of these types.
        let driver = Arc::new(unsafe { Driver::open_at(&path) }.unwrap());
        NvDevice::open(&driver, 0, NvOptions::default()).unwrap();
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(
        maps.contains(path.to_str().unwrap()),
        "code that threads of the driver may run is gone"
    );
}

#[test]
fn copies_go_through_queues_of_every_sort() {
    let Some(stub) = stub("copies_go_through_queues_of_every_sort") else { return };
    let device = stub.device().unwrap();
    let [last, first] = device.priorities().unwrap();
    assert_eq!([last, first], [0, -5]);
    let options = QueueOptions { beside_default: true, priority: first };
    let queue = device.new_queue_with(options).unwrap();
    assert_eq!(stub.calls_of("cuStreamCreateWithPriority"), ["0 0", "1 -5"]);
    let host = device.buffer(256, Spec::new().host_visible()).unwrap();
    host.host_mut().unwrap().fill(7);
    let there = device.buffer(256, Spec::new()).unwrap();
    let start = queue.record().unwrap();
    queue.copy(&host, &there).unwrap();
    let end = queue.record().unwrap();
    assert_eq!(stub.calls_of("cuMemcpyAsync"), ["memory 1 pinned 1 256 stream 2"]);
    // neither side can be touched until the queue is past it
    assert!(matches!(host.host_mut(), Err(exec_core::Error::InUse)));
    let mut bytes = [0; 256];
    assert!(matches!(there.copy_out(0, &mut bytes), Err(exec_core::Error::InUse)));
    device.queue().wait_for_event(&end).unwrap();
    assert!(end.is_reached());
    end.wait().unwrap();
    assert_eq!(end.since(&start).unwrap().as_micros(), 1500);
    queue.synchronize().unwrap();
    there.copy_out(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 256]);
    let short = device.buffer(128, Spec::new()).unwrap();
    assert!(queue.copy(&host, &short).is_err());
    drop((host, there, short, start, end, queue, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn the_image_for_the_device_is_taken_from_any_file() {
    let Some(stub) = stub("the_image_for_the_device_is_taken_from_any_file") else { return };
    let mut found = Vec::new();
    let files = [
        "k75.cubin",
        "k80.cubin",
        "k90a.cubin",
        "k.ptx",
        "none.fatbin",
        "lz4.fatbin",
        "zlib.fatbin",
        "zstd.fatbin",
        "concat.fatbin",
        "suffixes.fatbin",
        "packager-22.bin",
        "offloading.o",
        "whole.o",
        "libt.so",
        "bundle.hipfb",
        "host.c",
    ];
    for (sm, file) in [75, 80].into_iter().flat_map(|sm| files.map(|file| (sm, file))) {
        stub.be(13000, 1, sm);
        let device = stub.device().unwrap();
        let bytes = fixture(&format!("fatbin/{file}"));
        let names = exec_nv::KernelImage::find(&bytes, device.target(), None).and_then(|images| {
            let first = images.into_iter().next().unwrap();
            let kernels = first.kernels()?;
            let image = device.load_with(&bytes, CubinLoader::Driver)?;
            device.kernel(&image, kernels.first().unwrap())?;
            let kind =
                if matches!(first, exec_nv::KernelImage::Cubin(_)) { "cubin" } else { "PTX" };
            Ok(format!("{kind}: {}", kernels.join(" ")))
        });
        found.push(format!("sm_{sm}: {file}: {}", names.unwrap_or_else(|error| error.to_string())));
    }
    println!("{}", found.join("\n"));
    assert_eq!(found.join("\n"), include_str!("selection.txt").trim_end());
    assert_eq!(stub.left(), "");
}

#[test]
fn the_own_loader_puts_the_relocated_image_on_the_device() {
    let Some(stub) = stub("the_own_loader_puts_the_relocated_image_on_the_device") else { return };
    let device = stub.device().unwrap();
    let cubin = fixture(KERNELS);
    let image = device.load_with(&cubin, CubinLoader::Own).unwrap();
    assert_eq!(stub.calls_of("cuModuleLoadDataEx"), [""; 0], "the driver has no part in it");
    let plan = Plan::of(&cubin).unwrap();
    let (offset, size) = plan.variable("counter").unwrap();
    let (address, found) = image.variable("counter").unwrap();
    assert_eq!(found, size);
    let base = address - offset;
    let expected = plan.write(base).unwrap();
    // SAFETY: device memory of the stub is memory of the process, and as large.
    let bytes = unsafe {
        let start = core::ptr::with_exposed_provenance::<u8>(base as usize);
        core::slice::from_raw_parts(start, expected.len())
    };
    assert_eq!(bytes, expected);
    // a shell for each kernel, once
    for _ in 0..2 {
        device.kernel(&image, "globals").unwrap();
        device.kernel(&image, "shared_memory").unwrap();
    }
    assert_eq!(stub.calls_of("cuModuleLoadDataEx").len(), 2);
    assert_eq!(image.variable("no").unwrap_err().to_string(), "no variable no");
    let ptx = device.load_with(&fixture("cuda/kernels.ptx"), CubinLoader::Own).unwrap_err();
    assert_eq!(ptx.to_string(), "own loader: PTX, which takes the driver's loader");
    drop((image, device));
    assert_eq!(stub.left(), "");
}

#[test]
fn memory_of_several_kinds_and_devices() {
    let Some(stub) = stub("memory_of_several_kinds_and_devices") else { return };
    stub.be(13000, 2, 90);
    let driver = stub.driver().unwrap();
    let open = |ordinal| NvDevice::open(&driver, ordinal, NvOptions::default()).unwrap();
    let (one, other) = (open(0), open(1));
    let pinned = one.buffer(256, Spec::new().host_visible()).unwrap();
    pinned.host_mut().unwrap().fill(7);
    let far = other.buffer(256, Spec::new()).unwrap();
    NvDevice::copy(&pinned, &far).unwrap();
    let copies = stub.calls_of("cuMemcpyPeerAsync");
    assert_eq!(copies, ["memory 1 context 2 pinned 1 context 1 256 stream 3"]);
    let mut bytes = [0; 256];
    far.copy_out(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 256]);
    assert!(far.host().is_err(), "device memory is not the host's");
    // a program of one device gets memory of the other through its own allocator
    let mapped = far.map_on(one.allocator()).unwrap();
    assert_eq!(stub.calls_of("cuCtxEnablePeerAccess").len(), 1);
    drop(mapped);
    let short = one.buffer(128, Spec::new()).unwrap();
    assert!(matches!(
        NvDevice::copy(&short, &far),
        Err(Error::Core(exec_core::Error::Sizes { .. }))
    ));
    let huge = one.buffer(1 << 40, Spec::new());
    assert!(matches!(huge, Err(exec_core::Error::OutOfMemory { size }) if size == 1 << 40));
    let aligned = one.buffer(64, Spec::new().aligned(1 << 40));
    assert!(matches!(aligned, Err(exec_core::Error::Alignment { .. })));
    drop((pinned, far, short, one, other));
    drop(Arc::clone(&driver));
    assert_eq!(stub.left(), "");
}
