//! Kernels of `fixtures/cuda/gpu.cu` and its neighbours: what they compute, beside what the processor computes.

use core::fmt::Debug;
use std::sync::Arc;

use exec_core::{Allocator, Buffer, Device as _, Scalar, Spec};
use exec_nv::{CubinLoader, MemoryKind, NvLaunch};
use fatbin::CudaVersion;

use crate::bench::{Bench, CUBIN, Failure, Outcome, PTX};
use crate::runs::{Argument, Runs};

/// The first version of CUDA with more than 4 KiB of parameters is 12.1; the files here have such kernels from this one on.
const LARGE_PARAMETERS: CudaVersion = CudaVersion::new(12, 4);

/// Numbers as they are in memory.
pub(crate) trait Numbers: Sized {
    fn to_bytes(numbers: &[Self]) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! numbers {
    ($($type:ident)*) => {
        $(impl Numbers for $type {
            fn to_bytes(numbers: &[Self]) -> Vec<u8> {
                numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
            }
            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|&bytes| Self::from_ne_bytes(bytes)).collect()
            }
        })*
    };
}
numbers!(i32 f32 f64);

pub(crate) fn put<D: Runs, T: Numbers>(
    device: &D,
    numbers: &[T],
) -> Result<Buffer<D::Allocator>, Failure> {
    let bytes = T::to_bytes(numbers);
    let memory = device.buffer(bytes.len() as u64, Spec::new())?;
    memory.copy_in(0, &bytes)?;
    Ok(memory)
}

pub(crate) fn take<T: Numbers>(memory: &Buffer<impl Allocator>) -> Result<Vec<T>, Failure> {
    let mut bytes = vec![0; memory.size() as usize];
    memory.copy_out(0, &mut bytes)?;
    Ok(T::from_bytes(&bytes))
}

/// Launches a kernel and waits.
pub(crate) fn launch<D: Runs>(
    device: &D,
    image: &Arc<D::Image>,
    kernel: &str,
    arguments: &[Argument<'_, D::Allocator>],
    launch: NvLaunch,
) -> Result<(), Failure> {
    device.run(image, kernel, arguments, &NvLaunch { wait: true, ..launch })
}

/// Says how many numbers are right, or shows the first that is not.
pub(crate) fn compare<T: PartialEq + Debug>(found: &[T], expected: &[T]) -> Outcome {
    let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
    match wrong {
        _ if found.len() != expected.len() => {
            Err(format!("{} numbers, expected {}", found.len(), expected.len()).into())
        }
        Some(at) => {
            let (found, expected) = (found.get(at), expected.get(at));
            Err(format!("number {at} is {found:?}, expected {expected:?}").into())
        }
        None => Ok(format!("{} numbers are right", found.len())),
    }
}

fn int<'a, A: Allocator>(value: i32) -> Argument<'a, A> {
    Argument::Value(Scalar::I32(value))
}

pub(crate) fn vector_add<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let count = 100_003;
    let a: Vec<f32> = (0..count).map(|index| index as f32 * 0.5).collect();
    let b: Vec<f32> = (0..count).map(|index| (index % 97) as f32).collect();
    let memories = [put(device, &a)?, put(device, &b)?, put(device, &vec![0f32; a.len()])?];
    let [x, y, sum] = &memories;
    let arguments = [Argument::Buffer(x), Argument::Buffer(y), Argument::Buffer(sum), int(count)];
    launch(device, image, "vector_add", &arguments, NvLaunch::new(391, 256))?;
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    compare(&take(sum)?, &expected)
}

pub(crate) fn reduce<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let numbers: Vec<i32> = (0..1_000_000).map(|index| index % 1013 - 300).collect();
    let (input, sum) = (put(device, &numbers)?, put(device, &[0i32])?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&sum), int(1_000_000)];
    launch(device, image, "reduce", &arguments, NvLaunch::new(264, 256))?;
    compare(&take(&sum)?, &[numbers.iter().sum::<i32>()])
}

pub(crate) fn constant_table<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let index: Vec<i32> = (0..32).map(|at| (at * 7) % 16).collect();
    let (input, out) = (put(device, &index)?, put(device, &[0i32; 32])?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    launch(device, image, "constant_table", &arguments, NvLaunch::new(1, 32))?;
    let expected: Vec<i32> = index.iter().map(|at| at * at).collect();
    compare(&take(&out)?, &expected)?;
    // the program changes its constants
    let changed: Vec<i32> = (0..64).map(|at| 1000 - at).collect();
    device.set_constant(image, "squares", &i32::to_bytes(&changed))?;
    launch(device, image, "constant_table", &arguments, NvLaunch::new(1, 32))?;
    let expected: Vec<i32> = index.iter().map(|at| 1000 - at).collect();
    compare(&take(&out)?, &expected).map(|text| format!("{text}, before and after a change"))
}

pub(crate) fn variables<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let out = put(device, &[0i32; 2])?;
    for round in 0..3 {
        launch(device, image, "variables", &[Argument::Buffer(&out)], NvLaunch::new(1, 1))?;
        compare(&take(&out)?, &[7 + round, 1 + round])?;
    }
    let (address, size) = device.variable(image, "counter")?;
    Ok(format!("initialised and kept over 3 launches; counter of {size} bytes at {address:#x}"))
}

