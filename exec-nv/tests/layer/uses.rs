//! Everything of the layer used once.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use crate::other;
use crate::stub::Stub;
use exec_core::{Allocator as _, Buffer, Device as _, Scalar, Spec};
use exec_nv::{
    Access, Argument, ClusterPolicy, CubinLoader, Error, Im2colBox, Im2colWideBox,
    LaunchAttributes, ManagedAdvice, ManagedPlace, MemoryKind, NvDevice, NvGraph, NvLaunch,
    NvLibrary, NvLimit, NvOptions, Swizzle, TensorLayout, TensorType,
};

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) const KERNELS: &str = "cuda/kernels-13.5-sm_90a.cubin";
pub(crate) const USUAL: NvLaunch = NvLaunch::new(4, 32);

/// What a launch can be asked for, all of it.
pub(crate) const ATTRIBUTES: LaunchAttributes = LaunchAttributes {
    programmatic: true,
    priority: Some(-3),
    cluster_policy: Some(ClusterPolicy::LoadBalancing),
};

pub(crate) fn open(stub: &Stub) -> Result<[NvDevice; 2], Error> {
    let driver = stub.driver()?;
    let open = |ordinal| NvDevice::open(&driver, ordinal, NvOptions::default());
    Ok([open(0)?, open(1)?])
}

pub(crate) fn memory(device: &NvDevice, stub: &Stub) -> Result<(), Error> {
    let pool = device.memory_pool()?;
    pool.set_release_threshold(1 << 20)?;
    assert_eq!(pool.release_threshold()?, 1 << 20);
    pool.statistics()?;
    pool.reset_statistics()?;
    pool.trim(4096)?;
    for limit in [NvLimit::Stack, NvLimit::PrintfFifo, NvLimit::MallocHeap] {
        device.set_limit(limit, 2 * device.limit(limit)?)?;
    }
    let piece = device.granularity(true)?.minimum;
    let mut range = device.reserve(4 * piece, 0)?;
    let one = Arc::new(device.physical_memory(piece, true)?);
    range.map(piece, &one)?;
    range.set_access(piece, piece, &[(device, Access::ReadWrite)])?;
    let there = Arc::new(device.import_memory(one.share()?.as_fd(), piece)?);
    range.map(0, &there)?;
    range.unmap(piece)?;
    let buffer = device.buffer(4096, Spec::new())?;
    device.share_memory(&buffer)?;
    device.queue().record_shareable()?.share()?;
    let (memory, mark) = other::names(stub);
    drop(device.open_memory(memory)?);
    device.queue().wait_for_event(&device.open_event(mark)?)?;
    Ok(())
}

pub(crate) fn devices(device: &NvDevice, other: &NvDevice) -> Result<(), Error> {
    device.peer_attributes(other)?;
    device.reach(other)?;
    let (here, there) = (device.buffer(64, Spec::new())?, other.buffer(64, Spec::new())?);
    device.queue().copy(&here, &there)?;
    device.queue().synchronize()?;
    NvDevice::copy(&here, &there)?;
    device.leave(other)
}

pub(crate) fn code(device: &NvDevice) -> Result<(), Error> {
    let library = NvLibrary::load(device, &fixture(KERNELS))?;
    let image = library.on(device);
    drop(library);
    let kernel = device.kernel(&image, "globals")?;
    kernel.occupancy(256, 0)?;
    kernel.best_block(1024)?;
    let launch = NvLaunch { cluster: Some([2, 1, 1]), attributes: ATTRIBUTES, ..USUAL };
    kernel.active_clusters(&launch)?;
    // SAFETY: the stub runs nothing.
    unsafe {
        kernel.launch(device.queue(), &[], &launch)?;
        image.write_variable("counter", &[1, 2, 3, 4])?;
        image.read_variable("counter", &mut [0; 4])?;
    }
    image.set_constant("table", &[0; 4])?;
    let loaded = device.load_with(&fixture(KERNELS), CubinLoader::Driver)?;
    loaded.variable("counter")?;
    device.kernel(&loaded, "parameters")?.attributes()?;
    let ptx = device.load_with(&fixture("cuda/kernels.ptx"), CubinLoader::Driver)?;
    device.kernel(&ptx, "parameters")?;
    Ok(())
}

pub(crate) fn graphs(device: &NvDevice) -> Result<(), Error> {
    let image = device.load_with(&fixture(KERNELS), CubinLoader::Own)?;
    let kernel = device.kernel(&image, "globals")?;
    let (from, to) = (device.buffer(64, Spec::new())?, device.buffer(64, Spec::new())?);
    let mut graph = NvGraph::new(device)?;
    let fill = graph.add_fill(&[], &from, 7)?;
    let copy = graph.add_copy(&[fill], &from, &to)?;
    let join = graph.add_join(&[fill, copy])?;
    let launch = NvLaunch { cooperative: true, ..USUAL };
    // SAFETY: the stub runs nothing.
    let node = unsafe { graph.add_kernel(&[join], &kernel, &[], &launch)? };
    let mut ready = graph.instantiate()?;
    let queue = device.new_queue()?;
    ready.upload(&queue)?;
    // SAFETY: the stub runs nothing.
    unsafe {
        ready.launch(&queue)?;
        ready.set_kernel(node, &kernel, &[], &NvLaunch::new(8, 32))?;
        ready.launch(&queue)?;
    }
    let capture = |launch: &NvLaunch| {
        NvGraph::capture(&queue, |queue| {
            queue.copy(&from, &to)?;
            // SAFETY: the stub runs nothing.
            unsafe {
                for _ in 0..3 {
                    kernel.launch(queue, &[], launch)?;
                }
            }
            Ok(())
        })
    };
    let mut captured = capture(&USUAL)?.instantiate()?;
    captured.update(&capture(&NvLaunch::new(8, 32))?)?;
    queue.synchronize()
}

