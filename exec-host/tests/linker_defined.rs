//! Programs that ask where sections start and end: registries, which compilers and libraries make of sections of one name.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests; what they share is not under cfg(test)"
)]

mod system;

use exec_host::{Loader, Process};
use system::compile;

/// Three files that register hooks, and one that calls them all.
const HOOKS: [&str; 4] = [
    "typedef int (*hook)(int);
     static int twice(int x) { return 2 * x; }
     __attribute__((section(\"hooks\"), used)) static hook first = twice;",
    "typedef int (*hook)(int);
     static int more(int x) { return x + 3; }
     __attribute__((section(\"hooks\"), used)) static hook second = more;",
    "typedef int (*hook)(int);
     static int square(int x) { return x * x; }
     __attribute__((section(\"hooks\"), used)) static hook third = square;",
    "typedef int (*hook)(int);
     extern hook __start_hooks[] __attribute__((weak)), __stop_hooks[] __attribute__((weak));
     extern hook __start_none[] __attribute__((weak)), __stop_none[] __attribute__((weak));
     extern char __bss_start[], _end[], _edata[], end[];
     static int zeros[64];
     int all(int x) {
         for (hook *each = __start_hooks; each < __stop_hooks; each++) x = (*each)(x);
         return x;
     }
     int count(int x) { return x + (__stop_hooks - __start_hooks); }
     int none(int x) { return x + (__stop_none - __start_none) + (__start_none != 0); }
     int edges(int x) {
         char *at = (char *)zeros;
         return x + (__bss_start <= at && at + sizeof zeros <= _end && _edata <= at && _end == end);
     }",
];

#[test]
fn a_registry_of_hooks_runs_all_of_them() {
    for options in [&["-O1", "-fPIC"][..], &["-O2", "-fno-pic", "-mcmodel=large"]] {
        let mut objects = Vec::new();
        for source in HOOKS {
            let options = match options {
                _ if cfg!(target_arch = "x86_64") => options,
                // without -fPIC nothing reaches the 0 that nobody's symbols are
                _ if cfg!(target_arch = "riscv64") => &[options[0], "-fPIC"],
                _ => &options[..2],
            };
            let Some(compiled) = compile("cc", options, source) else {
                println!("skipped: a_registry_of_hooks_runs_all_of_them: needs cc");
                return;
            };
            objects.push(compiled.bytes);
        }
        let module = Loader::new().load(objects, Process::new()).unwrap();
        let call = |name: &str, argument: i32| {
            // SAFETY: all functions that are called here have this type.
            unsafe { module.get::<unsafe extern "C" fn(i32) -> i32>(name).unwrap()(argument) }
        };
        assert_eq!(call("all", 5), 169, "in the order of the objects");
        assert_eq!([call("count", 0), call("none", 0), call("edges", 0)], [3, 0, 1]);
        assert!(module.address("__start_hooks").is_none(), "they are each module's own");
    }
}

/// Registries as `linkme` makes them, and what the coverage of compilers asks of a program (`__llvm_prf_cnts`, `__ehdr_start`).
const RUST: &str = r#"
#[used]
#[unsafe(link_section = "linkme_HOOKS")]
static FIRST: fn(i32) -> i32 = |x| x + 40;
#[used]
#[unsafe(link_section = "linkme_HOOKS")]
static SECOND: fn(i32) -> i32 = |x| x + 2;
unsafe extern "C" {
    #[link_name = "__start_linkme_HOOKS"]
    static START: fn(i32) -> i32;
    #[link_name = "__stop_linkme_HOOKS"]
    static STOP: fn(i32) -> i32;
}
#[unsafe(no_mangle)]
pub extern "C" fn all(mut x: i32) -> i32 {
    let (mut at, stop) = unsafe { (&raw const START, &raw const STOP) };
    while at < stop {
        unsafe {
            x = (*at)(x);
            at = at.add(1);
        }
    }
    x
}
"#;

#[test]
fn rust_registers_and_counts() {
    if system::is_emulated() {
        println!(
            "skipped: rust_registers_and_counts: an emulator has the compiler of another machine"
        );
        return;
    }
    let folder = std::env::temp_dir().join(format!("hoist-registry-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, archive) = (folder.join("hooks.rs"), folder.join("libhooks.a"));
    std::fs::write(&source, RUST).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = std::process::Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "staticlib", "-C", "instrument-coverage"]);
    command.args(["-C", "panic=abort", "-O", "-o"]).arg(&archive).arg(&source);
    if !command.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: rust_registers_and_counts: needs rustc");
        return;
    }
    let archive = exec_host::symbols::ArchiveSource::open(&archive).unwrap();
    let ask = "int all(int); int ask(int x) { return all(x); }
               int __llvm_profile_write_file(void); void __llvm_profile_set_filename(const char *);
               int report(const char *to) { __llvm_profile_set_filename(to); return __llvm_profile_write_file(); }";
    let Some(compiled) = compile("cc", &["-O1", "-fPIC"], ask) else {
        println!("skipped: rust_registers_and_counts: needs cc");
        return;
    };
    use exec_host::symbols::Symbols as _;
    let module = Loader::new().load([compiled.bytes], archive.or(Process::new())).unwrap();
    let raw = folder.join("profraw");
    let path = std::ffi::CString::new(raw.to_str().unwrap()).unwrap();
    // SAFETY: these are their types.
    unsafe {
        module.initialize();
        assert_eq!(module.get::<unsafe extern "C" fn(i32) -> i32>("ask").unwrap()(0), 42);
        let report = module.get::<unsafe extern "C" fn(*const core::ffi::c_char) -> i32>("report");
        assert_eq!(report.unwrap()(path.as_ptr()), 0);
    }
    let profile = std::fs::read(&raw).unwrap();
    assert_eq!(&profile[..8], b"\x81rforpl\xff", "counters, as LLVM writes them");
    assert!(profile.len() > 200, "{} bytes", profile.len());
    std::fs::remove_dir_all(&folder).unwrap();
}
