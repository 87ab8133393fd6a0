//! What only a GPU can show, one step a process: `cargo xtask gpu-test` puts this with its cubins into a folder, and a script
//! there runs every step with a time limit and makes a report of the rows that they print.
//!
//! `gpu_test list` names the steps; `gpu_test STEP FOLDER` runs one; FOLDER holds the cubins. `gpu_test file NAME` says
//! which file of this name is for device and driver. `gpu_test cubins FILE SM OUT [BASE]` needs no GPU: it writes what steps load into a folder, the
//! cubins of the ladder, for our image at this address, and PTX.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use exec_nv::{CubinLoader, NvDevice, NvImage};
use fatbin::{CudaVersion, TargetDevice};

mod bench;
mod driver_code;
mod facts;
mod kernels;
mod ladder;
mod layer;
mod parts;
#[cfg(feature = "raw")]
mod raw;
mod real;
mod renumber;
mod runs;
mod sharing;
mod speed;
mod trampoline;

use bench::{Bench, CUBIN, HOIST, NVLINK, Outcome, file_for};

/// A step: what it is called, the seconds it may take, and what it does.
struct Step {
    name: &'static str,
    seconds: u32,
    run: Run,
}

/// What a step does.
enum Run {
    /// With each loader, on the image in this file.
    Both(&'static str, fn(&NvDevice, &Arc<NvImage>) -> Outcome),
    /// Once.
    Once(fn(&Bench) -> Outcome),
    /// Without CUDA, on the cubins of this folder.
    #[cfg(feature = "raw")]
    Raw(fn(&Path) -> Outcome),
    /// Without CUDA, on the image in this file.
    #[cfg(feature = "raw")]
    RawOn(&'static str, fn(&raw::Raw, &raw::Image) -> Outcome),
}

const fn both(
    name: &'static str,
    file: &'static str,
    run: fn(&NvDevice, &Arc<NvImage>) -> Outcome,
) -> Step {
    Step { name, seconds: 20, run: Run::Both(file, run) }
}

const fn once(name: &'static str, seconds: u32, run: fn(&Bench) -> Outcome) -> Step {
    Step { name, seconds, run: Run::Once(run) }
}

#[cfg(feature = "raw")]
const fn raw(name: &'static str, run: fn(&Path) -> Outcome) -> Step {
    Step { name, seconds: 30, run: Run::Raw(run) }
}

#[cfg(feature = "raw")]
const fn raw_on(
    name: &'static str,
    file: &'static str,
    run: fn(&raw::Raw, &raw::Image) -> Outcome,
) -> Step {
    Step { name, seconds: 30, run: Run::RawOn(file, run) }
}

/// The steps without CUDA: they come before what may break the device.
#[cfg(feature = "raw")]
const RAW_STEPS: &[Step] = &[
    raw("raw_bring_up", raw::bring_up),
    raw("raw_copies", raw::copies),
    raw_on("raw_vector_add", CUBIN, kernels::vector_add),
    raw_on("raw_reduce", CUBIN, kernels::reduce),
    raw_on("raw_constant_table", CUBIN, kernels::constant_table),
    raw_on("raw_variables", CUBIN, kernels::variables),
    raw_on("raw_function_pointers", CUBIN, kernels::function_pointers),
    raw_on("raw_literals", CUBIN, kernels::literals),
    raw_on("raw_recursion", CUBIN, kernels::recursion),
    raw_on("raw_dynamic_shared", CUBIN, kernels::dynamic_shared),
    raw_on("raw_cluster_neighbours", CUBIN, kernels::cluster_neighbours),
    raw_on("raw_large_parameters", CUBIN, kernels::large_parameters),
    raw_on("raw_largest_parameters", CUBIN, kernels::largest_parameters),
    raw_on("raw_nvlink_across", NVLINK, kernels::across),
    raw_on("raw_nvlink_pointers", NVLINK, kernels::through_pointers),
    raw_on("raw_nvlink_recursive", NVLINK, kernels::recursive),
    raw_on("raw_hoist_link_across", HOIST, kernels::across),
    raw_on("raw_hoist_link_pointers", HOIST, kernels::through_pointers),
    raw_on("raw_hoist_link_recursive", HOIST, kernels::recursive),
    raw("raw_queues", raw::queues),
    raw("raw_fault", raw::fault),
];
#[cfg(not(feature = "raw"))]
const RAW_STEPS: &[Step] = &[];

/// All steps: those without CUDA before what may break the device.
fn steps() -> impl Iterator<Item = &'static Step> {
    STEPS.iter().chain(RAW_STEPS).chain(LAST_STEPS)
}

/// A kernel fails, and code of the driver's is changed.
const LAST_STEPS: &[Step] = &[
    once("fault", 20, facts::fault),
    once("assertion", 20, layer::assertion),
    once("patched_driver_code", 20, driver_code::patched_code),
];

/// The steps with CUDA, in the order they run: what others build on first.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    once("device",                 20, facts::device),
    both("vector_add",             CUBIN,  kernels::vector_add),
    once("ladder_1_as_it_is",      20, ladder::level::<1>),
    once("ladder_2_written_anew",  20, ladder::level::<2>),
    once("ladder_3_code_padded",   20, ladder::level::<3>),
    once("ladder_4_exit_offsets",  20, ladder::level::<4>),
    once("ladder_5_others_null",   20, ladder::level::<5>),
    once("ladder_6_symbols_null",  20, ladder::level::<6>),
    once("ladder_7_shell",         20, ladder::level::<7>),
    once("ladder_8_grouped",       20, ladder::level::<8>),
    once("ladder_9_renumbered",    20, ladder::level::<9>),
    once("code_in_device",         20, ladder::code_in::<0>),
    once("code_in_stream_ordered", 20, ladder::code_in::<1>),
    once("code_in_pinned",         20, ladder::code_in::<2>),
    once("code_in_managed",        20, ladder::code_in::<3>),
    once("code_in_virtual",        20, ladder::code_in::<4>),
    once("shell_to_driver_code",   20, driver_code::shell_to_driver),
    both("reduce",                 CUBIN,  kernels::reduce),
    both("constant_table",         CUBIN,  kernels::constant_table),
    both("variables",              CUBIN,  kernels::variables),
    both("function_pointers",      CUBIN,  kernels::function_pointers),
    both("literals",               CUBIN,  kernels::literals),
    both("recursion",              CUBIN,  kernels::recursion),
    both("printf",                 CUBIN,  kernels::says),
    both("dynamic_shared",         CUBIN,  kernels::dynamic_shared),
    both("cluster_neighbours",     CUBIN,  kernels::cluster_neighbours),
    both("grid_sync",              CUBIN,  kernels::grid_sync),
    both("large_parameters",       CUBIN,  kernels::large_parameters),
    both("largest_parameters",     CUBIN,  kernels::largest_parameters),
    both("nvlink_across",          NVLINK, kernels::across),
    both("nvlink_pointers",        NVLINK, kernels::through_pointers),
    both("nvlink_recursive",       NVLINK, kernels::recursive),
    both("hoist_link_across",      HOIST,  kernels::across),
    both("hoist_link_pointers",    HOIST,  kernels::through_pointers),
    both("hoist_link_recursive",   HOIST,  kernels::recursive),
    once("ptx",                    60, kernels::ptx),
    once("memory_kinds",           20, kernels::memory_kinds),
    once("queues",                 20, kernels::queues),
    once("graphs",                 30, layer::graphs),
    once("launch_attributes",      20, layer::launch_attributes),
    once("library",                20, layer::library),
    once("events",                 20, layer::events),
    once("occupancy",              20, layer::occupancy),
    once("nvrtc",                  30, layer::nvrtc),
    once("tensor_map",             20, layer::tensor_map),
    once("pool",                   20, sharing::pool),
    once("virtual_memory",         20, sharing::virtual_memory),
    once("processes",              30, sharing::processes),
    once("peers",                  20, sharing::peers),
    once("real_library",           60, real::library),
    once("ptx_trampoline",         30, trampoline::ptx_trampoline),
    once("attributes",             20, facts::attributes),
    once("far_code",               60, facts::far_code),
    once("rewritten_code",         20, facts::rewritten_code),
    once("moved_code",             20, facts::moved_code),
    once("speed_load_small",       40, speed::load_small),
    once("speed_load_large",       90, speed::load_large),
    once("speed_ready",            40, speed::ready),
    once("speed_first_launch",     60, speed::first_launch),
    once("speed_launch",           40, speed::launch),
    once("speed_allocation",       40, speed::allocation),
    once("speed_copies",           60, speed::copies),
];

