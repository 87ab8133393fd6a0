//! Kernels that run, without a GPU: images of the own loader and of the device linker, as they are and through shells, and results that
//! the processor knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use exec_core::{Device as _, Scalar, Spec};

use super::fake::{Class, Fake};
use super::{RawArgument, RawDevice, RawImage, RawOptions, RawProgram};
use crate::own::{self, Plan};
use crate::{KernelImage, NvLaunch};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cuda")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
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

type Argument<'a> = RawArgument<'a, Fake>;

struct Bench {
    device: RawDevice<Fake>,
    image: Arc<RawImage<Fake>>,
    /// What shells are made of, if kernels are entered through them.
    cubin: Option<Vec<u8>>,
}

impl Bench {
    /// The same code as it is, and through shells.
    fn both(class: Class, file: &[u8]) -> [Self; 2] {
        let plain = Self::new(class, file);
        let mut shells = Self::new(class, file);
        let images = KernelImage::find(file, shells.device.target(), None).unwrap();
        shells.cubin = Some(images[0].bytes().to_vec());
        [plain, shells]
    }

    fn new(class: Class, cubin: &[u8]) -> Self {
        let fake = Fake::new(class);
        fake.state().runs = true;
        let options = RawOptions { limit: Duration::from_secs(5), ..RawOptions::default() };
        let device = RawDevice::open(fake, 0, options).unwrap();
        let image = device.load(cubin).unwrap();
        Self { device, image, cubin: None }
    }

    /// A kernel, or the shell that goes on in it.
    fn kernel(&self, name: &str) -> RawProgram<Fake> {
        let Some(cubin) = &self.cubin else {
            return self.device.kernel(&self.image, name).unwrap();
        };
        let plan = Plan::of(cubin).unwrap();
        let (address, _) = self.image.variable(name).unwrap();
        let base = address - plan.symbol(name).unwrap().0;
        let image = plan.write(base).unwrap();
        let shell = own::shell(&plan, &image, base, name).unwrap();
        let shell = self.device.load(&shell).unwrap();
        let code = shell.variable(name).unwrap().0;
        let mut bytes = [0; own::ENTRY_SIZE];
        assert!(self.device.gpu().client().system().state().read(code, &mut bytes));
        assert_eq!(bytes, own::entry(address), "nothing of the kernel but the way to it");
        self.device.kernel(&shell, name).unwrap()
    }

    /// Launches a kernel on words, and gives what it makes of the last of them.
    fn run(
        &self,
        kernel: &str,
        launch: NvLaunch,
        buffers: &[&[u32]],
        values: &[Scalar],
    ) -> Vec<u32> {
        let values: Vec<_> = values.iter().map(|value| Argument::Value(*value)).collect();
        self.run_with(kernel, launch, &values, buffers, &[])
    }

