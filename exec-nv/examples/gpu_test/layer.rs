//! What users of such a layer have elsewhere, for real: graphs, attributes of launches, libraries, marks, occupancy, NVRTC, tensor maps.

use exec_core::{Buffer, Device as _, LruAllocator, Scalar, Spec};
use exec_nv::{
    Argument, ClusterPolicy, Compile, CubinLoader, LaunchAttributes, NvAllocator, NvGraph,
    NvLaunch, NvLibrary, NvQueue, Nvrtc, QueueOptions, TensorLayout, TensorType,
};

use crate::bench::{Bench, CUBIN, Failure, Outcome};
use crate::facts::KERNELS;
use crate::kernels::{Numbers as _, cluster_neighbours, compare, put, take, vector_add};
use crate::trampoline::target;

/// Numbers of a vector here, and how they are added.
const COUNT: i32 = 1000;
const ADD: NvLaunch = NvLaunch::new(4, 256);

type Memory = Buffer<LruAllocator<NvAllocator>>;

/// What `vector_add` takes.
fn sum_of<'a>(x: &'a Memory, y: &'a Memory, sum: &'a Memory) -> [Argument<'a>; 4] {
    let buffers = [x, y, sum].map(|buffer| Argument::Buffer(buffer));
    let [x, y, sum] = buffers;
    [x, y, sum, Argument::Value(Scalar::I32(COUNT))]
}

/// Graphs that are built, changed, captured and updated: `sum = x + copy of x`, by code of both loaders.
pub(crate) fn graphs(bench: &Bench) -> Outcome {
    let device = &bench.device;
    let numbers: Vec<f32> = (0..COUNT).map(|index| index as f32 * 0.5).collect();
    let doubled: Vec<f32> = numbers.iter().map(|number| 2.0 * number).collect();
    for loader in [CubinLoader::Driver, CubinLoader::Own] {
        let image = bench.load(CUBIN, loader)?;
        let kernel = device.kernel(&image, "vector_add")?;
        let wrong = vec![-1f32; numbers.len()];
        let (x, y) = (put(device, &numbers)?, put(device, &wrong)?);
        let (sum, other) = (put(device, &wrong)?, put(device, &wrong)?);
        let queue = device.new_queue()?;
        let checked = |what: &str, memory: &Memory| -> Result<(), Failure> {
            queue.synchronize()?;
            let found = compare(&take::<f32>(memory)?, &doubled);
            found.map(drop).map_err(|error| format!("{loader:?}, {what}: {error}").into())
        };
        let mut graph = NvGraph::new(device)?;
        let fill = graph.add_fill(&[], &y, 0x7f)?;
        let copy = graph.add_copy(&[fill], &x, &y)?;
        let join = graph.add_join(&[copy])?;
        let [_, first] = device.priorities()?;
        let attributes = LaunchAttributes { priority: Some(first), ..LaunchAttributes::NONE };
        let launch = NvLaunch { attributes, ..ADD };
        // SAFETY: the kernel is ours, and gets what it takes.
        let node = unsafe { graph.add_kernel(&[join], &kernel, &sum_of(&x, &y, &sum), &launch)? };
        let mut ready = graph.instantiate()?;
        ready.upload(&queue)?;
        // SAFETY: as above.
        unsafe { ready.launch(&queue)? };
        checked("built", &sum)?;
        // SAFETY: as above.
        unsafe {
            ready.set_kernel(node, &kernel, &sum_of(&x, &y, &other), &ADD)?;
            ready.launch(&queue)?;
        }
        checked("with another argument", &other)?;
        let other_queue = device.new_queue()?;
        let calls = |from: &Memory, to: &Memory| {
            NvGraph::capture(&queue, |queue: &NvQueue| {
                queue.copy(from, to)?;
                other_queue.wait_for(queue)?;
                // SAFETY: as above.
                unsafe { kernel.launch(&other_queue, &sum_of(from, to, &sum), &ADD)? };
                queue.wait_for(&other_queue)
            })
        };
        for memory in [&y, &sum, &other] {
            memory.copy_in(0, &f32::to_bytes(&wrong))?;
        }
        let mut ready = calls(&x, &y)?.instantiate()?;
        // SAFETY: as above.
        unsafe { ready.launch(&queue)? };
        checked("captured", &sum)?;
        sum.copy_in(0, &f32::to_bytes(&wrong))?;
        ready.update(&calls(&x, &other)?)?;
        // SAFETY: as above.
        unsafe { ready.launch(&queue)? };
        checked("updated", &sum)?;
    }
    Ok("built, changed, captured over two queues and updated, both loaders".into())
}

