//! How long things take, each beside what plain calls of the driver take, in turn: the least of many is what counts.

use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;
use std::path::Path;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUfunction_attribute;
use exec_core::{Buffer, Device as _, Launch, Program as _, Scalar, Spec};
use exec_nv::{Argument, CubinLoader, Driver, KernelImage, MemoryKind, NvLaunch};

use crate::bench::{Bench, CUBIN, Failure, NVLINK, Outcome};
use crate::kernels::put;
use crate::real::{PLACES, libraries};

/// What is measured, and whether it went well.
type Measured<'m> = &'m mut dyn FnMut() -> Result<(), Failure>;

/// The least times of several, measured in turn `rounds` times.
fn least<const N: usize>(
    rounds: u32,
    mut all: [Measured<'_>; N],
) -> Result<[Duration; N], Failure> {
    let mut times = [Duration::MAX; N];
    for _ in 0..rounds {
        for (time, one) in times.iter_mut().zip(&mut all) {
            let start = Instant::now();
            one()?;
            *time = start.elapsed().min(*time);
        }
    }
    Ok(times)
}

/// `ours 12 µs, driver's 24 µs: 2.00 times as fast`.
fn beside(what: [&str; 2], [ours, theirs]: [Duration; 2]) -> String {
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64().max(1e-12);
    format!("{} {ours:.2?}, {} {theirs:.2?}: {ratio:.2} times as fast", what[0], what[1])
}

/// Loads a cubin by both ways and drops it.
fn loads(bench: &Bench, cubin: &[u8], rounds: u32) -> Outcome {
    let driver = bench.device.driver();
    let times = least(
        rounds,
        [
            &mut || {
                bench.device.load_with(cubin, CubinLoader::Own).map(drop).map_err(Failure::from)
            },
            &mut || {
                let mut module = ptr::null_mut();
                // SAFETY: a whole cubin; the context is this thread's since the device was opened and used.
                unsafe {
                    driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
                    driver.cuModuleUnload(module)?;
                }
                Ok(())
            },
        ],
    )?;
    Ok(format!("{} bytes: {}", cubin.len(), beside(["own", "cuModuleLoadData"], times)))
}

fn cubin_of(bench: &Bench, file: &[u8]) -> Result<Vec<u8>, Failure> {
    match KernelImage::find(file, bench.device.target(), None)?.into_iter().next() {
        Some(KernelImage::Cubin(cubin)) => Ok(cubin.into_owned()),
        _ => Err("no cubin for the device".into()),
    }
}

pub(crate) fn load_small(bench: &Bench) -> Outcome {
    let small = loads(bench, &bench.read(NVLINK)?, 200)?;
    let kernels = loads(bench, &cubin_of(bench, &bench.read(CUBIN)?)?, 200)?;
    Ok(format!("{small}; {kernels}"))
}

/// From a cubin to all its kernels ready to launch: a load that puts work off does not have it for nothing. `run.sh` runs it twice, as the
/// driver loads kernels with their image or when they are asked for.
pub(crate) fn ready(bench: &Bench) -> Outcome {
    let cubin = cubin_of(bench, &bench.read(CUBIN)?)?;
    let names = KernelImage::Cubin((&*cubin).into()).kernels()?;
    let c_names = names.iter().map(|name| CString::new(&**name)).collect::<Result<Vec<_>, _>>()?;
    let driver = bench.device.driver();
    let times = least(
        50,
        [
            &mut || {
                let image = bench.device.load_with(&cubin, CubinLoader::Own)?;
                for name in &names {
                    bench.device.kernel(&image, name)?;
                }
                Ok(())
            },
            &mut || {
                let (mut module, mut function, mut registers) =
                    (ptr::null_mut(), ptr::null_mut(), 0);
                // SAFETY: a whole cubin, names that end, places of ours; the context is this thread's since the device was used.
                unsafe {
                    driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
                    for name in &c_names {
                        driver.cuModuleGetFunction(&raw mut function, module, name.as_ptr())?;
                        // what is loaded late is loaded by this question at the latest
                        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS as u32;
                        driver.cuFuncGetAttribute(&raw mut registers, attribute, function)?;
                    }
                    driver.cuModuleUnload(module)?;
                }
                Ok(())
            },
        ],
    )?;
    let way = std::env::var("CUDA_MODULE_LOADING").unwrap_or_else(|_| "default".into());
    let what = ["own", "cuModuleLoadData and cuModuleGetFunction"];
    Ok(format!("{way}: {} kernels ready to launch: {}", names.len(), beside(what, times)))
}

/// A cubin of some megabytes, out of whatever library of this machine has one.
pub(crate) fn load_large(bench: &Bench) -> Outcome {
    let mut found = Vec::new();
    for prefix in
        ["libnccl.so", "libcusparse.so", "libcufft.so", "libtorch_cuda.so", "libcusolver.so"]
    {
        for place in PLACES {
            libraries(Path::new(place), prefix, 8, &mut found);
        }
    }
    let mut words = Vec::new();
    for path in &found {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let Some(cubin) = largest_cubin(bench, &bytes) else { continue };
        match loads(bench, &cubin, 5) {
            Ok(line) => words.push(format!("{}: {line}", path.display())),
            Err(error) => words.push(format!("{}: {} bytes: {error}", path.display(), cubin.len())),
        }
        if words.len() == 3 {
            break;
        }
    }
    if words.is_empty() {
        return Err("no library with a cubin of 4 to 200 MB for the device".into());
    }
    Ok(words.join("; "))
}

fn largest_cubin(bench: &Bench, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut best: Option<fatbin::RegionEntry<'_>> = None;
    for found in fatbin::walk(bytes, fatbin::Search::Never).flatten() {
        let fatbin::Container::Region(region) = found.container else { continue };
        let Ok(Some(selected)) = fatbin::select(region.entries(), bench.device.target()) else {
            continue;
        };
        let entry = selected.entry;
        let fits = entry.kind().is_machine_code() && selected.part.is_none();
        let size = entry.unpacked_size();
        if fits
            && (4 << 20..200 << 20).contains(&size)
            && best.is_none_or(|best| best.unpacked_size() < size)
        {
            best = Some(entry);
        }
    }
    Some(best?.unpack(1 << 30).ok()?.into_owned())
}

/// From the file's bytes to a kernel that has run.
pub(crate) fn first_launch(bench: &Bench) -> Outcome {
    let file = bench.read(CUBIN)?;
    let cubin = cubin_of(bench, &file)?;
    let once = |loader: CubinLoader| -> Result<(), Failure> {
        let image = bench.device.load_with(&cubin, loader)?;
        let kernel = bench.device.kernel(&image, "nothing")?;
        // SAFETY: the kernel does nothing.
        unsafe {
            kernel.launch(
                bench.device.queue(),
                &[],
                &NvLaunch { wait: true, ..NvLaunch::new(1, 32) },
            )?
        };
        Ok(())
    };
    let times = least(100, [&mut || once(CubinLoader::Own), &mut || once(CubinLoader::Driver)])?;
    Ok(beside(["own loader", "driver's"], times))
}

/// Launches of a kernel with four parameters, without waiting, by the driver's own call and by ours.
pub(crate) fn launch(bench: &Bench) -> Outcome {
    const CALLS: u32 = 1000;
    let cubin = cubin_of(bench, &bench.read(CUBIN)?)?;
    let memory = put(&bench.device, &[0f32; 32])?;
    let address = memory.address()?;
    let plain = Plain::load(bench.device.driver(), &cubin, "vector_add")?;
    let synchronize = || Ok::<_, Failure>(bench.device.synchronize()?);
    let mut words = Vec::new();
    for loader in [CubinLoader::Driver, CubinLoader::Own] {
        let image = bench.device.load_with(&cubin, loader)?;
        let kernel = bench.device.kernel(&image, "vector_add")?;
        let arguments = [
            Argument::Buffer(&memory),
            Argument::Buffer(&memory),
            Argument::Buffer(&memory),
            Argument::Value(Scalar::I32(32)),
        ];
        let shape = NvLaunch::new(1, 32);
        let times = least(
            20,
            [
                &mut || {
                    for _ in 0..CALLS {
                        // SAFETY: the kernel gets what it takes.
                        unsafe { kernel.launch(bench.device.queue(), &arguments, &shape)? };
                    }
                    synchronize()
                },
                &mut || {
                    for _ in 0..CALLS {
                        // SAFETY: as above.
                        unsafe { plain.launch(address, 32)? };
                    }
                    synchronize()
                },
                &mut || {
                    let (views, values) = ([&*memory; 3], [Scalar::I32(32)]);
                    let shape = Launch { grid: [1; 3], block: [32, 1, 1], wait: false };
                    for _ in 0..CALLS {
                        // SAFETY: as above.
                        unsafe { kernel.call(&views, &values, shape)? };
                    }
                    synchronize()
                },
            ],
        )?;
        let [ours, theirs, generic] = times.map(|time| time / CALLS);
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        words.push(format!(
            "{loader:?}: launch {ours:.2?}, cuLaunchKernel {theirs:.2?}: {ratio:.3} times as long; Program::call {generic:.2?}"
        ));
    }
    Ok(words.join("; "))
}

/// A kernel loaded and launched by plain calls of the driver.
struct Plain<'d> {
    driver: &'d Driver,
    function: cudarc::driver::sys::CUfunction,
}

