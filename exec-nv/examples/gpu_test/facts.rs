//! What the hardware and the driver do that no document says: what the own loader rests on.

use std::collections::BTreeMap;
use std::sync::Arc;

use exec_core::{Device as _, Spec};
use exec_nv::{CubinLoader, NvDevice, NvLaunch};
use fatbin::CudaVersion;

use crate::bench::{Bench, CUBIN, Failure, Outcome, file_for};
use crate::kernels::{compare, launch, put, take, vector_add};
use crate::runs::Argument;

pub(crate) fn device(bench: &Bench) -> Outcome {
    let found = bench.device.properties();
    let CudaVersion { major, minor } = found.driver;
    Ok(format!(
        "{}, sm_{}, {} SMs, {} MiB, driver CUDA {major}.{minor} with {}, shared memory {} or {} bytes a block and {} reserved",
        found.name,
        found.sm,
        found.sm_count,
        found.memory >> 20,
        file_for(bench.device.target(), CUBIN),
        found.shared,
        found.shared_opt_in,
        found.shared_reserved
    ))
}

/// What the driver says of every kernel beside what nvinfo reads, with both loaders.
pub(crate) fn attributes(bench: &Bench) -> Outcome {
    /// Differences that are shown of each sort.
    const SHOWN: usize = 4;
    let mut sorts: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for loader in [CubinLoader::Driver, CubinLoader::Own] {
        let image = bench.load(CUBIN, loader)?;
        for name in KERNELS {
            let kernel = bench.device.kernel(&image, name)?;
            for (what, driver, image) in kernel.differences()? {
                let difference = format!("{name} {driver}, not {image}");
                sorts.entry((what, format!("{loader:?}"))).or_default().push(difference);
            }
            count += 1;
        }
    }
    let of_sort = |((what, loader), all): (&(&str, String), &Vec<String>)| {
        let shown = all.get(..all.len().min(SHOWN)).unwrap_or_default().join(", ");
        format!("{what} by the driver ({loader}) differ {} times: {shown}", all.len())
    };
    let words: Vec<_> = sorts.iter().map(of_sort).collect();
    let all: usize = sorts.values().map(Vec::len).sum();
    Ok(format!("{count} kernels, {all} differences. {}", words.join("; ")))
}

/// Kernels of the file that every device with clusters can have.
pub(crate) const KERNELS: [&str; 13] = [
    "vector_add",
    "reduce",
    "constant_table",
    "variables",
    "function_pointers",
    "recursion",
    "says",
    "dynamic_shared",
    "cluster_neighbours",
    "grid_sync",
    "large_parameters",
    "literals",
    "nothing",
];

/// Whether code runs that is far from where the driver has its own.
pub(crate) fn far_code(bench: &Bench) -> Outcome {
    let info = bench.device.memory()?;
    let mut blocks = Vec::new();
    let mut places = Vec::new();
    for part in 0..4u64 {
        let image = bench.load(CUBIN, CubinLoader::Own)?;
        vector_add(&bench.device, &image)
            .map_err(|error| format!("at {places:?} and then: {error}"))?;
        places.push(format!("{:#x}", image.variable("vector_add")?.0));
        // what comes next is behind a quarter of the memory
        let size = info.available / 5;
        if part < 3 {
            blocks.push(bench.device.buffer(size, Spec::new().not_kept())?);
        }
    }
    Ok(format!("vector_add is right at {}", places.join(", ")))
}

fn run(bench: &Bench, image: &Arc<exec_nv::NvImage>, kernel: &str) -> Result<i32, Failure> {
    let out = put(&bench.device, &[0i32])?;
    launch(&bench.device, image, kernel, &[Argument::Buffer(&out)], NvLaunch::new(1, 1))?;
    take::<i32>(&out)?.first().copied().ok_or_else(|| "no number".into())
}

/// Whether a launch sees code that was written over other code since the last one.
pub(crate) fn rewritten_code(bench: &Bench) -> Outcome {
    let image = bench.load(CUBIN, CubinLoader::Own)?;
    let (one, size) = image.variable("one")?;
    let (two, other_size) = image.variable("two")?;
    if size != other_size {
        return Err(format!("one has {size} bytes, two {other_size}").into());
    }
    compare(&[run(bench, &image, "one")?, run(bench, &image, "two")?], &[1, 2])?;
    let view = |address| -> Result<_, Failure> {
        // SAFETY: the code of our image, which nothing runs at the moment.
        let external = unsafe { exec_core::ExternalMemory::new(address, size) };
        let spec = Spec::new().aligned(1);
        Ok(exec_core::Buffer::external(bench.device.allocator(), external, spec)?)
    };
    let (from, to) = (view(two)?, view(one)?);
    NvDevice::copy(&from, &to)?;
    drop((from, to));
    let after = run(bench, &image, "one")?;
    let again = run(bench, &image, "one")?;
    match (after, again) {
        (2, 2) => Ok("the next launch runs the new code: nothing has to be invalidated".into()),
        (first, second) => {
            Ok(format!("STALE: the launches after the change gave {first} and {second}, not 2"))
        }
    }
}

/// Whether memory that held code, was given back, and holds other code now, runs the new one.
pub(crate) fn moved_code(bench: &Bench) -> Outcome {
    let mut places = Vec::new();
    for _ in 0..20 {
        let image = bench.load(CUBIN, CubinLoader::Own)?;
        places.push(image.variable("one")?.0);
        compare(&[run(bench, &image, "two")?, run(bench, &image, "one")?], &[2, 1])?;
    }
    places.sort_unstable();
    places.dedup();
    Ok(format!("20 loads at {} addresses, all right", places.len()))
}

/// What a kernel's bad access does, and what a reset makes good.
pub(crate) fn fault(bench: &Bench) -> Outcome {
    let mut words = Vec::new();
    for loader in [CubinLoader::Driver, CubinLoader::Own] {
        let image = bench.load(CUBIN, loader)?;
        let null = Argument::Value(exec_core::Scalar::U64(0));
        let error = match launch(&bench.device, &image, "faults", &[null], NvLaunch::new(1, 1)) {
            Ok(()) => return Err("a write to address 0 was no error".into()),
            Err(error) => error.to_string(),
        };
        if bench.device.buffer(64, Spec::new()).is_ok() {
            return Err(format!("{error} does not stick").into());
        }
        drop(image);
        bench.device.reset();
        let image = bench.load(CUBIN, loader)?;
        vector_add(&bench.device, &image).map_err(|error| format!("after a reset: {error}"))?;
        words.push(format!("{loader:?}: {error}"));
    }
    Ok(format!("sticks, and a reset helps: {}", words.join("; ")))
}