    /// The same of a kernel that takes something before and after its buffers.
    fn run_with(
        &self,
        kernel: &str,
        launch: NvLaunch,
        before: &[Argument<'_>],
        buffers: &[&[u32]],
        after: &[Argument<'_>],
    ) -> Vec<u32> {
        let kernel = self.kernel(kernel);
        let buffers: Vec<_> = buffers
            .iter()
            .map(|words| {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let buffer = self.device.buffer(bytes.len() as u64, Spec::new()).unwrap();
                buffer.copy_in(0, &bytes).unwrap();
                buffer
            })
            .collect();
        let mut passed = before.to_vec();
        passed.extend(buffers.iter().map(|buffer| Argument::Buffer(buffer)));
        passed.extend_from_slice(after);
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

/// All of these programs, entered both ways.
fn programs() -> impl Iterator<Item = (String, Bench)> {
    linked().into_iter().flat_map(|(linker, cubin)| {
        let [plain, shells] = Bench::both(Class::HOPPER, &cubin);
        [(linker.to_owned(), plain), (format!("{linker}, shells"), shells)]
    })
}

#[test]
fn calls_across_objects_shared_memory_constants_and_atomics() {
    for (linker, bench) in programs() {
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
    for (linker, bench) in programs() {
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
    for (linker, bench) in programs() {
        bench.device.set_stack_size(4096);
        let found = bench.run("recursive", threads(), &[&[0; 32]], &[Scalar::I32(-3)]);
        let expected: Vec<u32> = (0..32).map(|index| depth(index - 3) as u32).collect();
        assert_eq!(found, expected, "{linker}");
    }
}

/// What nvcc makes of `gpu.cu` for each generation, as it is in a fatbin, entered both ways.
fn gpu() -> impl Iterator<Item = (&'static str, Bench)> {
    let files = [
        (Class::AMPERE, "gpu-13.5-sm_80.fatbin"),
        (Class::HOPPER, "gpu-13.0-sm_90.fatbin"),
        (Class::BLACKWELL, "gpu-13.5-sm_100.fatbin"),
        (Class::BLACKWELL_12, "gpu-13.5-sm_120.fatbin"),
    ];
    files
        .into_iter()
        .flat_map(|(class, name)| Bench::both(class, &fixture(name)).map(|bench| (name, bench)))
}

#[test]
fn the_gpu_program_computes() {
    for (file, bench) in gpu() {
        let single =
            |of: &dyn Fn(u32) -> f32| -> Vec<u32> { (0..100).map(|at| of(at).to_bits()).collect() };
        let a = single(&|at| at as f32 * 0.37);
        let b = single(&|at| 1000.0 / (at as f32 + 1.0));
        let launch = NvLaunch::new(2, 64);
        let count = |count| [Argument::Value(Scalar::I32(count))];
        let found = bench.run_with("vector_add", launch, &[], &[&a, &b, &[0; 100]], &count(100));
        assert_eq!(found, single(&|at| at as f32 * 0.37 + 1000.0 / (at as f32 + 1.0)), "{file}");

        let numbers: Vec<u32> = (0..1000u32).map(|at| at.wrapping_mul(at)).collect();
        let blocks = NvLaunch::new(2, 256);
        let found = bench.run_with("reduce", blocks, &[], &[&numbers, &[0]], &count(1000));
        assert_eq!(found, [numbers.iter().sum::<u32>()], "{file}");

        // a bank of constants
        let index: Vec<u32> = (0..32).map(|at| at * 7 % 20).collect();
        let found = bench.run("constant_table", threads(), &[&index, &[0; 32]], &[]);
        let square = |&at: &u32| if at < 16 { at * at } else { 0 };
        assert_eq!(found, index.iter().map(square).collect::<Vec<_>>(), "{file}");

        // variables keep what launches leave in them, whoever launches
        for round in 0..3 {
            let found = bench.run("variables", NvLaunch::new(1, 1), &[&[0, 0]], &[]);
            assert_eq!(found, [7 + round, 1 + round], "{file}");
        }
        assert_eq!(bench.word("counter"), 10);

        let which: Vec<u32> = (0..64).map(|at| at % 3).collect();
        let numbers: Vec<u32> = (0..64).collect();
        let launch = NvLaunch::new(1, 64);
        let found = bench.run("function_pointers", launch, &[&which, &numbers], &[]);
        let step = |&x: &u32| match x % 3 {
            0 => 2 * x,
            1 => x * x,
            _ => x.wrapping_neg(),
        };
        assert_eq!(found, numbers.iter().map(step).collect::<Vec<_>>(), "{file}");

        bench.device.set_stack_size(8192);
        let found = bench.run("recursion", NvLaunch::new(1, 8), &[&[0; 8]], &[Scalar::I32(1)]);
        assert_eq!(found, [1, 1, 2, 3, 5, 8, 13, 21], "{file}");

        let most = bench.device.properties().shared_opt_in;
        for (bytes, blocks) in [(64, 2), (4096, 2), (most, 1)] {
            let launch = NvLaunch { dynamic_shared: bytes, ..NvLaunch::new(blocks, 64) };
            let words = count((bytes / 4) as i32);
            let found = bench.run_with("dynamic_shared", launch, &[], &[&[0, 0]], &words);
            assert_eq!(found, [0, blocks], "{file}: {bytes} bytes");
        }

        for (kernel, words) in [("large_parameters", 2046), ("largest_parameters", 8188)] {
            let numbers: Vec<u32> = (0..words).map(|at| at * 31 % 1009).collect();
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let launch = NvLaunch::new(1, 64);
            let found = bench.run_with(kernel, launch, &[Argument::Bytes(&bytes)], &[&[0]], &[]);
            let add = |sum: u32, (at, number): (u32, &u32)| sum.wrapping_add(number * at);
            assert_eq!(found, [(1..).zip(&numbers).fold(0, add)], "{file}: {kernel}");
        }
    }
}

/// Sine, exponential, power, logarithm, quotient: code of the compiler's library, constants from a bank, local memory.
#[test]
fn the_compilers_library_computes() {
    for (file, bench) in gpu() {
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
            assert!(is_near, "{file}, {index}: {found:e}, expected {expected:e}");
        }
    }
}

#[test]
fn what_a_kernel_may_not_reach_is_named() {
    let bench = Bench::new(Class::HOPPER, &fixture("gpu-13.0-sm_90.fatbin"));
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

/// Two objects of each generation, linked by nvlink and by this project, entered both ways.
fn linked_by_both(
    objects: &str,
    linked: &str,
    generations: &[(Class, u32)],
) -> Vec<(String, Bench)> {
    let mut benches = Vec::new();
    for &(class, sm) in generations {
        let of = |name: &str| fixture(&format!("{name}-13.5-sm_{sm}.cubin"));
        let halves = ["a", "b"].map(|half| of(&format!("{objects}_{half}")));
        let ours = reloc_cuda::link::link(&[&halves[0], &halves[1]]).unwrap();
        for (linker, cubin) in [("nvlink", of(linked)), ("hoist", ours.bytes)] {
            let [plain, shells] = Bench::both(class, &cubin);
            benches.push((format!("{linker}, sm_{sm}"), plain));
            benches.push((format!("{linker}, sm_{sm}, shells"), shells));
        }
    }
    benches
}

/// `calls_a.ptx`: calls, a function that calls itself, pointers to functions, shared memory of the launch and of functions.
#[test]
fn calls_of_every_generation() {
    fn recursive(n: u32) -> u32 {
        if n < 2 { n } else { recursive(n - 1) * 9 + n }
    }
    let generations = [(Class::AMPERE, 80), (Class::HOPPER, 90), (Class::BLACKWELL, 100)];
    let benches = linked_by_both("calls", "linked", &generations);
    assert_eq!(benches.len(), 12);
    for (linker, bench) in benches {
        bench.device.set_stack_size(4096);
        let launch = NvLaunch { dynamic_shared: 64, ..threads() };
        // what thread 5 put into shared memory, times a variable, and that variable
        assert_eq!(bench.run("calls", launch, &[&[7]], &[]), [7 * 9 + 9], "{linker}");
        for n in [0, 1, 2, 6] {
            assert_eq!(bench.run("recurses", launch, &[&[n]], &[]), [recursive(n)], "{linker}");
        }
        // the function behind the second pointer gives, nine times, local memory that nobody wrote
        for (which, expected) in [(0, 0), (1, 0xcccc_cccc_u32.wrapping_mul(9)), (2, 0)] {
            let which = [Argument::Value(Scalar::U32(which))];
            let found = bench.run_with("indirect", launch, &[], &[&[99]], &which);
            assert_eq!(found, [expected], "{linker}");
        }
    }
}

/// `branches` of `data_a.ptx`: a table of branches, a call to another object, a second table there, constants and variables.
#[test]
fn tables_of_branches() {
    let generations = [(Class::AMPERE, 80), (Class::HOPPER, 90)];
    for (linker, bench) in linked_by_both("data", "data", &generations) {
        let kernel = bench.kernel("branches");
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

/// The cubins of `gpu_test`'s ladder from NVIDIA's to a shell: what the driver is given, loaded without it.
#[test]
fn every_step_of_the_ladder_runs() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: every_step_of_the_ladder_runs: bundles are made for x86-64");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/gpu_test");
    if !program.exists() {
        println!(
            "skipped: every_step_of_the_ladder_runs: needs the example gpu_test, which `cargo test` builds without `--lib`"
        );
        return;
    }
    for version in ["12.0", "12.4", "12.8", "13.0"] {
        let name = format!("gpu-{version}-sm_90.fatbin");
        let [mut bench, shells] = Bench::both(Class::HOPPER, &fixture(&name));
        let plan = Plan::of(shells.cubin.as_ref().unwrap()).unwrap();
        let entered = bench.image.variable("vector_add").unwrap().0;
        let base = entered - plan.symbol("vector_add").unwrap().0;
        // shells go on in it
        let _entered = Arc::clone(&bench.image);
        let folder = tempfile::tempdir().unwrap();
        let mut write = std::process::Command::new(&program);
        write.arg("cubins").arg(fixtures().join(&name)).arg("90").arg(folder.path());
        let done = write.arg(format!("{base:#x}")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let numbers: Vec<u32> = (0..64).map(|at| (at as f32 * 1.5).to_bits()).collect();
        let sums: Vec<u32> = (0..64).map(|at| (at as f32 * 3.0).to_bits()).collect();
        for step in 1..=9 {
            let cubin = std::fs::read(folder.path().join(format!("ladder_{step}.cubin"))).unwrap();
            bench.image = bench.device.load(&cubin).unwrap();
            let count = [Argument::Value(Scalar::I32(64))];
            let buffers: [&[u32]; 3] = [&numbers, &numbers, &[0; 64]];
            let launch = NvLaunch::new(2, 32);
            let found = bench.run_with("vector_add", launch, &[], &buffers, &count);
            assert_eq!(found, sums, "{version}, step {step}");
            // from the third step on the code is that of the shell
            let code = bench.image.variable("vector_add").unwrap().0;
            let mut bytes = [0; own::ENTRY_SIZE];
            assert!(bench.device.gpu().client().system().state().read(code, &mut bytes));
            assert_eq!(bytes == own::entry(entered), step >= 3, "{version}, step {step}");
        }
    }
}
