//! Steps without CUDA: the kernel driver alone.

use std::path::Path;

use exec_core::{Buffer, Device as _, LruAllocator, Spec, Value};
use exec_nv::NvLaunch;
use exec_nv::raw::{Linux, RawAllocator, RawArgument, RawCall, RawDevice, RawOptions};

use crate::bench::{CUBIN, Failure, NVLINK, Outcome};
use crate::kernels::{Numbers, compare};

type Memory = Buffer<LruAllocator<RawAllocator<Linux>>>;
type Argument<'a> = RawArgument<'a, Linux>;

fn open() -> Result<RawDevice<Linux>, Failure> {
    Ok(RawDevice::open(Linux, 0, RawOptions::default())?)
}

fn put<T: Numbers>(device: &RawDevice<Linux>, numbers: &[T]) -> Result<Memory, Failure> {
    let bytes = T::to_bytes(numbers);
    let memory = device.buffer(bytes.len() as u64, Spec::new())?;
    memory.copy_in(0, &bytes)?;
    Ok(memory)
}

fn take<T: Numbers>(memory: &Memory) -> Result<Vec<T>, Failure> {
    let mut bytes = vec![0; memory.size() as usize];
    memory.copy_out(0, &mut bytes)?;
    Ok(T::from_bytes(&bytes))
}

/// Launches a kernel of a file and waits: how long it took.
fn launch(
    device: &RawDevice<Linux>,
    (folder, file): (&Path, &str),
    kernel: &str,
    arguments: &[Argument<'_>],
    launch: NvLaunch,
) -> Result<String, Failure> {
    let path = folder.join(file);
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let image = device.load(&bytes)?;
    let kernel = device.kernel(&image, kernel)?;
    let launch = NvLaunch { wait: true, ..launch };
    // SAFETY: the kernels are ours, and get what they take.
    let time = unsafe { kernel.launch(device.queue(), arguments, &launch)? };
    Ok(format!("{:?} on the device", time.unwrap_or_default()))
}

pub(crate) fn bring_up(_: &Path) -> Outcome {
    let device = open()?;
    let (driver, found) = (device.gpu().client().version(), device.properties());
    let classes = device.gpu().classes();
    Ok(format!(
        "driver {driver}, {}, sm_{}, {} SMs, {classes:x?}",
        found.name, found.sm, found.sm_count
    ))
}

pub(crate) fn copies(_: &Path) -> Outcome {
    let device = open()?;
    let numbers: Vec<i32> = (0..5_000_001).map(|at| at * 7).collect();
    let there = put(&device, &numbers)?;
    compare(&take(&there)?, &numbers)?;
    let host = device.buffer(there.size(), Spec::new().host_visible())?;
    device.copy(&there, &host)?;
    compare(&take(&host)?, &numbers)
}

pub(crate) fn vector_add(folder: &Path) -> Outcome {
    let device = open()?;
    let count = 100_003;
    let a: Vec<f32> = (0..count).map(|index| index as f32 * 0.5).collect();
    let b: Vec<f32> = (0..count).map(|index| (index % 97) as f32).collect();
    let (x, y) = (put(&device, &a)?, put(&device, &b)?);
    let sum = put(&device, &vec![0f32; a.len()])?;
    let arguments = [
        Argument::Buffer(&x),
        Argument::Buffer(&y),
        Argument::Buffer(&sum),
        Argument::Value(Value::I32(count)),
    ];
    let blocks = NvLaunch::new(391, 256);
    let time = launch(&device, (folder, CUBIN), "vector_add", &arguments, blocks)?;
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    compare(&take(&sum)?, &expected).map(|_| time)
}

/// Shared memory, barriers, atomics.
pub(crate) fn reduce(folder: &Path) -> Outcome {
    let device = open()?;
    let numbers: Vec<i32> = (0..1_000_000).map(|index| index % 1013 - 300).collect();
    let (input, sum) = (put(&device, &numbers)?, put(&device, &[0i32])?);
    let count = Argument::Value(Value::I32(1_000_000));
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&sum), count];
    let blocks = NvLaunch::new(264, 256);
    let time = launch(&device, (folder, CUBIN), "reduce", &arguments, blocks)?;
    compare(&take(&sum)?, &[numbers.iter().sum::<i32>()]).map(|_| time)
}

/// Constant banks and calls.
pub(crate) fn across(folder: &Path) -> Outcome {
    let device = open()?;
    let numbers: Vec<i32> = (0..32).map(|index| index * 3).collect();
    let (input, out) = (put(&device, &numbers)?, put(&device, &[0i32; 32])?);
    let arguments = [Argument::Buffer(&input), Argument::Buffer(&out)];
    let time = launch(&device, (folder, NVLINK), "across", &arguments, NvLaunch::new(1, 32))?;
    let expected: Vec<i32> =
        (0..).zip(&numbers).map(|(index, number)| number * 3 + 1 + (index % 8 + 1) * 10).collect();
    compare(&take(&out)?, &expected).map(|_| time)
}

/// Local memory: a stack that no bound is known of.
pub(crate) fn recursive(folder: &Path) -> Outcome {
    fn depth(n: i32) -> i32 {
        if n <= 0 { 0 } else { 1 + depth(n - 1 - (n & 1)) + depth(n - 3) }
    }
    let device = open()?;
    device.set_stack_size(8192);
    let out = put(&device, &[0i32; 8])?;
    let arguments = [Argument::Value(Value::I32(3)), Argument::Buffer(&out)];
    let time = launch(&device, (folder, NVLINK), "recursive", &arguments, NvLaunch::new(1, 8))?;
    let expected: Vec<i32> = (3..11).map(depth).collect();
    compare(&take(&out)?, &expected).map(|_| time)
}

/// Two queues, one of which waits for the other, and launches that the GPU makes one after the other by itself.
pub(crate) fn queues(folder: &Path) -> Outcome {
    let device = open()?;
    let path = folder.join(NVLINK);
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let image = device.load(&bytes)?;
    let (across, total) = (device.kernel(&image, "across")?, device.kernel(&image, "read_total")?);
    let (input, out) = (put(&device, &[1i32; 32])?, put(&device, &[0i32; 32])?);
    let found = put(&device, &[0i32])?;
    let of_across = [Argument::Buffer(&input), Argument::Buffer(&out)];
    let of_total = [Argument::Buffer(&found)];
    let (all, one) = (NvLaunch::new(1, 32), NvLaunch::new(1, 1));
    let other = device.new_queue()?;
    // SAFETY: the kernels are ours, and get what they take.
    unsafe {
        across.launch(device.queue(), &of_across, &all)?;
        other.wait_for(device.queue())?;
        let calls = [
            RawCall { program: &across, arguments: &of_across, launch: all },
            RawCall { program: &total, arguments: &of_total, launch: one },
        ];
        other.launches(&calls)?;
    }
    other.synchronize()?;
    device.synchronize()?;
    compare(&take(&found)?, &[5 + 64])
}
