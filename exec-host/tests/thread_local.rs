//! Thread-local variables: every thread has its own, whenever it began, and gives them back.
#![cfg(test)]

mod system;

use exec_host::symbols::Symbols as _;
use exec_host::{Error, Loader, Module, Process, StaticTlsReserve};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;
use system::{ARCH, Over, compile, fixture, is_emulated, load, maps};

type Call = unsafe extern "C" fn(i32) -> i32;

/// The two objects of `threads-a.c` and `threads-b.c`.
fn pair(model: &str) -> [Vec<u8>; 2] {
    ["a", "b"].map(|part| fixture(&format!("{ARCH}/threads-{part}-{model}.o")))
}

fn call<B: AsRef<[u8]>>(module: &Module<B>, name: &str, argument: i32) -> i32 {
    // SAFETY: the fixtures' functions take an integer or ignore it, and do no harm.
    let function = unsafe { module.get::<Call>(name) }.unwrap();
    // SAFETY: as above.
    unsafe { function(argument) }
}

/// Libraries that the dynamic loader knows of.
fn libraries() -> usize {
    unsafe extern "C" fn count(
        _: *mut libc::dl_phdr_info,
        _: usize,
        count: *mut core::ffi::c_void,
    ) -> i32 {
        // SAFETY: it is the variable below.
        unsafe { *count.cast::<usize>() += 1 };
        0
    }
    let mut number = 0;
    // SAFETY: the callback has the type asked for.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut number).cast()) };
    number
}

/// One after the other, since they share what room there is near the thread pointer.
#[test]
fn every_thread_has_its_own() {
    threads_older_and_younger_than_the_load(NEAR);
    threads_older_and_younger_than_the_load(SOFT);
    descriptors_are_asked();
    everything_is_given_back();
    variables_of_libraries();
    variables_of_earlier_loads();
    destructors_run_when_their_threads_end();
    any_address_of_a_load_is_its_handle();
    more_variables_than_there_is_room_for();
    the_new_one_comes_before_the_old_one_goes();
    threads_come_and_go_meanwhile();
    small_blocks_share_a_library();
    constructors_of_libraries_load_modules();
    what_the_executable_sets_aside();
}

const NEAR: &str =
    if cfg!(target_arch = "arm") { "gcc12-O2-thumb-initial" } else { "gcc12-O2-initial" };
const GENERAL: &str = if cfg!(target_arch = "arm") { "gcc12-O2-thumb-pic" } else { "gcc12-O2-pic" };
const DESCRIPTORS: [&str; 2] = match ARCH.as_bytes() {
    b"x86_64" => ["clang19-O2-descriptors", "gcc12-O2-descriptors"],
    b"riscv64" => ["clang19-O2-desc", "clang19-O2-desc"],
    b"arm" => ["gcc12-O2-arm-desc", "gcc12-O2-thumb-desc"],
    _ => ["clang19-O2-pic", "gcc12-O2-pic"],
};

/// By a function that reads the thread pointer, where compilers call one.
const SOFT: &str = if cfg!(target_arch = "arm") { "clang19-O2-thumb-soft" } else { NEAR };

fn threads_older_and_younger_than_the_load(model: &str) {
    let (count, barrier) = (4, Arc::new(Barrier::new(5)));
    let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (send, receive) = mpsc::channel::<Arc<Module<Vec<u8>>>>();
        inboxes.push(send);
        let barrier = Arc::clone(&barrier);
        threads.push(thread::spawn(move || {
            let module = receive.recv().unwrap();
            assert_eq!(call(&module, "initial", 0), 1, "an older thread");
            for _ in 0..number {
                call(&module, "bump", 1);
            }
            barrier.wait();
            call(&module, "bump", 1)
        }));
    }
    let [a, b] = pair(model);
    let module = Arc::new(Loader::new().load([a, b], Process::new()).unwrap());
    for inbox in &inboxes {
        inbox.send(Arc::clone(&module)).unwrap();
    }
    barrier.wait();
    let results: Vec<i32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for younger in 0..count {
        let module = Arc::clone(&module);
        let result = thread::spawn(move || {
            assert_eq!(call(&module, "initial", 0), 1, "a younger thread");
            (0..=younger).fold(0, |_, _| call(&module, "bump", 1))
        });
        assert_eq!(results.get(younger), Some(&result.join().unwrap()), "they count alike");
    }
    assert_eq!(call(&module, "initial", 0), 1, "and this one has not counted");
}

