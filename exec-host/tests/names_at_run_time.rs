//! `dlsym` and `dladdr` of loaded code.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::{Loader, Module, Process};
use system::compile;

const SOURCE: &str = "\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
int mine(int x) { return x + 1; }
__attribute__((visibility(\"hidden\"))) int hidden(int x) { return x; }
__thread int own = 5;
int by_name(int x) { int (*f)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, \"mine\"); return f ? f(x) : -1; }
int not_hidden(int x) { return x + (dlsym(RTLD_DEFAULT, \"hidden\") == 0); }
int variable(int x) { own = x; int *v = dlsym(RTLD_DEFAULT, \"own\"); return v ? *v : -1; }
int next(int x) { unsigned long (*f)(const char *) = (unsigned long (*)(const char *))dlsym(RTLD_NEXT, \"strlen\"); return f ? x + f(\"abc\") : -1; }
int no_next(int x) { return x + (dlsym(RTLD_NEXT, \"mine\") == 0); }
int described(int x) {
    Dl_info info;
    int found = dladdr((char *)mine + 1, &info);
    return found && info.dli_saddr == (void *)mine && !strcmp(info.dli_sname, \"mine\") && info.dli_fname ? x : -1;
}
int other(int x) { return x; }
int address(int x) { extern long where; Dl_info info; return dladdr((void *)where, &info) ? x + (info.dli_sname != 0) : -1; }
long where;
";

fn call(module: &Module<Vec<u8>>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`.
    unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap()(x) }
}

#[test]
fn a_load_finds_itself() {
    let Some(object) = compile("cc", &["-O1", "-fPIC"], SOURCE) else {
        println!("skipped: a_load_finds_itself: needs cc");
        return;
    };
    let load = || Loader::new().load([object.bytes.clone()], Process::new()).unwrap();
    // each of two finds its own
    let modules = [load(), load()];
    for module in &modules {
        assert_eq!([call(module, "by_name", 1), call(module, "not_hidden", 1)], [2, 2]);
        assert_eq!([call(module, "variable", 7), call(module, "next", 4)], [7, 7]);
        assert_eq!([call(module, "no_next", 1), call(module, "described", 3)], [2, 3]);
    }
    let [first, second] = modules;
    let other = second.function("other").unwrap();
    // SAFETY: `long where`.
    unsafe { (first.address("where").unwrap() as *mut u64).write(other) };
    assert_eq!(call(&first, "address", 1), 2, "of the other load, which asks too");
    drop(second);
    assert_eq!(call(&first, "address", 1), -1, "it is gone");
}