pub(crate) fn function_pointers<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let which: Vec<i32> = (0..64).map(|index| index % 3).collect();
    let numbers: Vec<i32> = (0..64).collect();
    let (input, out) = (put(device, &which)?, put(device, &numbers)?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    launch(device, image, "function_pointers", &arguments, NvLaunch::new(1, 64))?;
    let expected: Vec<i32> = numbers
        .iter()
        .map(|&number| match number % 3 {
            0 => 2 * number,
            1 => number * number,
            _ => -number,
        })
        .collect();
    compare(&take(&out)?, &expected)
}

pub(crate) fn literals<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let which: Vec<i32> = (0..64).map(|index| index % 8).collect();
    let (input, out) = (put(device, &which)?, put(device, &[0f64; 64])?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    launch(device, image, "literals", &arguments, NvLaunch::new(1, 64))?;
    let value = |index: i32| {
        let x = f64::from(index) + 0.25;
        match index % 8 {
            0 => x.sin(),
            1 => x.exp() * 1.772_453_850_905_516,
            2 => x.powf(3.25),
            3 => x * f64::from(3 + (x as i32) % 4 + 1),
            4 => x.ln() * core::f64::consts::LN_2,
            5 => -x,
            6 => x / 3.000_000_000_000_000_4,
            _ => 0.0,
        }
    };
    let found = take::<f64>(&out)?;
    for (index, found) in (0..).zip(&found) {
        let expected = value(index);
        // two units of the last place: the libraries differ
        if (found - expected).abs() > expected.abs() * 4.0 * f64::EPSILON {
            return Err(format!("number {index} is {found}, expected {expected}").into());
        }
    }
    Ok(format!("{} numbers are right", found.len()))
}

pub(crate) fn recursion<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    fn fibonacci(n: i32) -> i32 {
        if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }
    device.set_stack(8192)?;
    let out = put(device, &[0i32; 8])?;
    launch(device, image, "recursion", &[int(6), Argument::Buffer(&out)], NvLaunch::new(1, 8))?;
    let expected: Vec<i32> = (6..14).map(fibonacci).collect();
    compare(&take(&out)?, &expected)
}

pub(crate) fn says<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    launch(device, image, "says", &[int(4711)], NvLaunch::new(2, 1))?;
    Ok("launched; the lines `block 0 of 2 says 4711` and `block 1 of 2 says 4711` must be in the log".into())
}

pub(crate) fn dynamic_shared<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let limit = device.properties().shared_opt_in;
    let mut tried = Vec::new();
    for size in [1 << 10, 48 << 10, 100 << 10, limit] {
        let out = put(device, &[0i32; 2])?;
        let arguments = [Argument::Buffer(&out), int((size / 4) as i32)];
        let shape = NvLaunch { dynamic_shared: size, ..NvLaunch::new(132, 256) };
        launch(device, image, "dynamic_shared", &arguments, shape)?;
        compare(&take(&out)?, &[0, 132])?;
        tried.push(size.to_string());
    }
    Ok(format!("blocks with {} bytes", tried.join(", ")))
}

pub(crate) fn cluster_neighbours<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    for size in [2u32, 4, 8, 16] {
        let out = put(device, &[0i32; 32])?;
        let shape = NvLaunch { cluster: Some([size, 1, 1]), ..NvLaunch::new(32, 64) };
        launch(device, image, "cluster_neighbours", &[Argument::Buffer(&out)], shape)
            .map_err(|error| format!("clusters of {size}: {error}"))?;
        let size = size as i32;
        let expected: Vec<i32> =
            (0..32).map(|block| 100 + block / size * size + (block + 1) % size).collect();
        compare(&take(&out)?, &expected).map_err(|error| format!("clusters of {size}: {error}"))?;
    }
    Ok("clusters of 2, 4, 8, 16 blocks".into())
}

pub(crate) fn grid_sync<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let blocks = device.properties().sm_count.min(1024);
    let out = put(device, &vec![0i32; blocks as usize])?;
    let shape = NvLaunch { cooperative: true, ..NvLaunch::new(blocks, 128) };
    launch(device, image, "grid_sync", &[Argument::Buffer(&out)], shape)?;
    let blocks = blocks as i32;
    let found = take::<i32>(&out)?;
    compare(found.get(..1).unwrap_or_default(), &[blocks * (blocks + 1) / 2])
        .map(|_| format!("{blocks} blocks waited for each other"))
}

fn parameters<D: Runs>(device: &D, image: &Arc<D::Image>, kernel: &str, words: i32) -> Outcome {
    let driver = device.properties().driver;
    if driver < LARGE_PARAMETERS {
        return Ok(format!("left out: CUDA {driver} has no kernels with so many parameters"));
    }
    let numbers: Vec<i32> = (0..words).map(|index| index * 31 % 1009).collect();
    let bytes = i32::to_bytes(&numbers);
    let sum = put(device, &[0i32])?;
    let arguments = [Argument::Bytes(&bytes), Argument::Buffer(&sum)];
    launch(device, image, kernel, &arguments, NvLaunch::new(1, 64))?;
    let add = |sum: i32, (index, number): (i32, &i32)| sum.wrapping_add(number.wrapping_mul(index));
    let expected = (1..).zip(&numbers).fold(0, add);
    compare(&take(&sum)?, &[expected]).map(|_| format!("{} bytes of parameters", bytes.len() + 8))
}

