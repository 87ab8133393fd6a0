//! Functions replaced under those who call them, with data that stay.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::symbols::keep_data;
use exec_host::{Error, Loader, Module};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use system::{ARCH, Over, compile, extent, fixture, mapped};

const FIRST: &str = "\
int counter = 100;
int common_one;
static int calls;
int step(int x) { calls++; common_one = 1; return counter += x; }
int run(int x) { return step(x) * 10; }
int (*table[])(int) = { step };
int by_table(int x) { return table[0](x); }
int is_same(int x) { return table[0] == step; }
int deep(int x) { return x <= 0 ? 0 : step(0) - step(0) + deep(x - 1) + 1; }
";
const SECOND: &str = "\
int counter = -1;
int common_one;
static int calls = 1000;
const int factor = 2;
int step(int x) { calls++; common_one = 2; return counter -= x * factor; }
";
const USER: &str = "int step(int); int use(int x) { return step(x) + 1; } int (*held)(int) = step;\n\
    int by_pointer(int x) { return held(x); }";

fn object(compiler: &str, level: &str, source: &str) -> Option<Vec<u8>> {
    let options = ["-fPIC", "-fno-inline", level];
    compile(compiler, &options, source).map(|compiled| compiled.bytes)
}

fn load(loader: &Loader, object: Vec<u8>) -> Arc<Module<Vec<u8>>> {
    Arc::new(loader.load([object], ()).unwrap())
}

fn call(module: &Module<Vec<u8>>, name: &str, argument: i32) -> i32 {
    // SAFETY: all functions that are called here have this type.
    unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap()(argument) }
}

#[test]
fn all_callers_get_the_new_one() {
    for (compiler, level) in [
        ("gcc", "-O0"),
        ("gcc", "-O2"),
        ("clang-19", "-O0"),
        ("clang-19", "-O2"),
        ("clang-14", "-O1"),
    ] {
        let compiled = [FIRST, SECOND, USER].map(|source| object(compiler, level, source));
        let [Some(first), Some(second), Some(user)] = compiled else {
            println!("skipped: all_callers_get_the_new_one: needs {compiler}");
            continue;
        };
        for is_dual in [false, true] {
            let loader = Loader::new().replaceable(true).dual_mapping(is_dual);
            let first = load(&loader, first.clone());
            let user = loader.load([user.clone()], Arc::clone(&first)).unwrap();
            let data = ["counter", "common_one"].map(|name| first.address(name).unwrap());
            // SAFETY: `int step(int)`.
            let held = unsafe { first.get::<unsafe extern "C" fn(i32) -> i32>("step") }.unwrap();
            let all = || {
                [
                    call(&first, "run", 1),
                    call(&first, "by_table", 1),
                    call(&user, "use", 1),
                    call(&user, "by_pointer", 1),
                    // SAFETY: as above.
                    unsafe { held(1) },
                ]
            };
            assert_eq!(all(), [1010, 102, 104, 104, 105], "{compiler} {level}");
            let kept = keep_data(&second, &first).unwrap();
            let second = Arc::new(Loader::new().load([kept], Arc::clone(&first)).unwrap());
            // SAFETY: both have one type.
            let replacement = unsafe { first.replace("step", &second) }.unwrap();
            assert_eq!(all(), [1030, 101, 100, 97, 95], "{compiler} {level}");
            assert_eq!(call(&first, "is_same", 0), 1);
            assert_eq!(call(&second, "step", 0), 95, "the variable that was there");
            assert_eq!(["counter", "common_one"].map(|name| first.address(name).unwrap()), data);
            drop(replacement);
            assert_eq!(all(), [960, 97, 99, 99, 100], "{compiler} {level}");
            // nothing is writable for good
            let range = extent(&first);
            let writable =
                mapped(&range).iter().filter(|map| map.permissions.contains('w')).count();
            assert_eq!(writable, 1, "{:#?}", mapped(&range));
            let gone = [Arc::downgrade(&first), Arc::downgrade(&second)];
            drop((first, second, user));
            assert!(
                gone.iter().all(|module| module.upgrade().is_none()),
                "nobody keeps the other for good"
            );
        }
    }
}

