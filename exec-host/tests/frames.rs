//! Exceptions and panics that cross loaded frames, and backtraces through them: on many threads, while others load and unload.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use core::ffi::c_void;
use exec_host::symbols::{Archive, Symbols as _};
use exec_host::{Loader, Module, Process};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::Arc;
use system::{compile, extent};

/// Throws in one object, with a frame to clean up in another.
const THROWER: &str = "\
struct Odd { int value; };
extern \"C\" int check(int x) { if (x & 1) throw Odd{x}; return x; }
";
const CATCHER: &str = "\
struct Odd { int value; };
extern \"C\" int check(int);
extern \"C\" { int cleaned = 0; }
struct Guard { ~Guard() { __atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED); } };
static int deeper(int x) { Guard guard; return check(x) + 1; }
extern \"C\" int guarded(int x) { try { return deeper(x); } catch (Odd &odd) { return -odd.value; } }
extern \"C\" int through(int x, int (*back)(int)) { Guard guard; return back(x) + 1; }
";

/// The two as modules of their own, which share the type by its name only.
fn load(options: &[&str]) -> Option<Arc<Module<Vec<u8>>>> {
    let [thrower, catcher] = [THROWER, CATCHER].map(|source| compile("c++", options, source));
    let mut process = Process::new();
    // SAFETY: the library of C++ may be opened by anybody.
    let opened = unsafe { process.open("libstdc++.so.6") };
    let (Some(thrower), Some(catcher), Ok(())) = (thrower, catcher, opened) else {
        println!("skipped: frames: needs c++ and libstdc++");
        return None;
    };
    let loader = Loader::new();
    let thrower = Arc::new(loader.load([thrower.bytes], &mut process).unwrap());
    let module = loader.load([catcher.bytes], thrower.or(process).or(runtime_library())).unwrap();
    // SAFETY: nothing but what the run-time library asks of the processor.
    unsafe { module.initialize() };
    Some(Arc::new(module))
}

/// The compiler's run-time library, which has what AArch64 calls for atomic variables.
fn runtime_library() -> Archive {
    let compiler = system::of_this_machine("cc");
    let output = Command::new(compiler).arg("-print-libgcc-file-name").output().unwrap();
    Archive::open(String::from_utf8(output.stdout).unwrap().trim()).unwrap()
}

const OPTIONS: [&[&str]; 2] = [&["-O0", "-fPIC"], &["-O2", "-fPIC", "-ffunction-sections"]];

type Through = unsafe extern "C-unwind" fn(i32, extern "C-unwind" fn(i32) -> i32) -> i32;

fn guarded(module: &Module<Vec<u8>>, x: i32) -> i32 {
    // SAFETY: `int guarded(int)`, which lets no exception out.
    unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("guarded").unwrap()(x) }
}

fn through(module: &Module<Vec<u8>>, x: i32, back: extern "C-unwind" fn(i32) -> i32) -> i32 {
    // SAFETY: `int through(int, int (*)(int))`.
    unsafe { module.get::<Through>("through").unwrap()(x, back) }
}

/// How many frames were cleaned up.
fn cleaned(module: &Module<Vec<u8>>) -> i32 {
    let address = module.address("cleaned").unwrap() as *const std::sync::atomic::AtomicI32;
    // SAFETY: `int cleaned`, which lives as long as the module.
    unsafe { &*address }.load(std::sync::atomic::Ordering::Relaxed)
}

extern "C-unwind" fn panics(x: i32) -> i32 {
    // no message: this one is expected
    resume_unwind(Box::new(x))
}

#[test]
fn exceptions_and_panics() {
    for options in OPTIONS {
        let Some(module) = load(options) else { return };
        assert_eq!([4, 5].map(|x| guarded(&module, x)), [5, -5]);
        assert_eq!(cleaned(&module), 2);
        let caught = catch_unwind(AssertUnwindSafe(|| through(&module, 9, panics)));
        assert_eq!(*caught.unwrap_err().downcast::<i32>().unwrap(), 9);
        assert_eq!(cleaned(&module), 3, "destructors run when a panic passes");
        // what is unloaded takes nothing with it
        let other = load(options).unwrap();
        drop(module);
        assert_eq!(guarded(&other, 7), -7);
        assert!(catch_unwind(|| panics(1)).is_err());
    }
}

/// The addresses that `backtrace` of the C library and the unwinder see from a function that loaded code calls.
static SEEN: std::sync::Mutex<(Vec<u64>, String)> =
    std::sync::Mutex::new((Vec::new(), String::new()));

extern "C-unwind" fn looks(x: i32) -> i32 {
    unsafe extern "C" {
        fn backtrace(frames: *mut *mut c_void, size: i32) -> i32;
    }
    let mut frames = [core::ptr::null_mut(); 64];
    // SAFETY: there is room for so many.
    let count = unsafe { backtrace(frames.as_mut_ptr(), 64) };
    let frames = frames.iter().take(count as usize).map(|frame| frame.addr() as u64).collect();
    let text = std::backtrace::Backtrace::force_capture().to_string();
    *SEEN.lock().unwrap() = (frames, text);
    x
}

#[test]
fn backtraces_go_through() {
    for options in OPTIONS {
        let Some(module) = load(options) else { return };
        assert_eq!(through(&module, 1, looks), 2);
        let (frames, text) = SEEN.lock().unwrap().clone();
        let range: Range<u64> = extent(&module);
        let at = frames.iter().position(|frame| range.contains(frame)).expect("a loaded frame");
        let own = backtraces_go_through as fn() as usize as u64;
        let callers = &frames[at + 1..];
        assert!(
            callers.iter().any(|frame| frame.wrapping_sub(own) < 0x4000),
            "{frames:x?} {own:x}"
        );
        let [inner, outer] = ["looks", "backtraces_go_through"].map(|name| text.find(name));
        assert!(inner.unwrap() < outer.unwrap(), "{text}");
    }
}

/// Threads throw through a module of their own, and through one that all have, while modules come and go.
#[test]
fn on_many_threads() {
    let Some(shared) = load(OPTIONS[1]) else { return };
    let [thrower, catcher] =
        [THROWER, CATCHER].map(|source| compile("c++", OPTIONS[1], source).unwrap().bytes);
    let library = runtime_library();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (shared, thrower, catcher) = (&shared, &thrower, &catcher);
            let library = &library;
            scope.spawn(move || {
                let mut process = Process::new();
                // SAFETY: as above.
                unsafe { process.open("libstdc++.so.6") }.unwrap();
                for round in 0..50 {
                    let objects = [thrower.clone(), catcher.clone()];
                    let symbols = (&mut process).or(library.clone());
                    let module = Loader::new().load(objects, symbols).unwrap();
                    // SAFETY: as above.
                    unsafe { module.initialize() };
                    for module in [&module, shared] {
                        let odd = 2 * (round + thread) + 1;
                        assert_eq!(guarded(module, odd), -odd);
                        assert!(
                            catch_unwind(AssertUnwindSafe(|| through(module, 1, panics))).is_err()
                        );
                    }
                    assert_eq!(cleaned(&module), 2);
                }
            });
        }
    });
    assert_eq!(cleaned(&shared), 4 * 50 * 2);
}