/// Code that stays as it was compiled.
fn descriptors_are_asked() {
    for model in DESCRIPTORS {
        let module = Loader::new().relax(false).load(pair(model), Process::new()).unwrap();
        assert_eq!(call(&module, "in_threads", 6), 255, "{model}");
        assert_eq!(call(&module, "bump", 2), 198, "{model}");
        assert_eq!(call(&module, "both", 0), 60, "{model}");
    }
}

fn everything_is_given_back() {
    let run = |times| {
        for _ in 0..times {
            for model in [NEAR, GENERAL].into_iter().chain(DESCRIPTORS) {
                let [a, b] = pair(model);
                let module = load(&[&a, &b]).unwrap();
                assert_eq!(call(&module, "in_threads", 2), 81, "{model}");
            }
        }
    };
    run(2);
    let before = (libraries(), maps().len());
    run(100);
    let after = (libraries(), maps().len());
    assert_eq!(after.0, before.0);
    assert!(after.1 <= before.1 + 8, "{before:?} {after:?}");
}

/// `libvariable.so` is opened while the process runs.
fn variables_of_libraries() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(ARCH);
    for model in ["general", "initial"] {
        let mut process = Process::new();
        // SAFETY: the library is nothing but a variable.
        unsafe { process.open(folder.join("libvariable.so")) }.unwrap();
        let object = fixture(&format!("{ARCH}/uses-variable-{model}.o"));
        let module = Loader::new().load([object], process).unwrap();
        assert_eq!([call(&module, "take", 0), call(&module, "take", 0)], [11, 12], "{model}");
        let other = thread::scope(|scope| scope.spawn(|| call(&module, "take", 0)).join());
        assert_eq!(other.unwrap(), 11, "{model}");
    }
}

fn variables_of_earlier_loads() {
    let first = Loader::new().load([fixture(&format!("{ARCH}/variable.o"))], ()).unwrap();
    let first = Arc::new(first);
    for (model, seen) in [("general", 11), ("initial", 12)] {
        let object = fixture(&format!("{ARCH}/uses-variable-{model}.o"));
        let symbols = Arc::clone(&first).or(Process::new());
        let module = Loader::new().load([object], symbols).unwrap();
        assert_eq!(call(&module, "take", 0), seen, "one variable for both loads");
        let other = thread::scope(|scope| scope.spawn(|| call(&module, "take", 0)).join());
        assert_eq!(other.unwrap(), 11);
    }
}

