//! Functions that crash, and the process that does not.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use std::sync::Arc;

use exec_core::{Device as _, Error, Launch, Program as _, Scalar, Signal, Spec};
use exec_host::device::{HostDevice, HostImage, HostOptions};
use system::compile;

const SOURCE: &str = r"
    #include <string.h>
    void null(int *to) { *(volatile int *)8 = 1; }
    void constant(int *to) { *(char *)(long)null = 1; }
    void trap(int *to) { __builtin_trap(); }
    void divide(int *to, int by) { to[0] = 7 / by; }
    static __attribute__((noinline)) int deep(volatile char *above, int depth) {
        volatile char here[4096]; here[0] = above[0] + depth;
        return deep(here, depth + 1) + here[0];
    }
    void overflow(int *to) { to[0] = deep((char *)to, 0); }
    static __attribute__((noinline)) void inner(int *to, long at) { to[at] = 1; }
    void outer(int *to, long at) { to[0] = 2; inner(to, at); to[0] = 3; }
    void jump(int *to, long at) { ((void (*)(void))at)(); }
    void copy(int *to, long at) { memcpy(to, (void *)at, 4000); }
    void some(int *to, unsigned index) { if (index == 50) *(volatile int *)16 = 1; }
    void good(int *to) { to[0] = 42; }
";

/// A `long`.
const fn word(value: i64) -> Scalar {
    if cfg!(target_pointer_width = "64") { Scalar::I64(value) } else { Scalar::I32(value as i32) }
}

fn device(test: &str) -> Option<(HostDevice, Arc<HostImage>)> {
    // calls that are calls
    let options = ["-O2", "-fPIC", "-fno-optimize-sibling-calls", "-fno-builtin"];
    let Some(object) = compile("gcc", &options, SOURCE) else {
        println!("skipped: {test}: needs gcc");
        return None;
    };
    let device = HostDevice::new(HostOptions { guard: true, ..HostOptions::default() }).unwrap();
    let image = device.load(&object.bytes).unwrap();
    Some((device, image))
}

struct Crash {
    signal: Signal,
    address: u64,
    function: String,
    offset: Option<u64>,
}

/// Calls a function that crashes.
fn crash(
    device: &HostDevice,
    image: &Arc<HostImage>,
    name: &str,
    values: &[Scalar],
    launch: Launch,
) -> Crash {
    let program = device.program(image, name, None).unwrap();
    let buffer = device.buffer(4096, Spec::new().zeroed()).unwrap();
    // SAFETY: what it does, it does to itself.
    let outcome = unsafe { program.call(&[&buffer], values, launch) };
    let error = match outcome {
        Ok(_) => device.synchronize().unwrap_err(),
        Err(error) => error,
    };
    // it sticks
    // SAFETY: does not run.
    let again = unsafe { program.call(&[&buffer], values, launch) };
    assert!(matches!(again, Err(Error::Fault { .. })));
    assert!(matches!(device.buffer(1, Spec::new()), Err(Error::Fault { .. })));
    assert!(matches!(device.synchronize(), Err(Error::Fault { .. })));
    assert!(matches!(device.reset(), Some(Error::Fault { .. })));
    device.synchronize().unwrap();
    // and the device is as good as before
    let good = device.program(image, "good", None).unwrap();
    // SAFETY: it writes one number.
    unsafe { good.call(&[&buffer], &[], Launch::ONCE.waiting()) }.unwrap();
    assert_eq!(buffer.host().unwrap().first(), Some(&42));
    let Error::Fault { signal, address, function, offset, .. } = error else { panic!("{error:?}") };
    Crash { signal, address, function, offset }
}

#[test]
fn crashes_are_errors_that_say_where() {
    let Some((device, image)) = device("crashes_are_errors_that_say_where") else { return };
    for launch in [Launch::ONCE, Launch::ONCE.waiting()] {
        let crash = |name, values: &[Scalar]| crash(&device, &image, name, values, launch);
        let found = crash("null", &[]);
        assert_eq!((found.signal, found.address, &*found.function), (Signal::Access, 8, "null"));
        assert!(found.offset.unwrap() < 30);
        let found = crash("constant", &[]);
        assert_eq!(
            (found.signal, found.address),
            (Signal::Access, image.module().address("null").unwrap())
        );
        assert_eq!(found.function, "constant");
        let found = crash("trap", &[]);
        assert_eq!((found.signal, &*found.function), (Signal::Instruction, "trap"));
        if cfg!(target_arch = "x86_64") {
            let found = crash("divide", &[Scalar::I32(0)]);
            assert_eq!((found.signal, &*found.function), (Signal::Arithmetic, "divide"));
        }
        let found = crash("overflow", &[]);
        assert_eq!((found.signal, &*found.function), (Signal::Access, "deep"));
        // in a function that is not visible outside
        let is_64 = cfg!(target_pointer_width = "64");
        let found = crash("outer", &[word(if is_64 { 1 << 40 } else { 1 << 29 })]);
        assert_eq!((found.signal, &*found.function), (Signal::Access, "inner"));
        // outside of the image: only who called is known
        let found = crash("jump", &[word(16)]);
        assert_eq!((&*found.function, found.offset, found.address), ("jump", None, 16));
        let found = crash("copy", &[word(24)]);
        assert_eq!((&*found.function, found.offset), ("copy", None));
    }
}

#[test]
fn a_crash_in_a_grid_is_one_error() {
    let Some((device, image)) = device("a_crash_in_a_grid_is_one_error") else { return };
    for launch in [Launch::grid(100), Launch::grid(100).waiting()] {
        for _ in 0..20 {
            let found = crash(&device, &image, "some", &[], launch);
            assert_eq!((found.address, &*found.function), (16, "some"));
        }
    }
}

#[test]
fn messages_say_what_and_where() {
    let Some((device, image)) = device("messages_say_what_and_where") else { return };
    let program = device.program(&image, "null", None).unwrap();
    let buffer = device.buffer(4, Spec::new()).unwrap();
    // SAFETY: what it does, it does to itself.
    let error = unsafe { program.call(&[&buffer], &[], Launch::ONCE.waiting()) }.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("memory access at 0x8, in null+0x"), "{text}");
}

#[test]
#[ignore = "needs to be started by another test"]
fn our_own_crash() {
    if std::env::var_os("HOIST_TEST_CRASH").is_none() {
        return;
    }
    let Some((_device, _image)) = device("our_own_crash") else { return };
    // SAFETY: this is not sound: it is to crash, outside of any guarded call.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

#[test]
fn other_crashes_stay_crashes() {
    let Some(_) = device("other_crashes_stay_crashes") else { return };
    let mut command = system::itself();
    command.args(["--exact", "our_own_crash", "--ignored"]).env("HOIST_TEST_CRASH", "1");
    let status = command.output().unwrap().status;
    assert!(system::is_ended_by(11, status), "{status}");
}