impl<'d> Plain<'d> {
    fn load(driver: &'d Driver, cubin: &[u8], name: &str) -> Result<Self, Failure> {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        let name = CString::new(name)?;
        // SAFETY: a whole cubin, places of ours.
        unsafe {
            driver.cuModuleLoadData(&raw mut module, cubin.as_ptr().cast())?;
            driver.cuModuleGetFunction(&raw mut function, module, name.as_ptr())?;
        }
        Ok(Self { driver, function })
    }

    /// # Safety
    /// `address` is that of as many numbers.
    unsafe fn launch(&self, address: u64, mut count: i32) -> Result<(), Failure> {
        let mut addresses = [address; 3];
        let [a, b, c] = &mut addresses;
        let mut parameters: [*mut c_void; 4] = [
            ptr::from_mut(a).cast(),
            ptr::from_mut(b).cast(),
            ptr::from_mut(c).cast(),
            (&raw mut count).cast(),
        ];
        let none = ptr::null_mut::<*mut c_void>();
        // SAFETY: as the caller says; the legacy stream.
        unsafe {
            self.driver.cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                none.cast(),
                parameters.as_mut_ptr(),
                none.cast(),
            )?;
        }
        Ok(())
    }
}

/// Memory that was used before, from the allocator and from the driver's pool.
pub(crate) fn allocation(bench: &Bench) -> Outcome {
    const CALLS: u32 = 1000;
    let (driver, device) = (bench.device.driver(), &bench.device);
    let pool = device.allocator_of(MemoryKind::StreamOrdered);
    // the driver's pool gives memory back at every synchronization unless told to keep it: nothing synchronizes here
    let mut words = Vec::new();
    for size in [4 << 10, 1 << 20, 64 << 20] {
        let times = least(
            20,
            [
                &mut || {
                    for _ in 0..CALLS {
                        drop(device.buffer(size, Spec::new())?);
                    }
                    Ok(())
                },
                &mut || {
                    for _ in 0..CALLS {
                        let mut address = 0;
                        // SAFETY: a place of ours; the legacy stream.
                        unsafe {
                            driver.cuMemAllocAsync(
                                &raw mut address,
                                size as usize,
                                ptr::null_mut(),
                            )?;
                            driver.cuMemFreeAsync(address, ptr::null_mut())?;
                        }
                    }
                    Ok(())
                },
                &mut || {
                    for _ in 0..CALLS {
                        drop(Buffer::new(&pool, size, Spec::new())?);
                    }
                    Ok(())
                },
            ],
        )?;
        let [hit, asynchronous, kept] = times.map(|time| time / CALLS);
        let line = beside(["hit", "cuMemAllocAsync"], [hit, asynchronous]);
        words.push(format!("{size} bytes: {line}; hit of stream-ordered memory {kept:.2?}"));
    }
    Ok(words.join("; "))
}