/// A thread that has to destroy a variable when it ends keeps the code for it.
fn destructors_run_when_their_threads_end() {
    let names = if cfg!(target_arch = "x86_64") {
        ["threads-cpp-gcc12.o", "threads-second-gcc12.o"]
    } else {
        ["threads-cpp.o", "threads-second.o"]
    };
    let objects = names.map(|name| fixture(&format!("{ARCH}/{name}")));
    let module = Arc::new(load(&[&objects[0], &objects[1]]).unwrap());
    // SAFETY: our own fixture.
    unsafe { module.initialize() };
    let (address, _) = module.extent();
    let is_mapped = || maps().iter().any(|map| map.range.contains(&address));
    let (go, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let guest = Arc::clone(&module);
    let thread = thread::spawn(move || {
        assert_eq!(call(&guest, "visit", 0), 2);
        drop(guest);
        tell.send(()).unwrap();
        wait.recv().unwrap();
    });
    told.recv().unwrap();
    drop(module);
    assert!(is_mapped(), "the thread is still to destroy its guest");
    go.send(()).unwrap();
    thread.join().unwrap();
    assert!(!is_mapped(), "nobody needs the code any more");
}

/// As Rust's standard library registers destructors.
fn any_address_of_a_load_is_its_handle() {
    const SOURCE: &str = "\
int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
static int within;
static void end(void *word) { *(int *)word = 7; }
int at_end(int *word) { return __cxa_thread_atexit_impl(end, word, &within); }
";
    let Some(object) = compile("cc", &["-O1"], SOURCE) else {
        println!("skipped: any_address_of_a_load_is_its_handle: needs cc");
        return;
    };
    let word = AtomicI32::new(0);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let module =
                Module::load([object.bytes.as_slice()], &mut |name| Process::new().find(name));
            let module = module.unwrap();
            // SAFETY: `int at_end(int *)`.
            let at_end = unsafe { module.get::<unsafe extern "C" fn(*mut i32) -> i32>("at_end") };
            // SAFETY: the word lives until the thread has ended.
            assert_eq!(unsafe { at_end.unwrap()(word.as_ptr()) }, 0);
            drop(module);
            assert_eq!(word.load(Ordering::Relaxed), 0, "the thread still runs");
        });
        // the scope's end alone does not wait for destructors
        thread.join().unwrap();
    });
    assert_eq!(word.load(Ordering::Relaxed), 7);
}

/// Behind the last room near the thread pointer, code that asks for its variables gets others, and code that can be made to; else it is refused.
fn more_variables_than_there_is_room_for() {
    let mut modules = Vec::new();
    let models = [[GENERAL, DESCRIPTORS[0]], [GENERAL, DESCRIPTORS[1]], DESCRIPTORS];
    for model in models.concat() {
        let [a, b] = pair(model);
        let module = load(&[&a, &b]).unwrap();
        assert_eq!(call(&module, "in_threads", 6), 255, "{model}");
        assert_eq!(call(&module, "bump", 2), 198, "{model}");
        assert_eq!(call(&module, "both", 0), 60, "{model}");
        modules.push(module);
    }
    let [a, b] = pair(NEAR);
    if cfg!(target_arch = "x86_64") {
        // initial exec asks descriptors instead
        let module = load(&[&a, &b]).unwrap();
        assert_eq!(call(&module, "in_threads", 6), 255);
        assert_eq!(call(&module, "bump", 2), 198);
        assert_eq!(call(&module, "both", 0), 60);
        return;
    }
    let refused = load(&[&a, &b]).map(drop).unwrap_err();
    assert!(matches!(refused, Error::NearThreadLocal { .. }), "{refused}");
    let words = refused.to_string();
    assert!(words.contains("glibc.rtld.optional_static_tls"), "{words}");
    assert!(words.starts_with("object 0: "), "{words}");
    // gcc may call all of a section by one symbol
    let symbols = [" for symbol zero: ", " for symbol .LANCHOR0: "];
    assert!(symbols.iter().any(|symbol| words.contains(symbol)), "{words}");
    drop(modules);
    assert!(load(&[&a, &b]).is_ok(), "there is room again");
}

/// Non-PIC variables of 116 bytes, which begin with a number.
const HOT: &str = "\
_Thread_local int number = 42;
_Thread_local char rest[112];
int count(int by) { number += by; rest[111] += by; return number * 1000 + rest[111]; }
";

/// A thread that calls what it is sent, and stays.
struct Worker(mpsc::Sender<u64>, mpsc::Receiver<i32>);

impl Worker {
    fn new() -> Self {
        let (send, receive) = mpsc::channel::<u64>();
        let (answer, answers) = mpsc::channel();
        thread::spawn(move || {
            for address in receive {
                // SAFETY: `int count(int)` of a module that is there until this has answered.
                let call = unsafe { core::mem::transmute::<usize, Call>(address as usize) };
                // SAFETY: as above.
                answer.send(unsafe { call(1) }).unwrap();
            }
        });
        Self(send, answers)
    }

