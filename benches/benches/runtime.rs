//! What the runtime costs around a function that does nothing, beside its floor: one row for each thing, nanoseconds, the median.
//!
//! `benches/peers/runtime.py` runs this and tinygrad, and puts them side by side.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use exec_core::{
    Allocator as _, Buffer, Compiler as _, Device as _, DiskCache, Launch, Mode, NoCache,
    Program as _, Spec, Value,
};
use exec_host::compile::GccCompiler;
use exec_host::device::{HostDevice, HostOptions};
use exec_host::dynamic::Type;
use exec_host::{Module, Process};

const SOURCE: &str = "void nothing(void *a, void *b, void *c, long n) {}";

/// Prints the median of many rounds. A round is short, so that on a busy machine most are not interrupted. With a word on the
/// command line, only rows that have it.
fn row(name: &str, mut what: impl FnMut()) {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    if words.next().is_some_and(|word| !name.contains(&word)) {
        return;
    }
    let mut round = |times: u32| {
        let start = Instant::now();
        (0..times).for_each(|_| what());
        start.elapsed().as_nanos() as f64 / f64::from(times)
    };
    let once = (0..5).map(|_| round(1)).fold(f64::INFINITY, f64::min);
    let once = if once < 10_000.0 { round(20).min(once) } else { once };
    let times = (100_000.0 / once).clamp(1.0, 100_000.0) as u32;
    let rounds = (2e9 / once).clamp(9.0, 301.0) as u32;
    let mut rounds: Vec<f64> = (0..rounds).map(|_| round(times)).collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name}\t{:.1}", rounds[rounds.len() / 2]);
}

/// What a load needs of the system at the least: a page of code and one of data, mapped, written, protected and given back.
fn pages(is_mapped_anew: bool) {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
    use std::cell::Cell;
    thread_local!(static KEPT: Cell<*mut core::ffi::c_void> = const { Cell::new(core::ptr::null_mut()) });
    let (size, page) = (8192, 4096);
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let fresh = || {
        // SAFETY: touches no existing mapping.
        unsafe { mmap_anonymous(core::ptr::null_mut(), size, access, MapFlags::PRIVATE) }
            .expect("memory")
    };
    let start = if is_mapped_anew || KEPT.get().is_null() { fresh() } else { KEPT.get() };
    // SAFETY: the pages are ours, and writable before they are protected.
    unsafe {
        for at in [0, page] {
            start.cast::<u8>().add(at).write_volatile(0xc3);
        }
        let execute = MprotectFlags::READ | MprotectFlags::EXEC;
        mprotect(start, page, execute).expect("permission");
        mprotect(start.add(page), page, MprotectFlags::READ).expect("permission");
        if is_mapped_anew {
            munmap(start, size).expect("no error");
        } else {
            mprotect(start, size, MprotectFlags::READ | MprotectFlags::WRITE).expect("permission");
            KEPT.set(start);
        }
    }
}

fn main() {
    let compiler = GccCompiler::find(&NoCache).expect("gcc");
    let object = compiler.compile(SOURCE).expect("an object");
    let mut process = Process::new();
    let module = Module::load([&object[..]], &mut |name| process.find(name)).expect("a module");

    type Nothing = unsafe extern "C" fn(u64, u64, u64, i64);
    // SAFETY: the source is above.
    let typed = unsafe { module.get::<Nothing>("nothing") }.expect("a function");
    extern "C" fn local(_: u64, _: u64, _: u64, _: i64) {}
    let floor: Nothing = black_box(local);
    // SAFETY: neither does anything.
    row("call: floor, a function of this program", || unsafe { floor(1, 2, 3, black_box(4)) });
    // SAFETY: as above.
    row("call: typed", || unsafe { typed(1, 2, 3, black_box(4)) });
    let types = [Type::U64, Type::U64, Type::U64, Type::I64];
    let dynamic = module.dynamic("nothing", &types, Type::Void).expect("a function");
    let values = [Value::U64(1), Value::U64(2), Value::U64(3), Value::I64(4)];
    row("call: dynamic", || {
        // SAFETY: it does nothing.
        let _ = black_box(unsafe { dynamic.call(&values) });
    });

    for guard in [false, true] {
        let device =
            HostDevice::new(HostOptions { guard, ..HostOptions::default() }).expect("a device");
        let image = device.load(&object).expect("an image");
        let program = device.program(&image, "nothing", None).expect("a function");
        let [a, b, c] = [(); 3].map(|()| device.buffer(4096, Spec::new()).expect("memory"));
        let kind = if guard { "guarded program" } else { "program" };
        row(&format!("call: {kind}, waiting"), || {
            // SAFETY: it does nothing.
            let _ = black_box(unsafe {
                program.call(&[&a, &b, &c], &[Value::I64(4)], Launch::ONCE.waiting())
            });
        });
        if guard {
            continue;
        }
        row("queue: submit to completion", || {
            // SAFETY: as above.
            let event = unsafe { program.submit(&[&a, &b, &c], &[Value::I64(4)], Launch::ONCE) };
            let _ = event.expect("an event").wait();
        });
        row("1000 calls queued and waited for", || {
            for _ in 0..1000 {
                // SAFETY: as above.
                let _ = black_box(unsafe {
                    program.call(&[&a, &b, &c], &[Value::I64(4)], Launch::ONCE)
                });
            }
            device.synchronize().expect("no error");
        });
        row("load: floor, mapped anew", || pages(true));
        row("load: floor, mapped before", || pages(false));
        let load = |object: &[u8], name| {
            let image = device.load(object).expect("an image");
            let program = device.program(&image, name, None).expect("a function");
            // SAFETY: both functions do nothing with a number this small.
            let _ =
                unsafe { program.call(&[&a, &b, &c], &[Value::I64(4)], Launch::ONCE.waiting()) };
        };
        row("load: bytes to first call", || load(&object, "nothing"));
        if let Some(path) = std::env::var_os("HOIST_BENCH_LARGE") {
            let large = std::fs::read(path).expect("an object");
            row("large: bytes to first call", || load(&large, "f4999"));
        }
        let allocator = Arc::clone(device.allocator());
        row("memory: floor, malloc and free", || drop(black_box(Vec::<u8>::with_capacity(4096))));
        row("memory: allocate and release, kept", || {
            let memory = allocator.allocate(black_box(4096), Spec::new()).expect("memory");
            allocator.release(memory).expect("no error");
        });
        row("memory: buffer and free, kept", || {
            let buffer = Buffer::new(&allocator, black_box(4096), Spec::new()).expect("memory");
            buffer.free().expect("no error");
        });
    }

    let folder = std::env::temp_dir().join(format!("hoist-bench-{}", std::process::id()));
    let cache = DiskCache::open(&folder, Mode::ReadWrite, 1 << 20).expect("a cache");
    compiler.compile_cached(SOURCE, &cache).expect("an object");
    let file = folder.join("object");
    std::fs::write(&file, &object).expect("a file");
    row("cache: floor, read of the file", || drop(black_box(std::fs::read(&file))));
    row("cache: hit, from memory", || drop(black_box(compiler.compile_cached(SOURCE, &cache))));
    let cache = cache.with_memory(0);
    row("cache: hit, from disk", || drop(black_box(compiler.compile_cached(SOURCE, &cache))));
    drop(cache);
    let _ = std::fs::remove_dir_all(folder);
}
