//! Forks while other threads load and unload: children find every lock free.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::{CodeArena, Loader, Module, Process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system::compile;

type Pass = unsafe extern "C-unwind" fn(extern "C-unwind" fn(i32) -> i32, i32) -> i32;

/// A frame that unwinders pass, data, and a variable of each thread's where the program has a dynamic loader.
const SOURCE: &str = "\
static PER_THREAD int own = 3;
int before = 1;
int pass(int (*function)(int), int x) { own += x; return function(x) + before + own; }
";

const PER_THREAD: &str =
    if cfg!(target_env = "gnu") { "-DPER_THREAD=__thread" } else { "-DPER_THREAD=" };

const CHILD: &str = "HOIST_TEST_FORKS";

extern "C-unwind" fn throw(x: i32) -> i32 {
    if x > 1 {
        std::panic::resume_unwind(Box::new(x));
    }
    x
}

/// Loads, calls, and unloads; a child throws through the load's frame and catches, too: a thread of its parent that does may have a lock of
/// libgcc's.
fn one(loader: &Loader, object: &[u8], throws: bool) -> i32 {
    let module: Module<Vec<u8>> = loader.load([object.to_vec()], Process::new()).unwrap();
    // SAFETY: there are no constructors.
    unsafe { module.initialize() };
    // SAFETY: the function has this type.
    let pass = unsafe { module.get::<Pass>("pass") }.unwrap();
    // SAFETY: it calls what it is given.
    let called = unsafe { pass(throw, 1) };
    if !throws {
        return called * 10;
    }
    // SAFETY: as above; its frame has nothing to be dropped.
    let thrown = std::panic::catch_unwind(|| unsafe { pass(throw, 2) });
    called * 10 + thrown.map_or_else(|thrown| *thrown.downcast::<i32>().unwrap(), |_| 0)
}

/// In a process of its own, whose threads do nothing else.
#[test]
#[ignore = "needs to be started by another test"]
fn parent() {
    let Ok(number) = std::env::var(CHILD) else { return };
    let number: u32 = number.parse().unwrap();
    let object =
        compile("cc", &["-O1", "-fPIC", "-fexceptions", PER_THREAD], SOURCE).unwrap().bytes;
    let loaders = [
        Loader::new(),
        Loader::new().reuse_memory(true),
        Loader::new().arena(&CodeArena::new()),
        Loader::new().dual_mapping(true),
    ];
    let is_over = AtomicBool::new(false);
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        for loader in &loaders {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(one(loader, &object, false), 60);
                }
            });
        }
        for turn in 0..number {
            let begin = Instant::now();
            // SAFETY: what the child does needs no lock that is not free then.
            let id = unsafe { libc::fork() };
            if id == 0 {
                // SAFETY: a child that hangs ends.
                unsafe { libc::alarm(20) };
                let is_right = loaders.iter().all(|loader| one(loader, &object, true) == 62);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(if is_right { 7 } else { 8 }) };
            }
            longest = longest.max(begin.elapsed());
            let mut status = 0;
            // SAFETY: the status is ours.
            assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
            if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 7 {
                is_over.store(true, Ordering::Relaxed);
                panic!("child {turn}: {status:#x}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("{number} forks, the longest {longest:?}");
}

#[test]
fn children_of_processes_with_threads_that_load() {
    if compile("cc", &["-O1", PER_THREAD], SOURCE).is_none() {
        println!("skipped: children_of_processes_with_threads_that_load: needs cc");
        return;
    }
    // the first loads are made anew in each process
    for number in [1, 1, 1, 1, 300] {
        let mut command = system::itself();
        command.args(["--exact", "parent", "--ignored", "--nocapture", "--test-threads=1"]);
        let output = command.env(CHILD, number.to_string()).output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
    }
}
