//! Functions compiled when they are called. One test, so that no other one maps anything where its stubs were.
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
use exec_host::{LazyFunctions, LazyTarget, Loader, Module, Process};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use system::{compile, mapped};

type Call = unsafe extern "C" fn(i32) -> i32;

fn call<B: AsRef<[u8]>>(module: &Module<B>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`.
    unsafe { module.get::<Call>(name).unwrap()(x) }
}

/// Arguments in registers of both sorts and on the stack, from many threads at once, and by way of another module.
#[test]
fn functions_compiled_when_they_are_called() {
    let late = "double late(int a, double b, long c, float d, int e, int f, int g, int h, int i, double j) \
        { return a + b * 10 + c * 100 + d * 1000 + e + f + g + h + i * 10000 + j; }";
    let user = "double late(int, double, long, float, int, int, int, int, int, double); \
        int use(int x) { return late(x, 2, 3, 4, 1, 1, 1, 1, 5, 0.5) == x + 20 + 300 + 4000 + 4 + 50000 + 0.5; } \
        double (*pointer(void))(int, double, long, float, int, int, int, int, int, double) { return late; }";
    let objects = [late, user].map(|source| compile("cc", &["-O1", "-fPIC"], source));
    let [Some(late), Some(user)] = objects else {
        println!("skipped: functions_compiled_when_they_are_called: needs cc");
        return;
    };
    let (lazy, times) = (LazyFunctions::new(), Arc::new(AtomicU32::new(0)));
    let (counted, bytes) = (Arc::clone(&times), late.bytes);
    lazy.define("late", move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let module = Loader::new().load([bytes], Process::new()).unwrap();
        LazyTarget::of(&Arc::new(module), "late").unwrap()
    })
    .unwrap();
    // more than one page of stubs
    for number in 0..5000 {
        lazy.define(&format!("f{number}"), move || LazyTarget::at(number)).unwrap();
    }
    let module = Loader::new().load([user.bytes], lazy.clone().or(Process::new())).unwrap();
    assert!(!lazy.is_compiled("late"));
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (module, barrier) = (&module, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for x in 0..100 {
                    assert_eq!(call(module, "use", number * 1000 + x), 1);
                }
            });
        }
    });
    assert_eq!((times.load(Ordering::Relaxed), lazy.is_compiled("late")), (1, true));
    assert!(!lazy.is_compiled("f7"));
    let stub = lazy.address("late").unwrap();
    let map = mapped(&(stub..stub + 16)).pop().unwrap();
    assert_eq!(map.permissions, "r-xp");
    drop(lazy);
    assert_eq!(call(&module, "use", 1), 1, "the module keeps it");
    drop(module);
    assert!(mapped(&(stub..stub + 1)).is_empty(), "and nobody else");
}
