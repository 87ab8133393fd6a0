//! What outlives what: libraries that others close, modules and devices in a forked child.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::symbols::Symbols as _;
use exec_host::{Loader, Module, Process};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use system::{Compiled, compile, maps};

type Call = unsafe extern "C" fn(i32) -> i32;

fn call(module: &Module<Vec<u8>>, name: &str, argument: i32) -> i32 {
    // SAFETY: all functions that are called here have this type.
    unsafe { module.get::<Call>(name).unwrap()(argument) }
}

/// A shared library of a source, in a folder of its own.
fn shared(file: &str, source: &str) -> Option<(Compiled, CString)> {
    let object = compile("cc", &["-O1", "-fPIC"], source)?;
    let path = object.folder.path().join(file);
    let mut command = std::process::Command::new(system::of_this_machine("cc"));
    let linked = command.arg("-shared").arg("-o").arg(&path).arg(&object.object).status().unwrap();
    assert!(linked.success());
    Some((object, CString::new(path.to_str().unwrap()).unwrap()))
}

/// The library that others have opened for all stays as long as somebody uses it, and no longer.
#[test]
fn libraries_that_others_close() {
    const LIBRARY: &str = "static int seen; int closing_answer(int x) { seen += x; return seen + 40; }\n\
                           const int closing_constant = 7;\n";
    const USER: &str = "extern int closing_answer(int); extern const int closing_constant;\n\
                        int use(int x) { return closing_answer(x) + closing_constant; }\n";
    let library = shared("libclosing.so", LIBRARY);
    let user = compile("cc", &["-O1", "-fPIC"], USER);
    let (Some((_folder, name)), Some(user)) = (library, user) else {
        println!("skipped: libraries_that_others_close: needs cc");
        return;
    };
    let is_mapped = || maps().iter().any(|map| map.path.contains("libclosing"));
    // SAFETY: the library has no constructors.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null());
    let module = Loader::new().load([user.bytes], Process::new()).unwrap();
    // SAFETY: the handle is open, and nothing of it is used here.
    assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    assert!(is_mapped());
    assert_eq!(call(&module, "use", 2), 49);
    drop(module);
    assert!(!is_mapped(), "nobody uses it any more");
}

/// Where one library was there is another: what was known of the first is not said of the second. The system often puts them there.
#[test]
fn a_library_in_the_place_of_another() {
    let first = shared(
        "libfirst.so",
        "int first_place[1000] = {1}; int first_answer(void) { return first_place[1]; }\n",
    );
    let second = shared(
        "libsecond.so",
        "int second_place[1000] = {1}; int second_answer(int x) { return second_place[0] + x; }\n",
    );
    let user = compile(
        "cc",
        &["-O1", "-fPIC"],
        "extern int second_answer(int); int use(int x) { return second_answer(x); }\n",
    );
    let (Some((_first, first)), Some((_second, second)), Some(user)) = (first, second, user) else {
        println!("skipped: a_library_in_the_place_of_another: needs cc");
        return;
    };
    let open = |name: &CString| {
        // SAFETY: the libraries have no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null());
        handle
    };
    // SAFETY: it is open, and nothing of it is used here.
    let close = |handle| assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    let is_mapped = || maps().iter().any(|map| map.path.contains("libsecond"));
    let mut process = Process::new();
    let handle = open(&first);
    assert!(process.find("strlen".into()).is_some(), "it looks around");
    close(handle);
    let handle = open(&second);
    let module = Loader::new().load([user.bytes], &mut process).unwrap();
    close(handle);
    drop(process);
    assert!(is_mapped(), "the module keeps it");
    assert_eq!(call(&module, "use", 2), 3);
    drop(module);
    assert!(!is_mapped(), "nobody uses it any more");
}

/// Constants of a library are read when they are loaded: a library that was asked for one by name is never closed.
#[test]
fn constants_outlive_who_was_asked() {
    let external = {
        let mut process = Process::new();
        // SAFETY: the library of C++ may be opened by anybody.
        if unsafe { process.open("libstdc++.so.6") }.is_err() {
            println!("skipped: constants_outlive_who_was_asked: needs libstdc++");
            return;
        }
        process.find("_ZTVN10__cxxabiv117__class_type_infoE".into()).unwrap()
    };
    let address = external.address();
    assert!(maps().iter().any(|map| map.range.contains(&address)));
}

/// Runs `child` in a child, and gives the number that it ends with.
fn in_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: what the child does works in this test's process, which has no locks of others at stake that it needs.
    let id = unsafe { libc::fork() };
    if id == 0 {
        // SAFETY: a child that hangs ends.
        unsafe { libc::alarm(20) };
        let number = child();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(number) };
    }
    let mut status = 0;
    // SAFETY: the status is ours.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    libc::WEXITSTATUS(status)
}