pub(crate) fn tensors(device: &NvDevice, stub: &Stub) -> Result<(), Error> {
    let buffer = device.buffer(4096, Spec::new().aligned(256))?;
    let layout = TensorLayout::new(TensorType::F16, &[64, 32])?;
    let mut map = device.tensor_map(&buffer, &layout, &[64, 8])?;
    device.move_tensor_map(&mut map, &buffer, &layout)?;
    let images = TensorLayout::new(TensorType::F32, &[16, 8, 4])?;
    let area = Im2colBox { lower: &[-1], upper: &[1], channels: 16, pixels: 32 };
    device.tensor_map_im2col(&buffer, &images, &area)?;
    // as a later device
    stub.be(13000, 2, 100);
    let later = NvDevice::open(device.driver(), 0, NvOptions::default())?;
    let area = Im2colWideBox { lower: -1, upper: 1, channels: 16, pixels: Some(32) };
    later.tensor_map_im2col_wide(&buffer, &images.swizzle(Swizzle::B64), &area)?;
    stub.be(13000, 2, 90);
    Ok(())
}

/// What else the crate calls, or lends to be called.
pub(crate) fn rest(device: &NvDevice) -> Result<(), Error> {
    device.priorities()?;
    device.memory()?;
    let buffer = device.buffer(64, Spec::new().zeroed())?;
    buffer.copy_in(0, &[1; 64])?;
    buffer.copy_out(0, &mut [0; 64])?;
    for kind in [MemoryKind::StreamOrdered, MemoryKind::Pinned, MemoryKind::Managed] {
        let other = Buffer::new(&device.allocator_of(kind), 64, Spec::new())?;
        NvDevice::copy(&buffer, &other)?;
        other.free()?;
    }
    let managed = Buffer::new(&device.allocator_of(MemoryKind::Managed), 4096, Spec::new())?;
    device.advise(&managed, ManagedAdvice::PreferredAt(ManagedPlace::Device(device)))?;
    device.queue().prefetch(&managed.view(64, 128)?, ManagedPlace::Host)?;
    device.queue().synchronize()?;
    drop(managed);
    let host = exec_core::PeerMemory {
        device: exec_core::DeviceId::unique(),
        address: 0x1000,
        size: 64,
        is_host: true,
    };
    let mapped = device.allocator().import(host)?;
    device.allocator().forget(host, mapped);
    let image = device.load_with(&fixture(KERNELS), CubinLoader::Driver)?;
    let kernel = device.kernel(&image, "parameters")?;
    let arguments = [
        Argument::Buffer(&buffer),
        Argument::Value(Scalar::U8(2)),
        Argument::Bytes(&[3; 24]),
        Argument::Value(Scalar::U16(4)),
        Argument::Value(Scalar::F64(1.0)),
    ];
    let launch = NvLaunch { dynamic_shared: 60 << 10, wait: true, ..USUAL };
    // SAFETY: the stub runs nothing.
    unsafe { kernel.launch(device.queue(), &arguments, &launch)? };
    let mark = device.queue().record()?;
    let _ = mark.is_reached();
    mark.wait()?;
    let driver = device.driver();
    let (mut bytes, cubin) = ([0u8; 64], fixture(KERNELS));
    let (stream, address) = (ptr::null_mut(), buffer.address()?);
    let (mut context, mut module) = (ptr::null_mut(), ptr::null_mut());
    let (mut state, mut linked, mut size) = (ptr::null_mut(), ptr::null_mut(), 0);
    // SAFETY: places and sizes are as the functions want them.
    unsafe {
        driver.cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), 64, stream)?;
        driver.cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), address, 64, stream)?;
        driver.cuCtxGetCurrent(&raw mut context)?;
        driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
        let used = driver.cuModuleUnload(module);
        driver.cuMemsetD8_v2(address, 3, 64)?;
        let mut ordered = 0;
        driver.cuMemAllocAsync(&raw mut ordered, 64, stream)?;
        driver.cuMemFreeAsync(ordered, stream)?;
        driver.cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), 64)?;
        driver.cuMemcpyDtoD_v2(address, address, 64)?;
        driver.cuMemcpyPeer(address, context, address, context, 64)?;
        driver.cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, 64)?;
        let (mut graph, mut node) = (ptr::null_mut(), ptr::null_mut());
        driver.cuGraphCreate(&raw mut graph, 0)?;
        let removed = driver
            .cuGraphAddEmptyNode(&raw mut node, graph, ptr::null(), 0)
            .and_then(|()| driver.cuGraphDestroyNode(node));
        driver.cuGraphDestroy(graph)?;
        removed?;
        driver.cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &raw mut state)?;
        let (data, none) = (cubin.as_ptr().cast_mut().cast(), ptr::null_mut());
        let values = ptr::null_mut();
        let name = c"one".as_ptr();
        let linked = driver
            .cuLinkAddData_v2(state, 1, data, cubin.len(), name, 0, none, values)
            .and_then(|()| driver.cuLinkComplete(state, &raw mut linked, &raw mut size));
        driver.cuLinkDestroy(state)?;
        linked.and(used)
    }
}

pub(crate) fn everything(stub: &Stub) -> Result<(), Error> {
    stub.be(13000, 2, 90);
    let [device, other] = open(stub)?;
    memory(&device, stub)?;
    devices(&device, &other)?;
    code(&device)?;
    graphs(&device)?;
    tensors(&device, stub)?;
    rest(&device)
}