/// Copies of 256 MiB, beside the driver's.
pub(crate) fn copies(bench: &Bench) -> Outcome {
    const SIZE: usize = 256 << 20;
    let (driver, device) = (bench.device.driver(), &bench.device);
    let memory = device.buffer(SIZE as u64, Spec::new())?;
    let other = device.buffer(SIZE as u64, Spec::new())?;
    let pinned = Buffer::new(&device.allocator_of(MemoryKind::Pinned), SIZE as u64, Spec::new())?;
    let mut plain = vec![1u8; SIZE];
    let mut back = vec![1u8; SIZE];
    let (address, fixed) = (memory.address()?, pinned.address()?);
    let target = other.address()?;
    let rate = |time: Duration| SIZE as f64 / time.as_secs_f64() / 1e9;
    let mut words = Vec::new();
    let mut say = |what: &str, [ours, theirs]: [Duration; 2]| {
        words.push(format!("{what} {:.1} GB/s, driver's {:.1}", rate(ours), rate(theirs)));
    };
    let bytes = plain.clone();
    let plainly = |outcome: Result<(), exec_nv::Error>| outcome.map_err(Failure::from);
    say(
        "host to device",
        least(
            10,
            [&mut || Ok(memory.copy_in(0, &bytes)?), &mut || {
                // SAFETY: both are so large.
                plainly(unsafe { driver.cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), SIZE) })
            }],
        )?,
    );
    say(
        "device to host",
        least(
            10,
            [&mut || Ok(memory.copy_out(0, &mut plain)?), &mut || {
                // SAFETY: both are so large.
                plainly(unsafe { driver.cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), address, SIZE) })
            }],
        )?,
    );
    say(
        "pinned to device",
        least(
            10,
            [&mut || Ok(exec_nv::NvDevice::copy(&pinned, &memory)?), &mut || {
                // SAFETY: both are so large.
                plainly(unsafe {
                    driver
                        .cuMemcpyDtoD_v2(address, fixed, SIZE)
                        .and_then(|()| driver.cuCtxSynchronize())
                })
            }],
        )?,
    );
    say(
        "on the device",
        least(
            10,
            [&mut || Ok(exec_nv::NvDevice::copy(&memory, &other)?), &mut || {
                // SAFETY: both are so large.
                plainly(unsafe {
                    driver
                        .cuMemcpyDtoD_v2(target, address, SIZE)
                        .and_then(|()| driver.cuCtxSynchronize())
                })
            }],
        )?,
    );
    Ok(words.join("; "))
}