impl Step {
    /// Prints a row of the report for each loader: name, loader, whether it is right, what was found.
    fn run(&self, folder: &Path) -> bool {
        let row = |loader: &str, outcome: Outcome| {
            let (word, detail) = match &outcome {
                Ok(detail) => ("ok", detail.clone()),
                Err(error) => ("FAILED", error.to_string()),
            };
            let detail = detail.replace('|', "/").replace('\n', "; ");
            println!("| {} | {loader} | {word} | {detail} |", self.name);
            outcome.is_ok()
        };
        match self.run {
            #[cfg(feature = "raw")]
            Run::Raw(run) => row("raw", run(folder)),
            #[cfg(feature = "raw")]
            Run::RawOn(file, run) => row("raw", raw::on(folder, file, run)),
            Run::Once(run) => row("", Bench::open(folder).and_then(|bench| run(&bench))),
            Run::Both(file, run) => {
                let attempt = |loader| {
                    let bench = Bench::open(folder)?;
                    let image = bench.load(file, loader)?;
                    run(&bench.device, &image)
                };
                let driver = row("driver", attempt(CubinLoader::Driver));
                row("own", attempt(CubinLoader::Own)) && driver
            }
        }
    }
}

/// Where our image is in the cubins of the ladder that are only looked at.
const NOWHERE: &str = "0x7f1234000000";

