//! What runs first and last, in which order, and only if somebody guarantees it.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::{Error, External, Module, Process};
use std::sync::{Mutex, MutexGuard, PoisonError};
use system::{ARCH, compile, fixture};

/// What the objects have told so far.
static TOLD: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// Only one test at a time listens.
static TURN: Mutex<()> = Mutex::new(());

extern "C" fn note(what: i32) {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

/// What was told since it was asked the last time.
fn told() -> Vec<i32> {
    std::mem::take(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    told();
    turn
}

fn load(names: &[&str]) -> Module<Vec<u8>> {
    let mut process = Process::new();
    let objects = names.iter().map(|name| fixture(&format!("{ARCH}/{name}")));
    let mut externals = |name: elf_core::Name<'_>| match name.to_str() {
        Some("note") => Some(External::function(note as *const () as usize as u64)),
        _ => process.find(name),
    };
    Module::load(objects, &mut externals).unwrap()
}

/// Registers `what` to be told at last.
fn tell_at_last(module: &Module<Vec<u8>>, what: i32) {
    // SAFETY: `int tell_at_last(int what)`, which registers a function of the object under its own handle.
    let function = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("tell_at_last") };
    // SAFETY: as above.
    assert_eq!(unsafe { function.unwrap()(what) }, 0);
}

#[test]
fn constructors_by_priority_then_destructors_backwards() {
    let _turn = turn();
    let module = load(&["lifetime.o"]);
    assert_eq!(told(), [], "loading runs nothing");
    assert!(module.needs_initialization());
    // SAFETY: the functions only call `note` and `__cxa_atexit`.
    unsafe { module.initialize() };
    assert_eq!(told(), [1, 2, 3]);
    // SAFETY: as above.
    unsafe { module.initialize() };
    assert_eq!(told(), [], "only once");
    tell_at_last(&module, 41);
    drop(module);
    assert_eq!(told(), [41, 40, 5, 6], "what was registered last comes first, destructors behind");
}

#[test]
fn functions_wait_for_constructors() {
    let _turn = turn();
    let module = load(&["lifetime.o"]);
    let type_of = |error: Error| matches!(error, Error::NotInitialized);
    assert!(type_of(module.function("tell_at_last").unwrap_err()));
    // SAFETY: it is not called.
    let function = unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>("tell_at_last") };
    assert!(type_of(function.map(|_| ()).unwrap_err()));
    assert!(module.address("tell_at_last").is_some(), "where it is, is no secret");
    assert_eq!(Error::NotInitialized.to_string(), "constructors were not run yet");
    drop(module);
    assert_eq!(told(), [], "what was not begun needs no end");
}

#[test]
fn destructors_without_constructors() {
    let _turn = turn();
    let module = load(&["lifetime-last.o"]);
    assert!(!module.needs_initialization());
    tell_at_last(&module, 7);
    drop(module);
    assert_eq!(told(), [7], "it would be called at exit, when its code is gone");
    let module = load(&["lifetime-last.o"]);
    // SAFETY: the functions only call `note` and `__cxa_atexit`.
    unsafe { module.initialize() };
    assert_eq!(told(), []);
    drop(module);
    assert_eq!(told(), [5, 6]);
}

#[test]
fn modules_end_by_themselves() {
    let _turn = turn();
    let (one, two) = (load(&["lifetime-last.o"]), load(&["lifetime-last.o"]));
    for what in [10, 20] {
        tell_at_last(&one, what);
        tell_at_last(&two, what + 1);
    }
    drop(one);
    assert_eq!(told(), [20, 10]);
    drop(two);
    assert_eq!(told(), [21, 11]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn of_every_compiler() {
    for compiler in ["clang14", "clang19", "gcc12"] {
        let module = load(&[&format!("startup-{compiler}.o")]);
        assert!(matches!(module.function("constructors_ran"), Err(Error::NotInitialized)));
        // SAFETY: the constructors write to the object's own data.
        unsafe { module.initialize() };
        type Get = unsafe extern "C" fn() -> i32;
        // SAFETY: the types are those of `startup.cpp`.
        let (ran, first, table) = unsafe {
            (
                module.get::<Get>("constructors_ran").unwrap(),
                module.get::<Get>("first_constructor").unwrap(),
                module.get::<unsafe extern "C" fn(i32) -> i32>("table_value").unwrap(),
            )
        };
        // SAFETY: as above.
        let found = unsafe { (ran(), first(), table(3)) };
        assert_eq!((found.0, found.1), (2, 1), "{compiler}");
        assert!(found.2 >= 9, "{compiler}");
    }
}

/// What the C library has in an archive for every program: forks and quick ends of processes call what the code has registered.
#[test]
fn forks_and_quick_exits() {
    const SOURCE: &str = "\
int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
int at_quick_exit(void (*)(void));
_Noreturn void quick_exit(int);
_Noreturn void _exit(int);
int fork(void);
int waitpid(int, int *, int);
static int told;
static void before(void) { told += 1; }
static void parent(void) { told += 10; }
static void child(void) { told += 100; }
static void last(void) { _exit(told); }
int enter(int x) { (void)x; return pthread_atfork(before, parent, child) | at_quick_exit(last); }
int leave(int x) {
  int status = 0, id = fork();
  if (id == 0) quick_exit(x);
  waitpid(id, &status, 0);
  return (status >> 8 & 255) * 1000 + told;
}
";
    type Call = unsafe extern "C" fn(i32) -> i32;
    let Some(object) = compile("cc", &["-O1"], SOURCE) else {
        println!("skipped: forks_and_quick_exits: needs cc");
        return;
    };
    let _turn = turn();
    let module = Module::load([object.bytes], &mut |name| Process::new().find(name)).unwrap();
    let call = |name| {
        // SAFETY: both are of this type.
        let function = unsafe { module.get::<Call>(name) }.unwrap();
        // SAFETY: the child does nothing but end.
        unsafe { function(3) }
    };
    assert_eq!(call("enter"), 0);
    assert_eq!(call("leave"), 101_011, "the child's 101 is how it ended, 11 is of its parent");
    drop(module);
    // nothing of it is called any more
    unsafe extern "C" {
        safe fn quick_exit(status: i32) -> !;
    }
    // SAFETY: the child ends at once.
    let id = unsafe { libc::fork() };
    if id == 0 {
        quick_exit(3);
    }
    let mut status = -1;
    // SAFETY: the status is ours.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    assert_eq!(status >> 8, 3);
}