pub(crate) fn large_parameters<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    parameters(device, image, "large_parameters", 2046)
}

pub(crate) fn largest_parameters<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    parameters(device, image, "largest_parameters", 8188)
}

pub(crate) fn across<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let numbers: Vec<i32> = (0..32).map(|index| index * 3).collect();
    let (input, out) = (put(device, &numbers)?, put(device, &[0i32; 32])?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    launch(device, image, "across", &arguments, NvLaunch::new(1, 32))?;
    let expected: Vec<i32> =
        (0..).zip(&numbers).map(|(index, number)| number * 3 + 1 + (index % 8 + 1) * 10).collect();
    compare(&take(&out)?, &expected)?;
    // 5 at first, and one for each thread: seen by another kernel
    let total = put(device, &[0i32])?;
    launch(device, image, "read_total", &[Argument::Buffer(&total)], NvLaunch::new(1, 1))?;
    compare(&take(&total)?, &[37])
        .map(|_| "functions, constants and a variable of another object".into())
}

pub(crate) fn through_pointers<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    let which: Vec<i32> = (0..30).collect();
    let numbers: Vec<i32> = (0..30).map(|index| index * 5 + 1).collect();
    let (input, out) = (put(device, &which)?, put(device, &numbers)?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    launch(device, image, "through_pointers", &arguments, NvLaunch::new(1, 30))?;
    let expected: Vec<i32> = (0..)
        .zip(&numbers)
        .map(|(index, number)| match index % 3 {
            0 => number + 1,
            1 => number / 2,
            _ => number * 3 + 1,
        })
        .collect();
    compare(&take(&out)?, &expected)
}

pub(crate) fn recursive<D: Runs>(device: &D, image: &Arc<D::Image>) -> Outcome {
    fn depth(n: i32) -> i32 {
        if n <= 0 { 0 } else { 1 + depth(n - 1 - (n & 1)) + depth(n - 3) }
    }
    // nobody can tell how much it takes
    device.set_stack(8192)?;
    let out = put(device, &[0i32; 8])?;
    launch(device, image, "recursive", &[int(3), Argument::Buffer(&out)], NvLaunch::new(1, 8))?;
    let expected: Vec<i32> = (3..11).map(depth).collect();
    compare(&take(&out)?, &expected)
}

/// The same kernels, compiled by the driver.
pub(crate) fn ptx(bench: &Bench) -> Outcome {
    let image = bench.load(PTX, CubinLoader::Driver)?;
    vector_add(&bench.device, &image)?;
    constant_table(&bench.device, &image)?;
    function_pointers(&bench.device, &image)?;
    recursion(&bench.device, &image)?;
    large_parameters(&bench.device, &image)
}

pub(crate) fn memory_kinds(bench: &Bench) -> Outcome {
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    let numbers: Vec<i32> = (0..1000).collect();
    for kind in
        [MemoryKind::Device, MemoryKind::StreamOrdered, MemoryKind::Pinned, MemoryKind::Managed]
    {
        let allocator = bench.device.allocator_of(kind);
        let input = Buffer::new(&allocator, 4000, Spec::new())?;
        input.copy_in(0, &i32::to_bytes(&numbers))?;
        let sum = Buffer::new(&allocator, 4, Spec::new().zeroed())?;
        // a buffer of another allocator of the same device is as good
        let arguments = [Argument::Buffer(&input), Argument::Buffer(&sum), int(1000)];
        launch(&bench.device, &image, "reduce", &arguments, NvLaunch::new(2, 256))
            .map_err(|error| format!("{kind:?}: {error}"))?;
        compare(&take(&sum)?, &[numbers.iter().sum::<i32>()])
            .map_err(|error| format!("{kind:?}: {error}"))?;
    }
    Ok("device, stream-ordered, pinned and managed memory".into())
}

pub(crate) fn queues(bench: &Bench) -> Outcome {
    let image = bench.load(CUBIN, CubinLoader::Driver)?;
    let kernel = bench.device.kernel(&image, "variables")?;
    let out = put(&bench.device, &[0i32; 2])?;
    let other = bench.device.new_queue()?;
    for round in 0..200 {
        let queue = if round % 2 == 0 { bench.device.queue() } else { &other };
        // SAFETY: the kernel is ours, and gets what it takes.
        unsafe { kernel.launch(queue, &[exec_nv::Argument::Buffer(&out)], &NvLaunch::new(1, 1))? };
        bench.device.queue().wait_for(&other)?;
        other.wait_for(bench.device.queue())?;
    }
    other.synchronize()?;
    bench.device.synchronize()?;
    compare(&take(&out)?, &[206, 200])
        .map(|_| "200 launches in turn on two queues that wait for each other".into())
}