const COUNTS: &str = "\
int counter;
int step(int x) { counter += x; return counter; }
__attribute__((destructor)) static void end(void) { counter = -1; }
";

const CHILD: &str = "HOIST_TEST_FORK";

/// In a process of its own: other tests have threads, whose locks a child would inherit.
#[test]
#[ignore = "needs to be started by another test"]
fn forks() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let object = compile("cc", &["-O1", "-fPIC"], COUNTS).unwrap().bytes;
    for is_dual in [false, true] {
        let loader = Loader::new().dual_mapping(is_dual).reuse_memory(true);
        let module = Arc::new(loader.load([object.clone()], Process::new()).unwrap());
        // SAFETY: there are no constructors.
        unsafe { module.initialize() };
        assert_eq!(call(&module, "step", 1), 1);
        let ended = in_child(|| {
            // its data are a copy; it loads and unloads; exceptions find their way
            let next = call(&module, "step", 1);
            let own = loader.load([object.clone()], module.clone().or(Process::new())).unwrap();
            let own = call(&own, "step", 5);
            let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(3)));
            drop(module.clone());
            next * 10 + own + i32::from(caught.is_err())
        });
        assert_eq!(ended, 26);
        assert_eq!(call(&module, "step", 1), 2, "the parent's data are its own");
        let module = Arc::into_inner(module).unwrap();
        let pages = module.extent();
        assert_eq!(
            in_child(|| (drop(module), 9).1),
            9,
            "unloaded in the child, destructors and all"
        );
        assert!(pages.1 > 0);
    }
    #[cfg(feature = "device")]
    {
        use exec_core::{Device as _, Launch, Program as _, Scalar, Spec};
        use exec_host::device::{HostDevice, HostOptions};
        let threads = std::num::NonZero::new(4);
        let device = HostDevice::new(HostOptions { threads, ..HostOptions::default() }).unwrap();
        let image = device.load(&object).unwrap();
        // SAFETY: there are no constructors.
        unsafe { image.initialize() };
        let program = device.program(&image, "step", None).unwrap();
        let buffer = device.buffer(64, Spec::new()).unwrap();
        let ended = in_child(|| {
            for launch in [Launch::ONCE, Launch::ONCE.waiting(), Launch::grid(3).waiting()] {
                // SAFETY: it adds a number.
                unsafe { program.call(&[], &[Scalar::I32(1)], launch) }.unwrap();
            }
            device.synchronize().unwrap();
            drop((buffer, program, image, device));
            5
        });
        assert_eq!(ended, 5);
    }
}

#[test]
fn children_have_copies() {
    if compile("cc", &["-O1"], COUNTS).is_none() {
        println!("skipped: children_have_copies: needs cc");
        return;
    }
    let mut command = system::itself();
    command.args(["--exact", "forks", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}

const INSIDE: &str = "HOIST_TEST_INSIDE";

/// Unloads what a thread is in, which its `unsafe` call promised not to happen.
#[test]
#[ignore = "needs to be started by another test"]
fn inside() {
    const SPINS: &str = "int spin(volatile int *seen) { *seen = 1; while (*seen); return 0; }";
    let Ok(order) = std::env::var(INSIDE) else { return };
    let (is_dual, is_kept) = (order.contains("dual"), order.contains("kept"));
    let object = compile("cc", &["-O1", "-fPIC"], SPINS).unwrap().bytes;
    let loader = Loader::new().dual_mapping(is_dual).reuse_memory(is_kept);
    let module = loader.load([object], Process::new()).unwrap();
    let spin = module.function("spin").unwrap();
    let seen: &'static AtomicI32 = Box::leak(Box::default());
    std::thread::spawn(move || {
        // SAFETY: the function has this type; that the module stays is what this process breaks.
        let spin: extern "C" fn(*mut i32) -> i32 = unsafe { std::mem::transmute(spin as usize) };
        spin(seen.as_ptr());
        std::process::exit(4)
    });
    while seen.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    drop(module);
    std::thread::sleep(std::time::Duration::from_secs(20));
    std::process::exit(3);
}

/// A thread that is inside of what is unloaded crashes, whatever becomes of the memory, and runs no other code.
#[test]
fn a_thread_inside_crashes() {
    if compile("cc", &["-O1"], COUNTS).is_none() {
        println!("skipped: a_thread_inside_crashes: needs cc");
        return;
    }
    for order in ["plain", "dual", "kept", "dual kept"] {
        let mut command = system::itself();
        command.args(["--exact", "inside", "--ignored", "--test-threads=1"]).env(INSIDE, order);
        let output = command.output().unwrap();
        let is_crash = system::is_ended_by(libc::SIGSEGV, output.status);
        assert!(is_crash, "{order}: {}", output.status);
    }
}
