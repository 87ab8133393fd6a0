//! A C++ runtime in the load itself (`-static-libgcc -static-libstdc++` of linkers): its unwinder is another one than that of the process.
#![cfg(test)]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::symbols::{ArchiveSource, Symbols as _};
use exec_host::{Loader, Module, Process};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use system::{compile, of_this_machine};

/// Throws through frames of its own and of its caller, and has the library throw.
const SOURCE: &str = "\
#include <stdexcept>
#include <string>
#include <vector>
extern \"C\" { int cleaned = 0; }
struct Guard { ~Guard() { ++cleaned; } };
static __attribute__((noinline)) int deeper(int x) {
    Guard guard;
    if (x & 1) throw std::runtime_error(std::to_string(x));
    return x + 1;
}
extern \"C\" int caught(int x) {
    try { return deeper(x); } catch (std::exception &error) { return -std::stoi(error.what()); }
}
extern \"C\" int by_library(int x) {
    try { return std::vector<int>(4, x).at(x); } catch (std::out_of_range &) { return -1; }
}
extern \"C\" int over(int x, int (*back)(int)) {
    try { return back(x); } catch (std::exception &error) { return -100 - std::stoi(error.what()); }
}
extern \"C\" int throws(int x) { return deeper(x); }
";

/// Passes on what another load throws.
const MIDDLE: &str = "\
extern \"C\" int throws(int);
extern \"C\" int middle(int x) { return throws(x) + 1; }
";

/// An archive of GCC's, if it is there.
fn of_gcc(name: &str) -> Option<ArchiveSource> {
    let name = format!("-print-file-name={name}");
    let output = Command::new(of_this_machine("c++")).arg(name).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim());
    path.is_absolute().then(|| ArchiveSource::open(path).unwrap())
}

type Call = unsafe extern "C" fn(i32) -> i32;

fn call<B: AsRef<[u8]>>(module: &Module<B>, name: &str, x: i32) -> i32 {
    // SAFETY: `int name(int)`.
    unsafe { module.get::<Call>(name).unwrap()(x) }
}

fn cleaned<B: AsRef<[u8]>>(module: &Module<B>) -> i32 {
    let address = module.address("cleaned").unwrap() as *const i32;
    // SAFETY: `int cleaned`, which no other thread uses.
    unsafe { address.read() }
}

/// Throws in every way, with what `archives` and then `process` have of the runtime.
fn throw(test: &str, compiler: &str, options: &[&str], sources: (&[ArchiveSource], &mut Process)) {
    let (archives, process) = sources;
    let Some(object) = compile(compiler, options, SOURCE) else {
        let test = test.split(',').next().unwrap_or(test);
        println!("skipped: {test}: needs {compiler}");
        return;
    };
    let loader = Loader::new();
    let symbols = archives.to_vec().or(&mut *process);
    let module = loader.load([object.bytes], symbols).unwrap();
    // SAFETY: constructors of the library of C++.
    unsafe { module.initialize() };
    assert_eq!([4, 5, 7].map(|x| call(&module, "caught", x)), [5, -5, -7], "{test}");
    assert_eq!(cleaned(&module), 3, "{test}");
    assert_eq!([2, 4].map(|x| call(&module, "by_library", x)), [2, -1], "{test}");

    // an exception passes frames of another load, which has none of the runtime
    let module = Arc::new(module);
    let middle = compile(compiler, options, MIDDLE).unwrap();
    let symbols = Arc::clone(&module).or(process);
    let middle = loader.load([middle.bytes], symbols).unwrap();
    // SAFETY: `int over(int, int (*)(int))`.
    let over = unsafe { module.get::<unsafe extern "C" fn(i32, Call) -> i32>("over") }.unwrap();
    // SAFETY: `int middle(int)`, called by `over` alone.
    let through = unsafe { *middle.get::<Call>("middle").unwrap() };
    // SAFETY: as above.
    assert_eq!(unsafe { [over(8, through), over(9, through)] }, [10, -109], "{test}");
    drop(middle);
    assert_eq!(call(&module, "caught", 11), -11, "{test}");
}

const OPTIONS: [&[&str]; 2] = [&["-O0"], &["-O2", "-fPIC", "-ffunction-sections"]];

/// The runtime of GCC: `libgcc_eh.a` finds frames by `_dl_find_object`, or by `dl_iterate_phdr` where the C library is older.
#[test]
fn gcc() {
    let archives: Option<Vec<_>> =
        ["libstdc++.a", "libgcc_eh.a", "libgcc.a"].map(of_gcc).into_iter().collect();
    let Some(archives) = archives else {
        println!("skipped: gcc: needs libstdc++.a and libgcc_eh.a");
        return;
    };
    let [library, unwinder, builtins] = archives.try_into().unwrap();
    for options in OPTIONS {
        let all = [library.clone(), unwinder.clone(), builtins.clone()];
        throw("gcc, all in the load", "c++", options, (&all, &mut Process::new()));
        let library = [library.clone(), builtins.clone()];
        throw("gcc, unwinder of the process", "c++", options, (&library, &mut Process::new()));
    }
}

/// The runtime of LLVM, where it is installed or where `HOIST_LLVM` says.
#[test]
fn llvm() {
    let root = std::env::var("HOIST_LLVM").unwrap_or_else(|_| String::from("/usr/lib/llvm-19"));
    let headers = format!("{root}/include/c++/v1");
    if !cfg!(target_arch = "x86_64") || !Path::new(&headers).is_dir() {
        println!("skipped: llvm: needs libc++-19-dev, libc++abi-19-dev and libunwind-19-dev");
        return;
    }
    let archive = |name: &str| ArchiveSource::open(format!("{root}/lib/{name}")).unwrap();
    let [library, abi, unwinder] = ["libc++.a", "libc++abi.a", "libunwind.a"].map(archive);
    for options in OPTIONS {
        let options = [options, &["-nostdinc++", "-isystem", headers.as_str()]].concat();
        let all = [library.clone(), abi.clone(), unwinder.clone()];
        throw("llvm, all in the load", "clang++-19", &options, (&all, &mut Process::new()));
        let library = [library.clone(), abi.clone()];
        let own = (&library[..], &mut Process::new());
        throw("llvm, unwinder of the process", "clang++-19", &options, own);
        let mut shared = Process::new();
        for name in ["libunwind.so.1", "libc++abi.so.1", "libc++.so.1"] {
            // SAFETY: libraries of C++ may be opened by anybody.
            unsafe { shared.open(format!("{root}/lib/{name}")) }.unwrap();
        }
        throw("llvm, shared", "clang++-19", &options, (&[], &mut shared));
    }
}
