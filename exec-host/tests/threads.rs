//! Loading on many threads at once, with every observer, while code of others runs and modules go.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::observer::{GdbInterface, PerfMap};
use exec_host::{Loader, Module, Process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use system::{ARCH, Over, fixture};

type Foo = unsafe extern "C" fn(i32) -> f32;

fn call(module: &Module<Vec<u8>>) {
    // SAFETY: `float foo(int x) { return x + 12345678.f; }`
    let foo = unsafe { module.get::<Foo>("foo") }.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { foo(321) }, 12_345_999.0);
}

fn elftest() -> Vec<u8> {
    fixture(&format!("{ARCH}/elftest.o"))
}

#[test]
fn load_run_unload() {
    let folder = tempfile::tempdir().unwrap();
    let map = PerfMap::create_at(folder.path().join("perf.map")).unwrap();
    let loader = Loader::new().observer(GdbInterface).observer(map);
    // what one thread loads, others call, and whoever has it last unloads
    let current = Mutex::new(Arc::new(loader.load([elftest()], Process::new()).unwrap()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let module = Arc::clone(&current.lock().unwrap());
                    call(&module);
                }
            });
        }
        let loaders = [false, true, true].map(|is_dual| {
            let loader = loader.clone().dual_mapping(is_dual);
            let current = &current;
            scope.spawn(move || {
                for _ in 0..150 {
                    let next = Arc::new(loader.load([elftest()], Process::new()).unwrap());
                    call(&next);
                    let last = std::mem::replace(&mut *current.lock().unwrap(), next);
                    call(&last);
                }
            })
        });
        loaders.into_iter().for_each(|loader| loader.join().unwrap());
    });
    call(&current.lock().unwrap());
}
