//! This machine as a device: memory, calls, order, grids.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use exec_core::{
    Allocator as _, Buffer, Compiler as _, Device as _, Error, External, Kind, Launch, Limits,
    NoCache, Parameter, Program as _, Signature, Spec, Type, Value, copy,
};
use exec_host::Loader;
use exec_host::compile::GccCompiler;
use exec_host::device::{HostDevice, HostImage, HostOptions};

const SOURCE: &str = r"
    void add(float *to, const float *a, const float *b, unsigned count) {
        for (unsigned i = 0; i < count; i++) to[i] = a[i] + b[i];
    }
    void fill(unsigned *to, unsigned value, unsigned index) { to[index] = value + index; }
    void scale(double *to, signed char many, short small, float by, double plus, long long last) {
        to[0] = to[0] * by + plus + many + small + last;
    }
    void next(volatile long *at) { long was = *at; for (volatile int i = 0; i < 1000; i++); *at = was * 3 + 1; }
    void gated(volatile long *at, volatile long *gate) { while (!*gate); *at = 1; }
    void many(long *to, long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,
              long m, long n, long o, long p, long q, double r) {
        *to = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + (long)r;
    }
    int not_a_function;
";

fn device() -> Option<(HostDevice, Arc<HostImage>)> {
    let Ok(compiler) = GccCompiler::find(&NoCache) else {
        println!("skipped: device: needs gcc");
        return None;
    };
    let options = HostOptions { memory: Some(1 << 28), ..HostOptions::default() };
    let device = HostDevice::new(options).unwrap();
    let image = device.load(&compiler.compile(SOURCE).unwrap()).unwrap();
    Some((device, image))
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[test]
fn memory_is_aligned_zeroed_and_limited() {
    let keep = Limits { bytes: 1 << 20, number: 10 };
    let options = HostOptions { memory: Some(1 << 22), keep, ..HostOptions::default() };
    let device = HostDevice::new(options).unwrap();
    assert_eq!((device.kind(), device.memory().unwrap().total), (Kind::Host, 1 << 22));
    for alignment in [1, 64, 4096, 1 << 16, 1 << 21] {
        for size in [1, 100, 1 << 18] {
            let spec = Spec::new().aligned(alignment).zeroed().not_kept();
            let buffer = device.buffer(size, spec).unwrap();
            assert!(buffer.address().unwrap().is_multiple_of(alignment));
            assert!(buffer.host().unwrap().iter().all(|byte| *byte == 0));
            buffer.host_mut().unwrap().fill(1);
        }
    }
    for size in [(1 << 22) + 1, 1 << 62, u64::MAX] {
        assert!(
            matches!(device.buffer(size, Spec::new()), Err(Error::OutOfMemory { size: found }) if found == size)
        );
    }
    assert!(matches!(device.buffer(0, Spec::new()), Err(Error::Empty)));
    let impossible = Spec::new().aligned(1 << 63);
    assert!(matches!(device.buffer(1, impossible), Err(Error::OutOfMemory { .. })));
    assert!(matches!(device.buffer(1, Spec::new().uncached()), Err(Error::Unsupported { .. })));
    assert_eq!(device.allocator().inner().used(), 0);
    // what was used before is zeroed, too
    let buffer = device.buffer(1000, Spec::new()).unwrap();
    buffer.host_mut().unwrap().fill(7);
    drop(buffer);
    let buffer = device.buffer(1000, Spec::new().zeroed()).unwrap();
    assert_eq!(device.allocator().figures().hits, 1);
    assert!(buffer.host().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn memory_of_the_caller_stays_the_callers() {
    let device = HostDevice::new(HostOptions::default()).unwrap();
    let mut numbers = vec![1u64; 100];
    // SAFETY: used through the buffer alone, until that is dropped.
    let external = unsafe { External::new(numbers.as_mut_ptr().expose_provenance() as u64, 800) };
    let address = external.address();
    let spec = Spec::new().aligned(8);
    let buffer = Buffer::external(device.allocator(), external, spec).unwrap();
    assert_eq!((buffer.address().unwrap(), buffer.size()), (address, 800));
    buffer.copy_in(8, &2u64.to_ne_bytes()).unwrap();
    buffer.free().unwrap();
    assert_eq!((numbers[0], numbers[1], numbers[2]), (1, 2, 1));
    assert_eq!(device.allocator().figures().number, 0);
}

#[test]
fn host_views_and_calls_keep_apart() {
    let Some((device, image)) = device() else { return };
    let gated = device.program(&image, "gated", None).unwrap();
    let buffer = device.buffer(8, Spec::new().zeroed()).unwrap();
    let gate = AtomicI64::new(0);
    let values = [Value::Pointer(gate.as_ptr().cast())];
    // SAFETY: it takes one buffer of 8 bytes, and a number that lives longer.
    let event = unsafe { gated.submit(&[&buffer], &values, Launch::ONCE) }.unwrap();
    assert!(matches!(buffer.host(), Err(Error::InUse)));
    assert!(matches!(buffer.copy_in(0, &[0]), Err(Error::InUse)));
    let view = buffer.whole();
    buffer.free().unwrap();
    // the memory is not given to anybody else
    let other = device.buffer(8, Spec::new()).unwrap();
    assert_eq!(device.allocator().figures().hits, 0);
    assert!(!event.is_done());
    gate.store(1, Ordering::Release);
    assert!(event.wait().unwrap().as_nanos() > 0);
    assert!(event.is_done());
    device.synchronize().unwrap();
    assert_eq!(device.allocator().figures().number, 1);
    // SAFETY: it does not run.
    let freed = unsafe { gated.call(&[&view], &values, Launch::ONCE) };
    assert!(matches!(freed, Err(Error::Freed)));
    let view = other.host().unwrap();
    // SAFETY: it does not run.
    let lent = unsafe { gated.call(&[&other], &values, Launch::ONCE) };
    assert!(matches!(lent, Err(Error::InUse)));
    drop(view);
}

#[test]
fn arguments_of_every_sort() {
    let Some((device, image)) = device() else { return };
    let add = device.program(&image, "add", None).unwrap();
    let [to, a, b] = [(); 3].map(|()| device.buffer(4000, Spec::new()).unwrap());
    a.copy_in(0, &bytes(&(0..1000u16).map(f32::from).collect::<Vec<_>>())).unwrap();
    b.copy_in(0, &bytes(&[0.5; 1000])).unwrap();
    // SAFETY: three buffers of 1000 floats.
    let time = unsafe { add.call(&[&to, &a, &b], &[Value::U32(1000)], Launch::ONCE.waiting()) };
    assert!(time.unwrap().is_some());
    let mut last = [0; 4];
    device.read(&to, 3996, &mut last).unwrap();
    assert_eq!(f32::from_ne_bytes(last), 999.5);
    // a view, and no waiting
    // SAFETY: within three buffers.
    let time =
        unsafe { add.call(&[&to.view(400, 40).unwrap(), &a, &b], &[Value::U32(10)], Launch::ONCE) };
    assert!(time.unwrap().is_none());
    device.read(&to, 400, &mut last).unwrap();
    assert_eq!(f32::from_ne_bytes(last), 0.5);

    let scale = device.program(&image, "scale", None).unwrap();
    let place = device.buffer(8, Spec::new()).unwrap();
    place.copy_in(0, &3f64.to_ne_bytes()).unwrap();
    let values =
        [Value::I8(-1), Value::I16(-200), Value::F32(0.5), Value::F64(0.25), Value::I64(1 << 40)];
    // SAFETY: as the source has it.
    unsafe { scale.call(&[&place], &values, Launch::ONCE.waiting()) }.unwrap();
    let mut result = [0; 8];
    place.copy_out(0, &mut result).unwrap();
    assert_eq!(f64::from_ne_bytes(result), 1.75 - 201.0 + (1u64 << 40) as f64);

    let many = device.program(&image, "many", None).unwrap();
    let mut values: Vec<Value> = (1..=17).map(Value::I64).collect();
    values.push(Value::F64(1000.0));
    // SAFETY: as the source has it.
    unsafe { many.call(&[&place], &values, Launch::ONCE.waiting()) }.unwrap();
    place.copy_out(0, &mut result).unwrap();
    assert_eq!(i64::from_ne_bytes(result), 17 * 18 / 2 + 1000);
}

#[test]
fn wrong_arguments_do_not_run() {
    let Some((device, image)) = device() else { return };
    let other = HostDevice::new(HostOptions::default()).unwrap();
    let parameters = [Parameter::Buffer(8), Parameter::Value(Type::F32)];
    let program = device.program(&image, "next", Some(Signature::new(parameters))).unwrap();
    let [small, large] = [7, 8].map(|size| device.buffer(size, Spec::new()).unwrap());
    let foreign = other.buffer(8, Spec::new()).unwrap();
    let one = [Value::F32(1.0)];
    // SAFETY: none of them runs.
    let call = |buffer: &Buffer<_>, values: &[Value], launch| unsafe {
        program.call(&[buffer], values, launch).unwrap_err()
    };
    assert!(matches!(
        call(&large, &[], Launch::ONCE),
        Error::ArgumentCount { expected: 2, found: 1 }
    ));
    assert!(matches!(call(&small, &one, Launch::ONCE), Error::Argument { index: 0, .. }));
    assert!(matches!(
        call(&large, &[Value::I32(1)], Launch::ONCE),
        Error::Argument { index: 1, .. }
    ));
    assert!(matches!(call(&foreign, &one, Launch::ONCE), Error::OtherDevice { .. }));
    assert!(matches!(call(&large, &one, Launch::grid(0)), Error::Launch { .. }));
    let launch = Launch { grid: [1, 2, 1], ..Launch::ONCE };
    assert!(matches!(call(&large, &one, launch), Error::Launch { .. }));
    for name in ["nothing", "not_a_function"] {
        let missing = device.program(&image, name, None);
        assert!(matches!(missing, Err(Error::NoFunction { name: found, .. }) if found == name));
    }
    assert!(matches!(device.load(b"no object"), Err(Error::Load(_))));
    let missing = "void nowhere_to_be_found(void); void f(void) { nowhere_to_be_found(); }";
    let missing = GccCompiler::find(&NoCache).unwrap().compile(missing).unwrap();
    let refused = device.load(&missing).unwrap_err().to_string();
    let is_named = refused.contains("nowhere_to_be_found") && refused.contains("section .text: ");
    assert!(is_named, "{refused}");
    // and nothing sticks
    device.synchronize().unwrap();
    assert_eq!(device.allocator().figures().used, 256 * 2);
}

#[test]
fn calls_keep_their_order() {
    let Some((device, image)) = device() else { return };
    let next = device.program(&image, "next", None).unwrap();
    let place = device.buffer(8, Spec::new().zeroed()).unwrap();
    let mut expected = 0i64;
    for round in 0..2000 {
        expected = expected.wrapping_mul(3).wrapping_add(1);
        let launch = if round % 7 == 0 { Launch::ONCE.waiting() } else { Launch::ONCE };
        // SAFETY: one buffer of 8 bytes.
        unsafe { next.call(&[&place], &[], launch) }.unwrap();
    }
    let mut result = [0; 8];
    device.read(&place, 0, &mut result).unwrap();
    assert_eq!(i64::from_ne_bytes(result), expected);
}

#[test]
fn a_grid_is_called_once_for_each_index() {
    let Some((device, image)) = device() else { return };
    let fill = device.program(&image, "fill", None).unwrap();
    for count in [1u32, 2, 3, 1000] {
        let to = device.buffer(u64::from(count) * 4, Spec::new().zeroed()).unwrap();
        for base in [10, 20] {
            // SAFETY: a buffer with a place for each index.
            unsafe { fill.call(&[&to], &[Value::U32(base)], Launch::grid(count)) }.unwrap();
            device.synchronize().unwrap();
            let view = to.host().unwrap();
            let numbers = view.as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes));
            assert!(numbers.eq((0..count).map(|index| base + index)));
        }
    }
}

#[test]
fn many_threads_use_one_device() {
    let Some((device, image)) = device() else { return };
    let next = device.program(&image, "next", None).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (device, next) = (&device, &next);
            threads.spawn(move || {
                for round in 0..300u32 {
                    let place = device.buffer(8, Spec::new().zeroed()).unwrap();
                    let launch = if (round + thread) % 2 == 0 {
                        Launch::ONCE.waiting()
                    } else {
                        Launch::ONCE
                    };
                    // SAFETY: one buffer of 8 bytes.
                    let event = unsafe { next.submit(&[&place], &[], launch) }.unwrap();
                    if round % 3 == 0 {
                        place.free().unwrap();
                        continue;
                    }
                    event.wait().unwrap();
                    let mut result = [0; 8];
                    place.copy_out(0, &mut result).unwrap();
                    assert_eq!(i64::from_ne_bytes(result), 1);
                }
            });
        }
    });
    device.synchronize().unwrap();
    assert_eq!(device.allocator().figures().used, 0);
}