/// Launches with each attribute: what the kernels compute is the same.
pub(crate) fn launch_attributes(bench: &Bench) -> Outcome {
    if bench.device.target().sm < 90 {
        return Ok("left out: clusters and programmatic launches from sm_90 on".into());
    }
    let device = &bench.device;
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    let kernel = device.kernel(&image, "cluster_neighbours")?;
    let [least, greatest] = device.priorities()?;
    let some = LaunchAttributes::NONE;
    let all = [
        LaunchAttributes { programmatic: true, ..some },
        LaunchAttributes { priority: Some(greatest), ..some },
        LaunchAttributes { cluster_policy: Some(ClusterPolicy::Spread), ..some },
        LaunchAttributes { cluster_policy: Some(ClusterPolicy::LoadBalancing), ..some },
    ];
    for attributes in all {
        let out = put(device, &[0i32; 8])?;
        let launch =
            NvLaunch { cluster: Some([2, 1, 1]), attributes, wait: true, ..NvLaunch::new(8, 32) };
        // SAFETY: the kernel is ours, and gets what it takes.
        let done = unsafe { kernel.launch(device.queue(), &[Argument::Buffer(&out)], &launch) };
        done.map_err(|error| format!("{attributes:?}: {error}"))?;
        compare(&take(&out)?, &[101, 100, 103, 102, 105, 104, 107, 106])
            .map_err(|error| format!("{attributes:?}: {error}"))?;
    }
    cluster_neighbours(device, &image)?;
    Ok(format!("programmatic, priority (of {least} to {greatest}), both policies of clusters"))
}

/// A library of the driver's: one load, code and variables by their names.
pub(crate) fn library(bench: &Bench) -> Outcome {
    let device = &bench.device;
    let library = NvLibrary::load(device, &bench.read(CUBIN)?)?;
    let image = library.on(device);
    drop(library);
    vector_add(device, &image)?;
    let mut before = [0; 4];
    // SAFETY: nothing runs that uses the variable.
    unsafe {
        image.read_variable("counter", &mut before)?;
        image.write_variable("counter", &40i32.to_ne_bytes())?;
    }
    let out = put(device, &[0i32; 2])?;
    let kernel = device.kernel(&image, "variables")?;
    let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
    // SAFETY: the kernel is ours, and gets what it takes.
    unsafe { kernel.launch(device.queue(), &[Argument::Buffer(&out)], &launch)? };
    let found = take::<i32>(&out)?;
    if !found.contains(&40) && !found.contains(&41) {
        return Err(format!("the counter was set to 40, and the kernel gives {found:?}").into());
    }
    Ok(format!("counter was {}, and {found:?} after 40", i32::from_ne_bytes(before)))
}

/// Marks: whether they are reached, and the time between them; queues of every sort.
pub(crate) fn events(bench: &Bench) -> Outcome {
    let device = &bench.device;
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    let kernel = device.kernel(&image, "nothing")?;
    let [least, greatest] = device.priorities()?;
    let mut words = Vec::new();
    for (beside_default, priority) in [(false, 0), (true, least), (true, greatest)] {
        let queue = device.new_queue_with(QueueOptions { beside_default, priority })?;
        let start = queue.record()?;
        for _ in 0..100 {
            // SAFETY: the kernel does nothing.
            unsafe { kernel.launch(&queue, &[], &NvLaunch::new(1, 1))? };
        }
        let end = queue.record()?;
        device.queue().wait_for_event(&end)?;
        device.queue().synchronize()?;
        end.wait()?;
        if !(end.is_reached() && start.is_reached()) {
            return Err("a mark that was waited for is not reached".into());
        }
        words.push(format!("{:.0?} on priority {priority}", end.since(&start)?));
    }
    Ok(format!("100 launches between two marks: {}", words.join(", ")))
}

/// How many blocks an SM runs at a time, by the driver and by us: every kernel, several blocks.
pub(crate) fn occupancy(bench: &Bench) -> Outcome {
    /// Differences that are shown.
    const SHOWN: usize = 6;
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    let (mut count, mut unknown, mut differences) = (0, 0, Vec::new());
    for name in KERNELS {
        let kernel = bench.device.kernel(&image, name)?;
        for threads in [1, 32, 33, 96, 128, 256, 500, 512, 768, 1024] {
            for shared in [0, 1000, 16 << 10, 40 << 10] {
                let found = kernel.occupancy(threads, shared)?;
                count += 1;
                match found.image {
                    None => unknown += 1,
                    Some(_) if found.agree() => {}
                    Some(image) => differences.push(format!(
                        "{name} of {threads} threads and {shared} bytes {}, not {}",
                        found.driver, image.blocks
                    )),
                }
            }
        }
    }
    if let Some(first) = differences.get(..differences.len().min(SHOWN)).filter(|it| !it.is_empty())
    {
        let all = differences.len();
        return Err(format!("{all} of {count} differ: {}", first.join("; ")).into());
    }
    Ok(format!("{count} asked, {unknown} that only the driver knows, 0 differences"))
}