/// `int step(int x) { return x + n; }`
fn version(n: i32) -> Option<Arc<Module<Vec<u8>>>> {
    let object = object("cc", "-O1", &format!("int step(int x) {{ return x + {n}; }}"))?;
    Some(load(&Loader::new().replaceable(n == 0), object))
}

#[test]
fn replacements_of_one_function_are_independent() {
    let Some(original) = version(0) else {
        println!("skipped: replacements_of_one_function_are_independent: needs cc");
        return;
    };
    let replace = |n: i32| {
        // SAFETY: all have one type.
        unsafe { original.replace("step", &version(n).unwrap()) }.unwrap()
    };
    let now = || call(&original, "step", 0);
    let one = replace(1);
    let two = replace(2);
    let three = replace(3);
    assert_eq!(now(), 3);
    drop(two);
    assert_eq!(now(), 3, "it was not the last");
    drop(three);
    assert_eq!(now(), 1);
    let four = replace(4);
    assert_eq!(now(), 4);
    drop(one);
    assert_eq!(now(), 4);
    drop(four);
    assert_eq!(now(), 0);
    extern "C" fn ours(x: i32) -> i32 {
        x + 77
    }
    // SAFETY: as above; functions of this program stay.
    let own = unsafe { original.redirect("step", ours as *const () as u64, Arc::new(())) }.unwrap();
    assert_eq!(now(), 77);
    drop(original);
    drop(own);
}

#[test]
fn what_cannot_be_replaced() {
    let Some(original) = version(0) else {
        println!("skipped: what_cannot_be_replaced: needs cc");
        return;
    };
    let new = version(1).unwrap();
    let refused = |old: &Arc<Module<Vec<u8>>>, name: &str, new: &Arc<Module<Vec<u8>>>| {
        // SAFETY: it is refused.
        unsafe { old.replace(name, new) }.map(|_| ()).unwrap_err()
    };
    assert!(matches!(refused(&new, "step", &original), Error::NotReplaceable(_)), "not asked for");
    assert!(matches!(refused(&original, "absent", &new), Error::NoSymbol(_)));
    let elftest = load(&Loader::new(), fixture(&format!("{ARCH}/elftest.o")));
    assert!(matches!(refused(&original, "foo", &elftest), Error::NotReplaceable(_)));
    let counter =
        |size: usize| object("cc", "-O1", &format!("char counter[{size}] = {{ 1 }};")).unwrap();
    let old = load(&Loader::new(), counter(4));
    let error = keep_data(&counter(8), &old).unwrap_err();
    assert_eq!(error.to_string(), "variable counter has 8 bytes, and 4 where it is");
    assert!(matches!(keep_data(b"rubbish", &old), Err(Error::Elf { .. })));
}

/// Threads call all the time, a function that calls itself and others among them.
#[test]
fn while_threads_run() {
    let compiled =
        object("cc", "-O1", FIRST).zip(object("cc", "-O1", "int step(int x) { return 7; }"));
    let Some((first, second)) = compiled else {
        println!("skipped: while_threads_run: needs cc");
        return;
    };
    let first = load(&Loader::new().replaceable(true), first);
    let second = load(&Loader::new(), second);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let result = call(&first, "run", 0);
                    assert!(result == 70 || result == 1000, "{result}");
                }
            });
        }
        for _ in 0..500 {
            // SAFETY: both have one type, and both modules stay.
            let replacement = unsafe { first.replace("step", &second) }.unwrap();
            assert_eq!(call(&first, "run", 0), 70);
            drop(replacement);
            assert_eq!(call(&first, "run", 0), 1000);
        }
    });
}