#[test]
fn dropping_a_device_runs_what_is_queued() {
    let Some((device, image)) = device() else { return };
    let gated = device.program(&image, "gated", None).unwrap();
    let place = device.buffer(8, Spec::new().zeroed()).unwrap();
    let gate = Arc::new(AtomicI64::new(0));
    let values = [Value::Pointer(gate.as_ptr().cast())];
    // SAFETY: one buffer of 8 bytes, and a number that lives longer.
    let event = unsafe { gated.submit(&[&place], &values, Launch::ONCE) }.unwrap();
    let open = Arc::clone(&gate);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        open.store(1, Ordering::Release);
    });
    drop((device, image, gated));
    assert!(event.is_done() && event.wait().is_ok());
    assert_eq!(place.host().unwrap()[0], 1);
    opener.join().unwrap();
}

#[test]
fn events_are_waited_for_while_their_device_goes() {
    let Ok(compiler) = GccCompiler::find(&NoCache) else {
        return println!("skipped: events_are_waited_for_while_their_device_goes: needs gcc");
    };
    let object = compiler.compile(SOURCE).unwrap();
    for round in 0..50 {
        let device = HostDevice::new(HostOptions::default()).unwrap();
        let next = device.program(&device.load(&object).unwrap(), "next", None).unwrap();
        let place = device.buffer(8, Spec::new().zeroed()).unwrap();
        let submit = |_| {
            // SAFETY: one buffer of 8 bytes.
            unsafe { next.submit(&[&place], &[], Launch::ONCE) }.unwrap()
        };
        let events: Vec<_> = (0..20).map(submit).collect();
        std::thread::scope(|threads| {
            for events in events.rchunks(7) {
                threads.spawn(|| assert!(events.iter().all(|event| event.wait().is_ok())));
            }
            if round % 2 == 0 {
                device.synchronize().unwrap();
            }
            drop((device, next));
        });
        let mut result = [0; 8];
        place.copy_out(0, &mut result).unwrap();
        assert_eq!(i64::from_ne_bytes(result), (3i64.pow(20) - 1) / 2);
    }
}

