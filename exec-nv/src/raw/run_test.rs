//! Kernels that run, without a GPU: images of the own loader and of the device linker, and results that the processor knows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exec_core::{Device as _, Scalar, Spec};

use super::fake::{Class, Fake};
use super::{RawArgument, RawDevice, RawImage, RawOptions};
use crate::NvLaunch;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda").join(name))
        .unwrap()
}

/// The program of `gpu_a.cu` and `gpu_b.cu`, linked by nvlink, by this project, and as older tools compile and link it.
fn linked() -> [(&'static str, Vec<u8>); 5] {
    let objects = ["gpu_a-13.0-sm_90.cubin", "gpu_b-13.0-sm_90.cubin"].map(fixture);
    let ours = reloc_cuda::link::link(&[&objects[0], &objects[1]]).unwrap();
    [
        ("nvlink", fixture("gpu_linked-13.0-sm_90.cubin")),
        ("hoist", ours.bytes),
        ("ptxas 12.0", fixture("gpu_linked-12.0-sm_90.cubin")),
        ("ptxas 12.4", fixture("gpu_linked-12.4-sm_90.cubin")),
        ("ptxas 12.8", fixture("gpu_linked-12.8-sm_90.cubin")),
    ]
}

struct Bench {
    device: RawDevice<Fake>,
    image: Arc<RawImage<Fake>>,
}

impl Bench {
    fn new(cubin: &[u8]) -> Self {
        let fake = Fake::new(Class::HOPPER);
        fake.state().runs = true;
        let options = RawOptions { limit: Duration::from_secs(5), ..RawOptions::default() };
        let device = RawDevice::open(fake, 0, options).unwrap();
        let image = device.load(cubin).unwrap();
        Self { device, image }
    }

    /// Launches a kernel on words, and gives what it makes of the last of them.
    fn run(
        &self,
        kernel: &str,
        launch: NvLaunch,
        buffers: &[&[u32]],
        values: &[Scalar],
    ) -> Vec<u32> {
        self.run_with(kernel, launch, values, buffers, &[])
    }

    /// The same of a kernel that takes values before and after its buffers.
    fn run_with(
        &self,
        kernel: &str,
        launch: NvLaunch,
        before: &[Scalar],
        buffers: &[&[u32]],
        after: &[Scalar],
    ) -> Vec<u32> {
        let kernel = self.device.kernel(&self.image, kernel).unwrap();
        let buffers: Vec<_> = buffers
            .iter()
            .map(|words| {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let buffer = self.device.buffer(bytes.len() as u64, Spec::new()).unwrap();
                buffer.copy_in(0, &bytes).unwrap();
                buffer
            })
            .collect();
        let values = |values: &[Scalar]| -> Vec<RawArgument<'_, Fake>> {
            values.iter().map(|value| RawArgument::Value(*value)).collect()
        };
        let mut passed = values(before);
        passed.extend(buffers.iter().map(|buffer| RawArgument::Buffer(buffer)));
        passed.extend(values(after));
        // SAFETY: the kernels of the fixtures, with buffers for all threads.
        unsafe { kernel.launch(self.device.queue(), &passed, &launch) }.unwrap();
        self.device.synchronize().unwrap();
        let last = buffers.last().unwrap();
        let mut bytes = vec![0; last.size() as usize];
        last.copy_out(0, &mut bytes).unwrap();
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn word(&self, variable: &str) -> u32 {
        let (address, size) = self.image.variable(variable).unwrap();
        assert_eq!(size, 4);
        let mut bytes = [0; 4];
        assert!(self.device.gpu().client().system().state().read(address, &mut bytes));
        u32::from_le_bytes(bytes)
    }
}

const THREADS: u32 = 32;

fn threads() -> NvLaunch {
    NvLaunch::new(1, THREADS)
}

#[test]
fn calls_across_objects_shared_memory_constants_and_atomics() {
    for (linker, cubin) in linked() {
        let bench = Bench::new(&cubin);
        let inputs: Vec<u32> = (0..THREADS).map(|index| index * 7).collect();
        let found = bench.run("across", threads(), &[&inputs, &[0; 32]], &[]);
        // shift(x) + offsets[thread & 7]
        let expected: Vec<u32> =
            (0..THREADS).map(|index| index * 7 * 3 + 1 + (index % 8 + 1) * 10).collect();
        assert_eq!(found, expected, "{linker}");
        assert_eq!(bench.word("total"), 5 + THREADS, "{linker}");
        assert_eq!(bench.run("read_total", NvLaunch::new(1, 1), &[&[0]], &[]), [37], "{linker}");
    }
}

#[test]
fn indirect_calls() {
    for (linker, cubin) in linked() {
        let bench = Bench::new(&cubin);
        let which: Vec<u32> = (0..THREADS).collect();
        let values: Vec<u32> = (0..THREADS).map(|index| index * 10).collect();
        let found = bench.run("through_pointers", threads(), &[&which, &values], &[]);
        let expected: Vec<u32> = (0..THREADS)
            .map(|index| match (index % 3, index * 10) {
                (0, x) => x + 1,
                (1, x) => x / 2,
                (_, x) => x * 3 + 1,
            })
            .collect();
        assert_eq!(found, expected, "{linker}");
    }
}

#[test]
fn recursion() {
    fn depth(n: i32) -> i32 {
        if n <= 0 { 0 } else { 1 + depth(n - 1 - (n & 1)) + depth(n - 3) }
    }
    for (linker, cubin) in linked() {
        let bench = Bench::new(&cubin);
        bench.device.set_stack_size(4096);
        let found = bench.run("recursive", threads(), &[&[0; 32]], &[Scalar::I32(-3)]);
        let expected: Vec<u32> = (0..32).map(|index| depth(index - 3) as u32).collect();
        assert_eq!(found, expected, "{linker}");
    }
}

/// What nvcc makes of `gpu.cu`, as it is in a fatbin.
#[test]
fn the_gpu_program_computes() {
    let bench = Bench::new(&fixture("gpu-13.0-sm_90.fatbin"));
    let single =
        |of: &dyn Fn(u32) -> f32| -> Vec<u32> { (0..100).map(|at| of(at).to_bits()).collect() };
    let a = single(&|at| at as f32 * 0.37);
    let b = single(&|at| 1000.0 / (at as f32 + 1.0));
    let launch = NvLaunch::new(2, 64);
    let count = [Scalar::I32(100)];
    let found = bench.run_with("vector_add", launch, &[], &[&a, &b, &[0; 100]], &count);
    assert_eq!(found, single(&|at| at as f32 * 0.37 + 1000.0 / (at as f32 + 1.0)));

    let numbers: Vec<u32> = (0..1000u32).map(|at| at.wrapping_mul(at)).collect();
    let found = bench.run_with(
        "reduce",
        NvLaunch::new(2, 256),
        &[],
        &[&numbers, &[0]],
        &[Scalar::I32(1000)],
    );
    assert_eq!(found, [numbers.iter().sum::<u32>()]);

    // sine, exponential, power, logarithm, quotient: code of the compiler's library, constants from a bank, local memory
    let which: Vec<u32> = (0..64).map(|at| at % 8).collect();
    let found = bench.run("literals", NvLaunch::new(1, 64), &[&which, &[0; 128]], &[]);
    for (index, found) in found.chunks(2).enumerate() {
        let found = f64::from_bits(u64::from(found[1]) << 32 | u64::from(found[0]));
        let x = index as f64 + 0.25;
        let expected = match index % 8 {
            0 => x.sin(),
            1 => x.exp() * 1.772_453_850_905_516,
            2 => x.powf(3.25),
            3 => x * f64::from(4 + (x as i32) % 4),
            4 => x.ln() * core::f64::consts::LN_2,
            5 => -x,
            6 => x / 3.000_000_000_000_000_4,
            _ => 0.0,
        };
        // the libraries differ by two units of the last place
        let is_near = (found - expected).abs() <= expected.abs() * 4.0 * f64::EPSILON;
        assert!(is_near, "{index}: {found:e}, expected {expected:e}");
    }
}

#[test]
fn what_a_kernel_may_not_reach_is_named() {
    let bench = Bench::new(&fixture("gpu-13.0-sm_90.fatbin"));
    let device = &bench.device;
    let launch = |name: &str, arguments: &[RawArgument<'_, Fake>]| {
        let kernel = device.kernel(&bench.image, name).unwrap();
        let launch = NvLaunch { wait: true, ..NvLaunch::new(1, 1) };
        // SAFETY: the fake catches what is outside.
        unsafe { kernel.launch(device.queue(), arguments, &launch) }
    };
    let nowhere = RawArgument::Value(Scalar::U64(0x12_3456_7890));
    let number = RawArgument::Value(Scalar::I32(1));
    let read = [nowhere, nowhere, nowhere, number];
    for (kernel, arguments, expected) in [
        ("faults", &read[..1], "write at 0x1234567890 (PTE)"),
        ("vector_add", &read[..], "read at 0x1234567890 (PTE)"),
    ] {
        let error = launch(kernel, arguments).unwrap_err().to_string();
        let whole =
            format!("the GPU stopped a channel: Xid 31 (FIFO_ERROR_MMU_ERR_FLT), 0x1: {expected}");
        assert_eq!(error, whole);
        assert!(device.fault().unwrap().to_string().ends_with(expected));
        // the device works again
        assert!(device.reset().is_some());
        device.gpu().client().system().state().mmu_fault = None;
        launch("nothing", &[]).unwrap();
    }
    // a sandbox that does not pass the question on
    device.gpu().client().system().state().unsupported = vec![0x83de_0328];
    let error = launch("faults", &read[..1]).unwrap_err().to_string();
    assert_eq!(error, "the GPU stopped a channel: Xid 31 (FIFO_ERROR_MMU_ERR_FLT), 0x1");
    // nor does an error on the way hide what is known, or keep anything
    assert!(device.reset().is_some());
    device.gpu().client().system().state().unsupported.clear();
    for call in 0..3 {
        for failure in [super::fake::Failure::Errno, super::fake::Failure::Status] {
            launch("nothing", &[]).unwrap();
            device.gpu().client().system().fail_at(call, failure);
            let error = launch("faults", &read[..1]).unwrap_err().to_string();
            assert!(error.contains("Xid 31"), "{error}");
            device.gpu().client().system().state().fail_at = None;
            assert!(device.reset().is_some());
        }
    }
}

/// `branches` of `data_a.ptx`: a table of branches, a call to another object, a second table there, constants and variables.
#[test]
fn tables_of_branches() {
    let objects = ["data_a-13.5-sm_90.cubin", "data_b-13.5-sm_90.cubin"].map(fixture);
    let ours = reloc_cuda::link::link(&[&objects[0], &objects[1]]).unwrap();
    for (linker, cubin) in [("nvlink", fixture("data-13.5-sm_90.cubin")), ("hoist", ours.bytes)] {
        let bench = Bench::new(&cubin);
        let kernel = bench.device.kernel(&bench.image, "branches").unwrap();
        let out = bench.device.buffer(32, Spec::new()).unwrap();
        // which of the first table, the third word of the buffer, blocks; what the second table makes of that
        for (which, third, blocks, expected) in
            [(0, 0, 1, 0), (1, 0, 1, 0), (2, 6, 1, 10), (2, 5, 1, 1), (3, 0, 2, 1), (7, 0, 3, 10)]
        {
            let words = [99, 0, third, 0, 0, 0, 0, 0_u32];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            out.copy_in(0, &bytes).unwrap();
            let arguments = [RawArgument::Buffer(&out), RawArgument::Value(Scalar::U32(which))];
            // SAFETY: the kernel writes 24 bytes.
            unsafe { kernel.launch(bench.device.queue(), &arguments, &NvLaunch::new(blocks, 1)) }
                .unwrap();
            bench.device.synchronize().unwrap();
            let mut bytes = [0; 24];
            out.copy_out(0, &mut bytes).unwrap();
            let found = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert_eq!(found, expected, "{linker}: {which}, {third}");
            // the variables that stood in both objects are one
            let (table, _) = bench.image.variable("table").unwrap();
            let mut entry = [0; 8];
            assert!(bench.device.gpu().client().system().state().read(table, &mut entry));
            assert_eq!(bytes[16..], entry, "{linker}");
        }
    }
}
