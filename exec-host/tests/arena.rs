//! Modules that share memory: small, many, gone and come again, and never writable where they are executable.
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
use exec_host::{CodeArena, Loader, Module, Process};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use system::{Map, Over, compile, extent, is_emulated, mapped, maps};

type Call = unsafe extern "C" fn(i32) -> i32;

fn call<B: AsRef<[u8]>>(module: &Module<B>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`.
    unsafe { module.get::<Call>(name).unwrap()(x) }
}

/// Code, constants, variables, zeros, a string; an unwinding table of its own.
const SOURCE: &str = "\
static int hidden = 3;
int zeros[4];
static const int table[] = {10, 20, 30, 40};
const char *word(void);
const char *word(void) { return \"word\"; }
int next(int x) { zeros[x & 3] += 1; hidden += 1; return table[x & 3] + hidden + zeros[x & 3]; }
";

fn compiled(test: &str) -> Option<Vec<u8>> {
    let object = compile("cc", &["-O2", "-fPIC"], SOURCE);
    if object.is_none() {
        println!("skipped: {test}: needs cc");
    }
    Some(object?.bytes)
}

/// Pages that are writable and executable, in whatever mapping.
fn both() -> Vec<Map> {
    let maps = maps().into_iter();
    maps.filter(|map| map.permissions.contains('w') && map.permissions.contains('x')).collect()
}

/// xorshift64*: the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

#[test]
fn modules_are_apart() {
    let Some(object) = compiled("modules_are_apart") else { return };
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let before = maps().len();
    let mut modules: Vec<_> =
        (0..500).map(|_| loader.load([object.clone()], Process::new()).unwrap()).collect();
    assert_eq!(both(), []);
    if !is_emulated() {
        assert!(maps().len() < before + 60, "{before} {}", maps().len());
    }
    assert_eq!(arena.statistics().modules, 500);
    for (number, module) in modules.iter().enumerate() {
        for _ in 0..number % 5 {
            call(module, "next", 0);
        }
    }
    for (number, module) in modules.iter().enumerate() {
        let counted = number as i32 % 5 + 1;
        assert_eq!(call(module, "next", 0), 10 + 3 + counted + counted, "{number}");
    }
    // every third goes, and comes again with values as they were at first
    let mut random = Random(1);
    for _ in 0..500 {
        let index = random.below(modules.len());
        drop(modules.swap_remove(index));
        if modules.len() < 300 {
            for _ in 0..200 {
                let module = loader.load([object.clone()], Process::new()).unwrap();
                assert_eq!(call(&module, "next", 1), 20 + 4 + 1);
                modules.push(module);
            }
        }
    }
    assert_eq!(both(), []);
    let statistics = arena.statistics();
    assert_eq!(statistics.modules, modules.len() as u64);
    let live = statistics.code + statistics.read_only + statistics.writable;
    assert!(statistics.mapped < live * 13 / 10 + 4 * 16384, "{statistics:?}");
    drop(modules);
    let statistics = arena.statistics();
    assert_eq!((statistics.modules, statistics.mapped), (0, 0), "{statistics:?}");
}

/// A million functions, of which a third goes at random and comes again: memory for what is there, and a third of it more at most.
/// `HOIST_MODULES` says how many.
#[test]
#[ignore = "minutes: it loads a million modules"]
fn a_million_functions() {
    let number = std::env::var("HOIST_MODULES").ok().and_then(|text| text.parse().ok());
    let number: usize = number.unwrap_or(1_000_000);
    let source =
        "int next(int x) { int s = 0; for (int i = 0; i < x; i++) s += x ^ i; return s + x; }";
    let Some(object) = compile("cc", &["-O1", "-fPIC"], source) else {
        println!("skipped: a_million_functions: needs cc");
        return;
    };
    let bytes: Arc<[u8]> = object.bytes.into();
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let load = || loader.load([Arc::clone(&bytes)], Process::new()).unwrap();
    let check = |modules: &Vec<Module<Arc<[u8]>>>, what: &str| {
        let statistics = arena.statistics();
        let live = statistics.code + statistics.read_only + statistics.writable;
        println!("{what}: {statistics:?}, {} mappings", maps().len());
        assert_eq!(statistics.modules, modules.len() as u64);
        assert!(statistics.mapped < live * 13 / 10 + 4 * 16384, "{statistics:?}");
        assert_eq!(both(), []);
    };
    let (mut modules, mut random) = (Vec::new(), Random(3));
    for loaded in 1..=number {
        modules.push(load());
        if loaded % (number / 8).max(1) == 0 {
            check(&modules, "loaded");
        }
    }
    for round in 0..3 {
        for _ in 0..number / 3 {
            drop(modules.swap_remove(random.below(modules.len())));
        }
        let statistics = arena.statistics();
        println!("round {round}, a third is gone: {statistics:?}");
        assert_eq!(both(), []);
        while modules.len() < number {
            modules.push(load());
        }
        check(&modules, "loaded again");
        for _ in 0..1000 {
            assert_eq!(call(&modules[random.below(number)], "next", 3), 3 + (3 + 2 + 1));
        }
    }
    drop(modules);
    assert_eq!(arena.statistics().mapped, 0);
}

/// Code of modules that are gone is not code any more, while its neighbours are.
#[test]
fn code_that_is_gone_is_traps() {
    let Some(object) = compiled("code_that_is_gone_is_traps") else { return };
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let neighbour = loader.load([object.clone()], Process::new()).unwrap();
    let module = loader.load([object], Process::new()).unwrap();
    let address = module.function("next").unwrap();
    let map = mapped(&(address..address + 1)).pop().unwrap();
    assert_eq!(map.permissions, "r-xp");
    drop(module);
    // SAFETY: the page is the neighbour's, and can be read.
    let bytes = unsafe { ((address - address % 4) as *const [u8; 8]).read() };
    let trap = if cfg!(target_arch = "x86_64") {
        [0xcc; 4]
    } else if cfg!(target_arch = "riscv64") {
        [0x02, 0x90, 0x02, 0x90]
    } else if cfg!(target_arch = "arm") {
        [0xf0, 0xde, 0xfd, 0xe7]
    } else {
        [0, 0, 0x20, 0xd4]
    };
    assert_eq!(bytes, [trap, trap].as_flattened());
    assert_eq!(call(&neighbour, "next", 2), 30 + 4 + 1);
}

/// Threads run code of an arena while modules come to its pages and leave them.
#[test]
fn threads_run_meanwhile() {
    let Some(object) = compiled("threads_run_meanwhile") else { return };
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let is_over = AtomicBool::new(false);
    let shared: Vec<_> =
        (0..3).map(|_| loader.load([object.clone()], Process::new()).unwrap()).collect();
    thread::scope(|scope| {
        let _over = Over(&is_over);
        for module in &shared {
            scope.spawn(|| {
                let mut times = 0;
                while !is_over.load(Ordering::Relaxed) {
                    times += 1;
                    assert_eq!(call(module, "next", 3), 40 + 3 + times + times);
                }
            });
        }
        let loads = (0..2).map(|seed| {
            let (loader, object) = (loader.clone(), object.clone());
            scope.spawn(move || {
                let (mut random, mut modules) = (Random(seed + 7), Vec::new());
                for _ in 0..if is_emulated() { 50 } else { 400 } {
                    let module = loader.load([object.clone()], Process::new()).unwrap();
                    assert_eq!(call(&module, "next", 1), 20 + 4 + 1);
                    modules.push(module);
                    if modules.len() > 40 {
                        drop(modules.swap_remove(random.below(40)));
                    }
                }
            })
        });
        let loads: Vec<_> = loads.collect();
        loads.into_iter().for_each(|load| load.join().unwrap());
    });
    assert_eq!(arena.statistics().modules, 3);
}

/// Exceptions pass frames of an arena, whose tables nobody registers one by one in the end.
#[test]
fn exceptions_go_through() {
    let source = "extern \"C\" int check(int x) { if (x & 1) throw x; return x; }
        extern \"C\" int guarded(int x) { try { return check(x); } catch (int odd) { return -odd; } }
        extern \"C\" int through(int x, int (*back)(int)) { return back(x) + 1; }";
    let Some(object) = compile("c++", &["-O1", "-fPIC"], source) else {
        println!("skipped: exceptions_go_through: needs c++");
        return;
    };
    let mut process = Process::new();
    // SAFETY: the library of C++ may be opened by anybody.
    unsafe { process.open("libstdc++.so.6") }.unwrap();
    let loader = Loader::new().arena(&CodeArena::new());
    let mut load = || loader.load([object.bytes.clone()], &mut process).unwrap();
    // the first ones are registered one by one, where there are other threads
    let mut modules: Vec<_> = (0..100).map(|_| load()).collect();
    thread::sleep(core::time::Duration::from_millis(150));
    modules.extend((0..100).map(|_| load()));
    for module in modules.iter().rev() {
        assert_eq!([call(module, "guarded", 4), call(module, "guarded", 5)], [4, -5]);
    }
    // and of a panic, and of another load by way of two arenas
    extern "C-unwind" fn panics(x: i32) -> i32 {
        std::panic::resume_unwind(Box::new(x))
    }
    type Through = unsafe extern "C-unwind" fn(i32, extern "C-unwind" fn(i32) -> i32) -> i32;
    // SAFETY: `int through(int, int (*)(int))`.
    let through = unsafe { modules[77].get::<Through>("through") }.unwrap();
    let caught = std::panic::catch_unwind(|| {
        // SAFETY: as above.
        unsafe { through(6, panics) }
    });
    assert_eq!(*caught.unwrap_err().downcast::<i32>().unwrap(), 6);
}

/// What registers destructors, uses thread-local variables and other modules, and is not small.
#[test]
fn all_sorts_of_modules() {
    let arena = CodeArena::new();
    let loader = Loader::new().arena(&arena);
    let exits = "int atexit(void (*)(void)); int *seen; static void end(void) { *seen = 7; }
        int at_end(int x) { return atexit(end) + x; }";
    let uses = "extern int shared; int use(int x) { return shared += x; }";
    let large = "char room[100000]; int size(int x) { room[x] = 1; return sizeof room + room[x]; }";
    let sources = [exits, uses, large, "int shared = 5;"];
    let objects = sources.map(|source| compile("cc", &["-O2", "-fPIC"], source));
    let [Some(exits), Some(uses), Some(large), Some(shared)] = objects else {
        println!("skipped: all_sorts_of_modules: needs cc");
        return;
    };
    let mut seen = 0;
    let module = loader.load([exits.bytes], Process::new()).unwrap();
    // SAFETY: `int *seen`.
    unsafe { (module.address("seen").unwrap() as *mut *mut i32).write(&raw mut seen) };
    assert_eq!(call(&module, "at_end", 1), 1);
    drop(module);
    assert_eq!(seen, 7, "it knew whose function that is");

    let shared = Arc::new(loader.load([shared.bytes], ()).unwrap());
    let user = loader.load([uses.bytes.clone()], Arc::clone(&shared).or(Process::new())).unwrap();
    assert_eq!([call(&user, "use", 1), call(&user, "use", 2)], [6, 8]);
    assert_eq!(arena.statistics().modules, 2);
    let module = loader.load([large.bytes], Process::new()).unwrap();
    assert_eq!(call(&module, "size", 5), 100_001);
    assert_eq!(arena.statistics().modules, 2, "it has memory of its own");
    let range = extent(&user);
    drop((user, shared));
    assert!(range.start < range.end);
    assert_eq!(arena.statistics().mapped, 0);
}