#[test]
fn images_are_loaded_as_the_loader_has_it() {
    let Ok(compiler) = GccCompiler::find(&NoCache) else {
        return println!("skipped: images_are_loaded_as_the_loader_has_it: needs gcc");
    };
    let object = compiler.compile(SOURCE).unwrap();
    for loader in [Loader::new(), Loader::new().dual_mapping(true)] {
        let device = HostDevice::with_loader(HostOptions::default(), loader).unwrap();
        for _ in 0..3 {
            let image = device.load(&object).unwrap();
            let fill = device.program(&image, "fill", None).unwrap();
            let to = device.buffer(4, Spec::new()).unwrap();
            // SAFETY: a buffer with a place for the only index.
            unsafe { fill.call(&[&to], &[Value::U32(7)], Launch::ONCE.waiting()) }.unwrap();
            assert_eq!(*to.host().unwrap(), 7u32.to_ne_bytes());
        }
    }
}

#[test]
fn devices_share_memory() {
    let [one, other] = [(); 2].map(|()| HostDevice::new(HostOptions::default()).unwrap());
    let (from, to) =
        (one.buffer(100, Spec::new()).unwrap(), other.buffer(100, Spec::new()).unwrap());
    from.host_mut().unwrap().fill(9);
    copy(&from, &to).unwrap();
    assert!(to.host().unwrap().iter().all(|byte| *byte == 9));
    let mapped = from.view(10, 10).unwrap().map_on(other.allocator()).unwrap();
    assert_eq!(mapped.address(), from.address().unwrap() + 10);
    assert!(matches!(from.host(), Err(Error::InUse)));
    assert_ne!(one.id(), other.allocator().device());
}