/// Writes the cubins of the ladder for an SM, with our image at `base`, and the PTX of steps.
fn cubins(file: &str, sm: &str, out: &str, base: &str) -> Outcome {
    let base = base.strip_prefix("0x").ok_or("BASE is a hexadecimal number, 0x..")?;
    let base = u64::from_str_radix(base, 16)?;
    let target = TargetDevice { sm: sm.parse()?, driver: CudaVersion::new(13, 0) };
    let file = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let out = Path::new(out);
    let texts = [
        ("trampoline.ptx", trampoline::ptx(target.sm, 32, 32)?),
        ("driver_code.ptx", driver_code::ptx(target.sm)),
        ("asserts.ptx", layer::asserts(target.sm)),
        ("box_of_tensor.ptx", layer::BOX_OF_TENSOR.to_owned()),
    ];
    for (name, text) in texts {
        std::fs::write(out.join(name), text.trim_end_matches('\0'))?;
    }
    ladder::write_all(&file, target, base, out)
}

/// Prints what was found.
fn say(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("gpu_test: {error}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["list"] => {
            for step in steps() {
                println!("{} {}", step.name, step.seconds);
            }
            ExitCode::SUCCESS
        }
        ["file", name] => {
            let bench = Bench::open(Path::new("."));
            say(bench.map(|bench| file_for(bench.device.target(), name)))
        }
        ["other_process", handle] => say(sharing::other_process(handle)),
        [name, folder] => match steps().find(|step| step.name == *name) {
            Some(step) if step.run(Path::new(folder)) => ExitCode::SUCCESS,
            Some(_) => ExitCode::FAILURE,
            None => {
                eprintln!("gpu_test: no step {name}");
                ExitCode::FAILURE
            }
        },
        ["cubins", file, sm, out] => say(cubins(file, sm, out, NOWHERE)),
        ["cubins", file, sm, out, base] => say(cubins(file, sm, out, base)),
        _ => {
            eprintln!("gpu_test: list, STEP FOLDER, file NAME, or cubins FILE SM OUT [BASE]");
            ExitCode::FAILURE
        }
    }
}