/// A source of this device's own, compiled when NVRTC is there.
pub(crate) fn nvrtc(bench: &Bench) -> Outcome {
    let nvrtc = match Nvrtc::open() {
        Ok(nvrtc) => nvrtc,
        Err(error) => return Ok(format!("left out: {error}")),
    };
    let device = &bench.device;
    let source =
        "template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }";
    let sm = device.target().sm;
    let request = Compile { sm, kernels: &["scale<int>"], ..Compile::default() };
    let compiled = nvrtc.compile(source, &request)?;
    let name = compiled.names.first().ok_or("no name")?;
    let image = device.load_with(&compiled.code, CubinLoader::Driver)?;
    let kernel = device.kernel(&image, name)?;
    let numbers: Vec<i32> = (0..32).collect();
    let memory = put(device, &numbers)?;
    let arguments = [Argument::Buffer(&memory), Argument::Value(Scalar::I32(-3))];
    let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 32) };
    // SAFETY: the kernel is ours, and gets what it takes.
    unsafe { kernel.launch(device.queue(), &arguments, &launch)? };
    let expected: Vec<i32> = numbers.iter().map(|number| -3 * number).collect();
    let right = compare(&take(&memory)?, &expected)?;
    Ok(format!("NVRTC {}: {right}", nvrtc.version()?))
}

/// The module with the kernel that wants a tensor map, which no device before sm_90 has.
pub(crate) const BOX_OF_TENSOR: &str = include_str!("box_of_tensor.ptx");

/// The module with the kernel that asserts.
pub(crate) fn asserts(sm: u32) -> String {
    include_str!("asserts.ptx").replace("sm_SM", &target(sm))
}

/// Boxes of a tensor, one of them half outside, through shared memory.
pub(crate) fn tensor_map(bench: &Bench) -> Outcome {
    let (device, sm) = (&bench.device, bench.device.target().sm);
    if sm < 90 {
        return Ok("left out: tensor maps from sm_90 on".into());
    }
    let image = device.load_with(BOX_OF_TENSOR.as_bytes(), CubinLoader::Driver)?;
    let kernel = device.kernel(&image, "box_of_tensor")?;
    let (width, height) = (64i32, 24i32);
    let numbers: Vec<i32> = (0..width * height).collect();
    let memory = device.buffer(4 * numbers.len() as u64, Spec::new().aligned(256))?;
    memory.copy_in(0, &i32::to_bytes(&numbers))?;
    let layout = TensorLayout::new(TensorType::I32, &[width as u64, height as u64])?;
    // a map of other memory, moved to this
    let elsewhere = device.buffer(memory.size(), Spec::new().aligned(256).zeroed())?;
    let mut map = device.tensor_map(&elsewhere, &layout, &[16, 8])?;
    device.move_tensor_map(&mut map, &memory, &layout)?;
    for (x, y) in [(0, 0), (16, 8), (52, 20), (-4, -2)] {
        let out = put(device, &[-1i32; 128])?;
        let place = [x, y].map(|number| Argument::Value(Scalar::I32(number)));
        let [at_x, at_y] = place;
        let arguments = [map.argument(), Argument::Buffer(&out), at_x, at_y];
        let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 128) };
        // SAFETY: the kernel is ours, and gets what it takes.
        unsafe { kernel.launch(device.queue(), &arguments, &launch)? };
        let of_box = |index: i32| {
            let (x, y) = (x + index % 16, y + index / 16);
            let is_inside = (0..width).contains(&x) && (0..height).contains(&y);
            if is_inside { y * width + x } else { 0 }
        };
        let expected: Vec<i32> = (0..128).map(of_box).collect();
        compare(&take(&out)?, &expected).map_err(|error| format!("box at {x}, {y}: {error}"))?;
    }
    Ok("4 boxes, two of them partly outside".into())
}

/// A kernel's assert: its name, that it sticks, and that a reset helps.
pub(crate) fn assertion(bench: &Bench) -> Outcome {
    let device = &bench.device;
    let text = asserts(device.target().sm);
    let image = device.load_with(text.as_bytes(), CubinLoader::Driver)?;
    let kernel = device.kernel(&image, "asserts")?;
    let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 64) };
    // SAFETY: the kernel is ours, and gets what it takes.
    let run = |number| unsafe {
        kernel.launch(device.queue(), &[Argument::Value(Scalar::U32(number))], &launch)
    };
    run(64).map_err(|error| format!("what holds: {error}"))?;
    let error = match run(7) {
        Ok(_) => return Err("an assert that does not hold was no error".into()),
        Err(error) => error,
    };
    if error.fault() != Some(exec_nv::KernelFault::Assert) {
        return Err(format!("{error} is no assert's").into());
    }
    drop((kernel, image));
    device.reset();
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    vector_add(device, &image).map_err(|error| format!("after a reset: {error}"))?;
    Ok(format!("sticks, and a reset helps: {error}"))
}