    fn call(&self, module: &Module<Vec<u8>>) -> i32 {
        self.0.send(module.function("count").unwrap()).unwrap();
        self.1.recv().unwrap()
    }
}

/// Hot reload. In every thread, whether it knows the room from earlier loads or not, variables begin with their initial values.
fn the_new_one_comes_before_the_old_one_goes() {
    let Some(object) = compile("cc", &["-O2", "-fno-pic"], HOT) else {
        println!("skipped: the_new_one_comes_before_the_old_one_goes: needs cc");
        return;
    };
    if is_emulated() {
        println!("skipped: the_new_one_comes_before_the_old_one_goes: needs get_robust_list");
        return;
    }
    let workers = [Worker::new(), Worker::new()];
    let mut module = load(&[&object.bytes]).unwrap();
    for round in 0..1000 {
        let new = load(&[&object.bytes]).unwrap_or_else(|error| panic!("{round}: {error}"));
        for worker in &workers {
            assert_eq!([worker.call(&new), worker.call(&new)], [43_001, 44_002], "{round}");
        }
        if round % 100 == 0 {
            assert_eq!(Worker::new().call(&new), 43_001, "a younger thread");
        }
        assert_eq!(call(&new, "count", 5), 47_005, "{round}");
        assert_eq!(call(&module, "count", 0), if round == 0 { 42_000 } else { 47_005 });
        module = new;
    }
}

/// Threads end while their copies are written to, and begin while the initial values change.
fn threads_come_and_go_meanwhile() {
    let Some(object) = compile("cc", &["-O2", "-fno-pic"], HOT).filter(|_| !is_emulated()) else {
        println!("skipped: threads_come_and_go_meanwhile: needs cc and get_robust_list");
        return;
    };
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // stacks of this size are soon too many to be kept
                    let builder = thread::Builder::new().stack_size(16 << 20);
                    builder.spawn(thread::yield_now).unwrap().join().unwrap();
                }
            });
        }
        let mut module = load(&[&object.bytes]).unwrap();
        for _ in 0..300 {
            let new = load(&[&object.bytes]).unwrap();
            assert_eq!(
                thread::scope(|inner| inner.spawn(|| call(&new, "count", 1)).join()).unwrap(),
                43_001
            );
            assert_eq!(call(&new, "count", 1), 43_001);
            module = new;
        }
        drop(module);
    });
}

fn small_blocks_share_a_library() {
    let object = compile("cc", &["-O2", "-fno-pic"], SMALL);
    let Some(object) = object.filter(|_| !is_emulated()) else {
        println!("skipped: small_blocks_share_a_library: needs cc and get_robust_list");
        return;
    };
    let before = libraries();
    let modules: Vec<_> = (0..100).map(|_| load(&[&object.bytes]).unwrap()).collect();
    assert!(libraries() <= before + 1, "{before} {}", libraries());
    for (number, module) in modules.iter().enumerate() {
        assert_eq!(call(module, "get", number as i32), 7 + number as i32);
    }
    for (number, module) in modules.iter().enumerate() {
        assert_eq!(call(module, "get", 0), 7 + number as i32, "each has its own");
    }
    drop(modules);
    assert_eq!(libraries(), before);
}

/// A thread-local variable, and no symbols of others.
const SMALL: &str = "_Thread_local int n = 7; int get(int by) { return n += by; }";

/// The other thread that loads something while a library is being opened.
static OTHER: Mutex<Option<thread::JoinHandle<i32>>> = Mutex::new(None);
static SMALL_OBJECT: OnceLock<Vec<u8>> = OnceLock::new();

