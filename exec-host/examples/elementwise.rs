//! What a JIT author would start from: a kernel is written as C, compiled (or taken from the cache), loaded, and run over
//! buffers on all cores; the result is checked.
//!
//!     cargo run --release -p exec-host --features compile,device --example elementwise -- 'a * b + 1.0f'

use std::error::Error;

use exec_core::{
    CacheMode, Compiler as _, Device as _, DiskCache, Launch, Parameter, Program as _, Scalar,
    Signature, Spec, Type, default_folder,
};
use exec_host::compile::{ClangCompiler, GccCompiler};
use exec_host::device::{HostDevice, HostOptions};

/// Numbers in a buffer, and how many of them a call works on.
const COUNT: u32 = 1 << 24;
const CHUNK: u32 = 1 << 16;

/// The kernel: each call of the grid does a chunk.
fn source(expression: &str) -> String {
    format!(
        "void kernel(float *restrict to, const float *restrict x, const float *restrict y, unsigned chunk, unsigned index) {{
            for (unsigned long i = (unsigned long)index * chunk, end = i + chunk; i < end; i++) {{
                const float a = x[i], b = y[i];
                to[i] = {expression};
            }}
        }}"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1);
    let expression = given.as_deref().unwrap_or("a * b + 1.0f");

    // compile
    let folder = default_folder().unwrap_or_else(std::env::temp_dir);
    let cache = DiskCache::open(&folder, CacheMode::ReadWrite, 1 << 28)?;
    let source = source(expression);
    let compiled = match ClangCompiler::find(&cache) {
        Ok(clang) => clang.compile_cached(&source, &cache)?,
        Err(_) => GccCompiler::find(&cache)?.compile_cached(&source, &cache)?,
    };
    println!("{} bytes from the {:?}", compiled.image.len(), compiled.origin);

    // load
    let device = HostDevice::new(HostOptions { guard: true, ..HostOptions::default() })?;
    let size = u64::from(COUNT) * 4;
    let parameters = [
        Parameter::Buffer(size),
        Parameter::Buffer(size),
        Parameter::Buffer(size),
        Parameter::Value(Type::U32),
    ];
    let image = device.load(&compiled.image)?;
    let kernel = device.program(&image, "kernel", Some(Signature::new(parameters)))?;

    // run
    let [to, x, y] = [
        device.buffer(size, Spec::new())?,
        device.buffer(size, Spec::new())?,
        device.buffer(size, Spec::new())?,
    ];
    for (buffer, step) in [(&x, 0.25f32), (&y, 0.5)] {
        for (index, number) in buffer.host_mut()?.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *number = ((index % 1000) as f32 * step).to_ne_bytes();
        }
    }
    let launch = Launch::grid(COUNT / CHUNK).waiting();
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        // SAFETY: the kernel is the one above; its calls write different chunks, all inside of the buffers.
        let time = unsafe { kernel.call(&[&to, &x, &y], &[Scalar::U32(CHUNK)], launch)? };
        best = best.min(time.map_or(best, |time| time.as_secs_f64()));
    }
    println!("{:.1} GB/s", 3.0 * size as f64 / best / 1e9);

    // check
    if given.is_none() {
        let result = to.host()?;
        for (index, number) in result.as_chunks::<4>().0.iter().enumerate() {
            let step = (index % 1000) as f32;
            // the compiler may round once where this rounds twice
            let (found, expected) = (f32::from_ne_bytes(*number), step * 0.25 * (step * 0.5) + 1.0);
            if (found - expected).abs() > expected * 1e-6 {
                return Err(format!("number {index} is {found}, expected {expected}").into());
            }
        }
        println!("{COUNT} numbers are right");
    }
    println!("{:?}", device.allocator().statistics());
    Ok(())
}