/// What the library's constructor calls, while this thread has the dynamic loader's lock: another thread, which wants that lock, is
/// before this one with the room near the thread pointer.
extern "C" fn in_constructor() {
    let load = || {
        let module = Loader::new().load([SMALL_OBJECT.get().unwrap().clone()], ()).unwrap();
        call(&module, "get", 1)
    };
    *OTHER.lock().unwrap() = Some(thread::spawn(load));
    thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(load(), 8);
}

fn constructors_of_libraries_load_modules() {
    const LIBRARY: &str = "\
char *getenv(const char *);
unsigned long strtoul(const char *, char **, int);
__attribute__((constructor)) static void first(void) {
    char *address = getenv(\"HOIST_TEST_CONSTRUCTOR\");
    if (address) ((void (*)(void))strtoul(address, 0, 10))();
}
";
    let object = compile("cc", &["-O2", "-fno-pic"], SMALL).filter(|_| !is_emulated());
    let Some((object, library)) = object.zip(compile("cc", &["-O2", "-fPIC"], LIBRARY)) else {
        println!("skipped: constructors_of_libraries_load_modules: needs cc and get_robust_list");
        return;
    };
    SMALL_OBJECT.set(object.bytes).unwrap();
    let path = library.folder.path().join("libconstructor.so");
    let mut command = std::process::Command::new(system::of_this_machine("cc"));
    let linked = command.arg("-shared").arg("-o").arg(&path).arg(&library.object).status().unwrap();
    assert!(linked.success());
    let address = in_constructor as *const () as usize;
    // SAFETY: no other thread of this program asks for the environment.
    unsafe { std::env::set_var("HOIST_TEST_CONSTRUCTOR", address.to_string()) };
    let mut process = Process::new();
    // SAFETY: its constructor is above.
    unsafe { process.open(&path) }.unwrap();
    let other = OTHER.lock().unwrap().take().unwrap();
    assert_eq!(other.join().unwrap(), 8);
}

thread_local! {
    static RESERVE: StaticTlsReserve<{ 300 << 10 }> = const { StaticTlsReserve::new() };
}

/// More than the C library ever has: what is compiled for an executable, in a debug build of Zig's runtime or with jemalloc inside.
fn what_the_executable_sets_aside() {
    let large = "_Thread_local int number = 5; _Thread_local char rest[262144]; \
        int count(int by) { rest[262143] += by; return (number += by) * 1000 + rest[262143]; }";
    let options = ["-O2", "-fPIC", "-ftls-model=initial-exec"];
    let objects = [compile("cc", &["-O2", "-fno-pic"], large), compile("cc", &options, large)];
    let [Some(near), Some(initial)] = objects else {
        println!("skipped: what_the_executable_sets_aside: needs cc");
        return;
    };
    let refused = load(&[&near.bytes]).map(drop).unwrap_err();
    let words = refused.to_string();
    assert!(words.contains("StaticTlsReserve"), "{words}");
    assert!(words.starts_with("object 0: section .text: "), "{words}");
    // which of them is asked for first is the compiler's choice
    let symbols = [" against rest: ", " against number: ", " against .LANCHOR0: "];
    assert!(symbols.iter().any(|symbol| words.contains(symbol)), "{words}");
    if is_emulated() {
        println!("skipped: what_the_executable_sets_aside: needs get_robust_list");
        return;
    }
    let older = Worker::new();
    StaticTlsReserve::offer(&RESERVE).unwrap();
    StaticTlsReserve::offer(&RESERVE).unwrap();
    for object in [&near, &initial, &near] {
        let module = load(&[&object.bytes]).unwrap();
        assert_eq!([older.call(&module), older.call(&module)], [6001, 7002]);
        assert_eq!(Worker::new().call(&module), 6001, "a younger thread");
        assert_eq!(call(&module, "count", 2), 7002);
        // code of initial exec does without, where it can ask descriptors
        let does_without = cfg!(target_arch = "x86_64") && object.bytes == initial.bytes;
        assert_eq!(load(&[&object.bytes]).is_ok(), does_without, "there is one such room");
    }
}
